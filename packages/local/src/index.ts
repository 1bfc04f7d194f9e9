export { type ApiApp, type App, type AppOptions, startApi, startWorker } from './apps.ts'
export {
  askClickHouseVersion,
  type ClickHouseOptions,
  type ClickHouseServer,
  startClickHouse,
} from './clickhouse.ts'
export { docker, dockerEnvironment } from './docker.ts'
export { freePort } from './ports.ts'
export { askRedisVersion, type RedisOptions, type RedisServer, startRedis } from './redis.ts'
export { findRedis } from './redis-program.ts'
export {
  type AppSettings,
  type Progress,
  type Services,
  type ServicesOptions,
  type Stack,
  type StackOptions,
  startServices,
  startStack,
} from './stack.ts'
export { type Exit, ProcessError, type ProcessSpec, SupervisedProcess } from './supervised-process.ts'
export { DataDirectoryBusyError, Supervisor } from './supervisor.ts'
