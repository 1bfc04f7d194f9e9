import { type ApiKeyRecord, Registry, RegistryCheck } from '@sluice/projects'
import {
  connectRedis,
  DurabilityCheck,
  type DurableRedis,
  durableRedis,
  installationNames,
  keepSubscribed,
  type Logger,
  type RedisConnection,
  RedisClock,
  type redisSettings,
  type SettingsOf,
} from '@sluice/runtime'
import { Authenticator } from './authenticator.ts'
import { KeyUsage } from './key-usage.ts'

export interface RedisAccessOptions {
  /** What the connections and checks are released with, in the reverse order. */
  readonly resources: AsyncDisposableStack
  readonly config: SettingsOf<typeof redisSettings>
  /** What a key must permit. */
  readonly scope: ApiKeyRecord['scopes'][number]
  readonly commandTimeoutMs: number
  /** How long a step waits for replicas, within the timeout. */
  readonly replicationWaitMs: number
  readonly monotonicMs: () => number
  readonly logger: Logger
}

/** What a process with an HTTP API has of Redis. The clock and the checks are to be started. */
export interface RedisAccess {
  readonly redis: RedisConnection
  readonly durable: DurableRedis
  readonly clock: RedisClock
  readonly durability: DurabilityCheck
  readonly registry: Registry
  readonly registryCheck: RegistryCheck
  readonly usage: KeyUsage
  readonly authenticator: Authenticator
}

/** Connects to Redis, and authenticates by its registry. Changes of keys take effect at once while the process is subscribed to them. */
export function openRedisAccess({
  resources,
  config,
  scope,
  commandTimeoutMs,
  replicationWaitMs,
  monotonicMs,
  logger,
}: RedisAccessOptions): RedisAccess {
  const stoppedAtEnd = <Part extends { stop: () => unknown }>(part: Part): Part =>
    resources.adopt(part, async (started) => void (await started.stop()))
  const { registryPrefix } = installationNames(config.SLUICE_PREFIX)
  const access = { tlsCaFile: config.REDIS_TLS_CA_FILE, sentinelPassword: config.REDIS_SENTINEL_PASSWORD }
  const onError = (error: Error): void => logger.warn({ err: error }, 'redis connection failed')
  const connect = (options: Parameters<typeof connectRedis>[1]): RedisConnection => {
    const connection = connectRedis(config.REDIS_URL, { ...access, ...options })
    return resources.adopt(connection.on('error', onError), (opened) => opened.disconnect())
  }
  const redis = connect({ failFast: true, commandTimeoutMs })
  const subscriber = connect({ failFast: false })
  const durable = resources.adopt(
    durableRedis(redis, {
      ...access,
      url: config.REDIS_URL,
      replicas: config.REDIS_REPLICAS_ACK,
      waitMs: replicationWaitMs,
      onError,
    }),
    (opened) => opened.close(),
  )
  const clock = stoppedAtEnd(
    new RedisClock({ redis, key: registryPrefix, logger, wallMs: Date.now, monotonicMs }),
  )
  const durability = stoppedAtEnd(
    new DurabilityCheck({ redis, allowUnsafe: config.REDIS_ALLOW_UNSAFE, durable, logger }),
  )
  const registry = new Registry(redis, registryPrefix, clock.nowMs)
  const registryCheck = stoppedAtEnd(new RegistryCheck({ redis, identity: registry.identity, logger }))
  const usage = resources.adopt(new KeyUsage(registry.keys, logger), (started) => started.close())
  const authenticator = new Authenticator(registry, { scope, usage, wallMs: clock.nowMs, monotonicMs })
  subscriber.on('message', (_channel: string, change: string) => authenticator.invalidate(change))
  resources.defer(
    keepSubscribed(subscriber, registry.changesChannel, (error) => {
      logger.warn({ err: error }, 'not subscribed to key changes; they take effect when caches expire')
    }),
  )
  return { redis, durable, clock, durability, registry, registryCheck, usage, authenticator }
}
