import { hashApiKey, keyState, Registry } from '@sluice/projects'
import { connectRedis, installationNames, type RedisConnection, type RedisTuning } from '@sluice/runtime'

export interface RegistryAccess {
  readonly redisUrl: string
  /** Separates installations that share a Redis. */
  readonly prefix: string
  readonly tuning?: Pick<RedisTuning, 'tlsCaFile' | 'sentinelPassword'> | undefined
}

const DEADLINE_MS = 5_000

/** Calls `use` with the registry of an installation. The connection is closed when `use` has finished, or after 5 s. */
export async function withRegistry<T>(
  { redisUrl, prefix, tuning }: RegistryAccess,
  use: (registry: Registry, redis: RedisConnection) => Promise<T>,
): Promise<T> {
  const redis = connectRedis(redisUrl, { ...tuning, failFast: false })
  redis.on('error', () => undefined)
  const timeout = setTimeout(() => redis.disconnect(), DEADLINE_MS)
  try {
    return await use(new Registry(redis, installationNames(prefix).registryPrefix), redis)
  } finally {
    clearTimeout(timeout)
    redis.disconnect()
  }
}

/** Creates the project if it is missing, and a key unless `knownKey` is still active. @returns the active key */
export async function provisionProject(
  registry: Registry,
  projectId: string,
  knownKey?: string,
): Promise<string> {
  const { projects, keys } = registry
  if ((await projects.find(projectId)) === undefined) await projects.create(projectId)
  const record = knownKey === undefined ? undefined : await keys.find(hashApiKey(knownKey))
  const isActive = record?.projectId === projectId && keyState(record, Date.now()) === 'active'
  if (knownKey !== undefined && isActive) return knownKey
  const { key } = await keys.create(projectId, { name: 'local' })
  return key
}
