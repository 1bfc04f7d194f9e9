export * from './common-settings.ts'
export { createLogger, ignoreErrors, type LogFormat, type Logger, type ProcessLogger } from './logger.ts'
export { parseObject } from './parse-object.ts'
export * from './process.ts'
export * from './promises.ts'
export * from './redis/clock.ts'
export * from './redis/connection.ts'
export * from './redis/durability.ts'
export {
  defineScript,
  DELETE_IF_EQUAL,
  type DurableRedis,
  permitWrites,
  plainRedis,
  readClock,
  type RedisScript,
} from './redis/durable-redis.ts'
export * from './redis/names.ts'
export * from './redis/replicated-redis.ts'
export { checkReplication, countedIn, type ReplicationFindings } from './redis/replication.ts'
export * from './redis/url.ts'
export * from './settings.ts'
export * from './timing.ts'
