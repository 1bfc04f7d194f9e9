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
  /** All published changes. */
  readonly changes: string[] = []
  readonly #subscriber: RedisConnection

  private constructor(redisUrl: string) {
    this.redis = connectRedis(redisUrl, { failFast: false })
    this.#subscriber = connectRedis(redisUrl, { failFast: false })
    this.#subscriber.on('message', (_channel: string, change: string) => this.changes.push(change))
    this.registry = new Registry(this.redis, this.prefix, () => this.nowMs)
  }

  static async open(): Promise<RegistryFixture> {
    const fixture = new RegistryFixture(inject('services').redisUrl)
    await fixture.#subscriber.subscribe(fixture.registry.changesChannel)
    return fixture
  }

  /** The names of all Redis keys of the registry. */
  redisKeys(): Promise<string[]> {
    return this.redis.keys(`${this.prefix}:*`)
  }

  async close(): Promise<void> {
    this.#subscriber.disconnect()
    const left = await this.redisKeys()
    if (left.length > 0) await this.redis.del(left)
    this.redis.disconnect()
  }
}
