import { randomUUID } from 'node:crypto'
import { connectRedis, installationNames, type RedisConnection } from '@sluice/runtime'
import { inject } from 'vitest'
import { Registry } from '../src/registry.ts'

export const START_MS = Date.UTC(2026, 10, 20, 12)

/** An empty registry on the shared Redis. Each test opens one, and closes it, which deletes its keys. */
export class RegistryFixture {
  readonly redis: RedisConnection
  readonly prefix = installationNames(`test-registry-${randomUUID()}`).registryPrefix
  readonly registry: Registry
  /** The registry's clock. */
  nowMs = START_MS

  constructor() {
    this.redis = connectRedis(inject('services').redisUrl, { failFast: false })
    this.registry = new Registry(this.redis, this.prefix, () => this.nowMs)
  }

  /** The names of all Redis keys of the registry. */
  redisKeys(): Promise<string[]> {
    return this.redis.keys(`${this.prefix}:*`)
  }

  async close(): Promise<void> {
    const left = await this.redisKeys()
    if (left.length > 0) await this.redis.del(left)
    this.redis.disconnect()
  }
}
