import type { Logger } from 'pino'
import type { redisSettings } from '../common-settings.ts'
import type { Resources } from '../process.ts'
import type { SettingsOf } from '../settings.ts'
import { RedisClock } from './clock.ts'
import { connectRedis, type RedisConnection, type RedisTuning } from './connection.ts'
import { DurabilityCheck } from './durability.ts'
import { installationNames } from './names.ts'
import { durableRedis } from './replicated-redis.ts'

export interface OpenRedisOptions {
  /** What releases the connections and checks. */
  readonly resources: Resources
  readonly config: SettingsOf<typeof redisSettings>
  readonly tuning: RedisTuning
  /** How long a step waits for replicas. */
  readonly replicationWaitMs: number
  readonly monotonicMs: () => number
  readonly logger: Logger
}

/** Connects a process to Redis. The clock and the check are to be started. `connect` opens further connections. */
export function openRedis({
  resources,
  config,
  tuning,
  replicationWaitMs,
  monotonicMs,
  logger,
}: OpenRedisOptions) {
  const { registryPrefix } = installationNames(config.SLUICE_PREFIX)
  const access = { tlsCaFile: config.REDIS_TLS_CA_FILE, sentinelPassword: config.REDIS_SENTINEL_PASSWORD }
  const onError = (error: Error): void => logger.warn({ err: error }, 'redis connection failed')
  const connect = (options: RedisTuning): RedisConnection => {
    const connection = connectRedis(config.REDIS_URL, { ...access, ...options })
    return resources.adopt(connection.on('error', onError), (opened) => opened.disconnect())
  }
  const redis = connect(tuning)
  const { REDIS_URL: url, REDIS_REPLICAS_ACK: replicas } = config
  const durable = resources.closeAtEnd(
    durableRedis(redis, { ...access, url, replicas, waitMs: replicationWaitMs, onError }),
  )
  const clock = resources.stopAtEnd(
    new RedisClock({ redis, key: registryPrefix, wallMs: Date.now, monotonicMs }),
  )
  const durability = resources.stopAtEnd(
    new DurabilityCheck({ redis, allowUnsafe: config.REDIS_ALLOW_UNSAFE, durable, logger }),
  )
  return { redis, connect, durable, clock, durability, registryPrefix }
}
