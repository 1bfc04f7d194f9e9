import { Registry } from '@sluice/projects'
import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { Authenticator } from '../../src/authentication/authenticator.ts'
import { KeyUsage } from '../../src/authentication/key-usage.ts'
import { Problem } from '../../src/problems.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

/** What the contract gives a change of a key or a project. */
const EFFECTIVE_WITHIN_MS = 5_000
/** When the news arrives, on a machine that does other things besides. */
const NEWS_WITHIN_MS = 1_500
const CLIENT = { ip: '192.0.2.1' }

/** What authenticates in one API process, and hears of changes. */
interface ApiProcess {
  readonly registry: Registry
  readonly authenticator: Authenticator
  readonly subscriber: RedisConnection
  readonly usage: KeyUsage
  news: number
}

let prefix: string
let proxy: TcpProxy
let connections: RedisConnection[]
/** The registry of whoever makes the changes. */
let registry: Registry
let hearing: ApiProcess
/** Its connection for the news goes through the proxy. */
let deaf: ApiProcess

const connect = (url: string, failFast: boolean): RedisConnection => {
  const redis = connectRedis(url, { failFast, ...(failFast ? { commandTimeoutMs: 1_800 } : {}) })
  redis.on('error', () => undefined)
  connections.push(redis)
  return redis
}

async function startProcess(newsUrl: string): Promise<ApiProcess> {
  const redis = connect(inject('services').redisUrl, true)
  const seen = new Registry(redis, prefix)
  const usage = new KeyUsage(seen, createLogger('test', 'silent'))
  const authenticator = new Authenticator(seen, { usage })
  const api: ApiProcess = {
    registry: seen,
    authenticator,
    subscriber: connect(newsUrl, false),
    usage,
    news: 0,
  }
  api.subscriber.on('message', (_channel: string, change: string) => {
    api.news += 1
    authenticator.invalidate(change)
  })
  await api.subscriber.subscribe(seen.changesChannel)
  await vi.waitUntil(() => redis.status === 'ready')
  return api
}

beforeEach(async () => {
  const { redisUrl } = inject('services')
  connections = []
  prefix = redisNames(`test-changes-${randomUUID()}`).registryPrefix
  proxy = await TcpProxy.to(redisUrl)
  registry = new Registry(connect(redisUrl, false), prefix)
  hearing = await startProcess(redisUrl)
  deaf = await startProcess(proxy.urlFor(redisUrl))
  await registry.createProject('demo')
})

afterEach(async () => {
  const [redis] = connections
  const left = (await redis?.keys(`${prefix.replaceAll(/[{}]/g, '?')}:*`)) ?? []
  if (left.length > 0) await redis?.del(left)
  for (const connection of connections) connection.disconnect()
  await proxy.down()
})

const answer = (api: ApiProcess, key: string): Promise<string> =>
  api.authenticator.authenticate(`Bearer ${key}`, CLIENT).then(
    ({ id }) => id,
    (error: unknown) => {
      if (error instanceof Problem) return error.code
      throw error
    },
  )

/** Makes a key that both processes have just looked up. */
async function makeWarmKey(expiresAt?: Date): Promise<{ key: string; id: string }> {
  const made = await registry.createKey('demo', expiresAt === undefined ? {} : { expiresAt })
  // Late news of what was made here would let go of what the tests want cached.
  await vi.waitUntil(() => hearing.news === 2 && deaf.news === 2)
  for (const api of [hearing, deaf]) expect(await answer(api, made.key)).toBe('demo')
  return { key: made.key, id: made.record.id }
}

async function cutTheNews(): Promise<void> {
  await proxy.down()
  await expect.poll(() => deaf.subscriber.status).not.toBe('ready')
}

