import { Registry, RegistryCheck, type Scope } from '@sluice/projects'
import { openRedis, type OpenRedisOptions } from '@sluice/runtime'
import { Authenticator } from './authenticator.ts'
import { KeyUsage } from './key-usage.ts'

type RedisAccessOptions = Omit<OpenRedisOptions, 'tuning'> & {
  readonly scope: Scope
  readonly commandTimeoutMs: number
}

/** Connects a process with an HTTP API to Redis, and authenticates by its registry. The clock and the checks are to be started. */
export function openRedisAccess({ scope, commandTimeoutMs, ...options }: RedisAccessOptions) {
  const { resources, monotonicMs, logger } = options
  const opened = openRedis({ ...options, tuning: { failFast: true, commandTimeoutMs } })
  const { redis, clock, registryPrefix } = opened
  const registry = new Registry(redis, registryPrefix, clock.nowMs)
  const registryCheck = resources.stopAtEnd(new RegistryCheck({ redis, identity: registry.identity, logger }))
  const usage = resources.closeAtEnd(new KeyUsage(registry.keys, logger))
  const authenticator = new Authenticator(registry, { scope, usage, wallMs: clock.nowMs, monotonicMs })
  return { ...opened, registry, registryCheck, usage, authenticator }
}
