import { Registry } from '@sluice/projects'
import { connectRedis } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import type { Redis } from 'ioredis'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { Authenticator } from '../../src/authentication/authenticator.ts'
import { Problem } from '../../src/problems.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

/** What the contract gives a revocation. */
const EFFECTIVE_WITHIN_MS = 5_000

let prefix: string
let proxy: TcpProxy
let connections: Redis[]
/** The registry of whoever revokes. */
let registry: Registry
/** The registry, the news and the authenticator of an API process. */
let subscriber: Redis
let authenticator: Authenticator
let key: string
let keyId: string

const connect = (url: string, failFast: boolean): Redis => {
  const redis = connectRedis(url, { failFast, ...(failFast ? { commandTimeoutMs: 1_800 } : {}) })
  redis.on('error', () => undefined)
  connections.push(redis)
  return redis
}

beforeEach(async () => {
  const { redisUrl } = inject('services')
  connections = []
  prefix = redisNames(`test-revocation-${randomUUID()}`).registryPrefix
  proxy = await TcpProxy.to(redisUrl)
  registry = new Registry(connect(redisUrl, false), prefix)
  const redis = connect(redisUrl, true)
  const seen = new Registry(redis, prefix)
  authenticator = new Authenticator(seen)
  subscriber = connect(proxy.urlFor(redisUrl), false)
  let news = 0
  subscriber.on('message', (_channel: string, change: string) => {
    news += 1
    authenticator.invalidate(change)
  })
  await subscriber.subscribe(seen.changesChannel)
  await vi.waitUntil(() => redis.status === 'ready')
  await registry.createProject('demo')
  const made = await registry.createKey('demo')
  key = made.key
  keyId = made.record.id
  // Late news of what was made here would let go of what the tests want cached.
  await vi.waitUntil(() => news === 2)
  await authenticator.authenticate(`Bearer ${key}`)
})

afterEach(async () => {
  const [redis] = connections
  const left = (await redis?.keys(`${prefix.replaceAll(/[{}]/g, '?')}:*`)) ?? []
  if (left.length > 0) await redis?.del(left)
  for (const connection of connections) connection.disconnect()
  await proxy.down()
})

const answer = (): Promise<string> =>
  authenticator.authenticate(`Bearer ${key}`).then(
    ({ id }) => id,
    (error: unknown) => {
      if (error instanceof Problem) return error.code
      throw error
    },
  )

describe('a revocation', () => {
  it('takes effect at once in another process', async () => {
    await registry.revokeKey(keyId)
    await expect.poll(answer, { timeout: 1_000, interval: 10 }).toBe('unauthorized')
  })

  it('takes effect in time though the news is lost', async () => {
    await proxy.down()
    await expect.poll(() => subscriber.status).not.toBe('ready')
    expect(await answer()).toBe('demo')
    await registry.revokeKey(keyId)
    const revokedMs = performance.now()
    expect(await answer()).toBe('demo')
    // Asked all the time, so that asking does not keep what is cached alive.
    await expect.poll(answer, { timeout: EFFECTIVE_WITHIN_MS, interval: 50 }).toBe('unauthorized')
    expect(performance.now() - revokedMs).toBeLessThan(EFFECTIVE_WITHIN_MS)
  })

  it('takes effect at once again after the connection for the news was cut', async () => {
    await proxy.down()
    await expect.poll(() => subscriber.status).not.toBe('ready')
    await proxy.up()
    await expect.poll(() => subscriber.status, { timeout: 10_000 }).toBe('ready')
    // Subscribing again takes one more round trip.
    await subscriber.ping()
    await registry.revokeKey(keyId)
    await expect.poll(answer, { timeout: 1_000, interval: 10 }).toBe('unauthorized')
  })

  it('of one key leaves the project its other keys', async () => {
    const other = await registry.createKey('demo')
    await registry.revokeKey(keyId)
    await expect.poll(answer, { timeout: 1_000, interval: 10 }).toBe('unauthorized')
    expect(await authenticator.authenticate(`Bearer ${other.key}`)).toMatchObject({ id: 'demo' })
  })
})

describe('a key that was just made', () => {
  it('is good at once, while the news of it is on its way', async () => {
    for (let i = 0; i < 10; i += 1) {
      const made = await registry.createKey('demo')
      expect(await authenticator.authenticate(`Bearer ${made.key}`)).toMatchObject({ id: 'demo' })
    }
  })
})