describe.each([
  ['a revoked key', (id: string) => registry.revokeKey(id), 'unauthorized'],
  ['a rotated key without an overlap', (id: string) => registry.rotateKey(id, 0), 'unauthorized'],
  ['the key of a disabled project', () => registry.enableProject('demo', false), 'project_not_found'],
  ['the key of a deleted project', () => registry.deleteProject('demo'), 'project_not_found'],
])('%s', (_what, change, code) => {
  it('is refused at once by every process that hears of it', async () => {
    const { key, id } = await makeWarmKey()
    await change(id)
    for (const api of [hearing, deaf]) {
      await expect.poll(() => answer(api, key), { timeout: NEWS_WITHIN_MS, interval: 10 }).toBe(code)
    }
  })

  it('is refused in time by a process that does not hear of it', async () => {
    const { key, id } = await makeWarmKey()
    await cutTheNews()
    await change(id)
    const changedMs = performance.now()
    // Asked all the time, so that asking does not keep what is cached alive.
    await expect.poll(() => answer(deaf, key), { timeout: EFFECTIVE_WITHIN_MS, interval: 50 }).toBe(code)
    expect(performance.now() - changedMs).toBeLessThan(EFFECTIVE_WITHIN_MS)
    expect(await answer(hearing, key)).toBe(code)
  })
})

describe('a revocation', () => {
  it('takes effect at once again after the connection for the news was cut', async () => {
    const { key, id } = await makeWarmKey()
    await cutTheNews()
    await proxy.up()
    await expect.poll(() => deaf.subscriber.status, { timeout: 10_000 }).toBe('ready')
    // Subscribing again takes one more round trip.
    await deaf.subscriber.ping()
    await registry.revokeKey(id)
    await expect.poll(() => answer(deaf, key), { timeout: NEWS_WITHIN_MS, interval: 10 }).toBe('unauthorized')
  })

  it('of one key leaves the project its other keys', async () => {
    const { key, id } = await makeWarmKey()
    const other = await registry.createKey('demo')
    await registry.revokeKey(id)
    await expect
      .poll(() => answer(hearing, key), { timeout: NEWS_WITHIN_MS, interval: 10 })
      .toBe('unauthorized')
    expect(await answer(hearing, other.key)).toBe('demo')
  })
})

describe('a key that was just made', () => {
  it('is good at once, while the news of it is on its way', async () => {
    for (let i = 0; i < 10; i += 1) {
      const made = await registry.createKey('demo')
      expect(await answer(hearing, made.key)).toBe('demo')
    }
  })
})

describe('a key that expires', () => {
  it('is refused by every process from that moment, cached or not, news or not', async () => {
    const expiresAt = new Date(Date.now() + 4_000)
    const { key } = await makeWarmKey(expiresAt)
    await cutTheNews()
    await vi.waitUntil(() => Date.now() >= expiresAt.getTime(), { timeout: 10_000, interval: 5 })
    for (const api of [hearing, deaf]) expect(await answer(api, key)).toBe('unauthorized')
  })
})

describe('a disabled project', () => {
  it('that is enabled again takes what is sent to it, in time, news or not', async () => {
    const { key } = await makeWarmKey()
    await registry.enableProject('demo', false)
    for (const api of [hearing, deaf]) {
      await expect.poll(() => answer(api, key), { timeout: NEWS_WITHIN_MS }).toBe('project_not_found')
    }
    await cutTheNews()
    await registry.enableProject('demo', true)
    for (const api of [hearing, deaf]) {
      await expect.poll(() => answer(api, key), { timeout: EFFECTIVE_WITHIN_MS }).toBe('demo')
    }
  })
})

describe('the last use of a key', () => {
  it('is the later one of what the processes saw, and survives them', async () => {
    const { key } = await makeWarmKey()
    const beforeMs = Date.now()
    expect(await answer(deaf, key)).toBe('demo')
    await hearing.usage.close()
    await deaf.usage.close()
    const [record] = await registry.listKeys('demo')
    expect(Date.parse(record?.lastUsedAt ?? '')).toBeGreaterThanOrEqual(beforeMs)
    expect(Date.parse(record?.lastUsedAt ?? '')).toBeLessThanOrEqual(Date.now())
  })

  it('is not that of a request that was refused', async () => {
    const made = await registry.createKey('demo', { scopes: ['read'] })
    expect(await answer(hearing, made.key)).toBe('forbidden')
    await hearing.usage.close()
    expect(await registry.listKeys('demo')).toEqual([made.record])
  })
})
