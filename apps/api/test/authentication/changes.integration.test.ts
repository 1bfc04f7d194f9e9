import { FaultProxy } from '@sluice/harness'
import { Registry } from '@sluice/projects'
import { connectRedis, installationNames, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { Authenticator } from '../../src/authentication/authenticator.ts'
import { Problem } from '../../src/problems.ts'

/** The API promises that a change of a key or a project takes effect within this time. */
const EFFECTIVE_WITHIN_MS = 5_000
/** The time within which a notification arrives, on a machine with other load. */
const NOTIFIED_WITHIN_MS = 1_500
const CLIENT = { ip: '192.0.2.1' }

/** The parts of an API process that authenticate and receive notifications of changes. */
interface ApiProcess {
  readonly registry: Registry
  readonly authenticator: Authenticator
  readonly subscriber: RedisConnection
  notifications: number
}

let prefix: string
let proxy: FaultProxy
let connections: RedisConnection[]
/** The registry through which the tests make changes. */
let registry: Registry
let notified: ApiProcess
/** The connection for its notifications goes through the proxy. */
let disconnectable: ApiProcess

const connect = (url: string, failFast: boolean): RedisConnection => {
  const redis = connectRedis(url, { failFast, ...(failFast ? { commandTimeoutMs: 1_800 } : {}) })
  redis.on('error', () => undefined)
  connections.push(redis)
  return redis
}

async function startProcess(notificationsUrl: string): Promise<ApiProcess> {
  const redis = connect(inject('services').redisUrl, true)
  const seen = new Registry(redis, prefix)
  const authenticator = new Authenticator(seen)
  const api: ApiProcess = {
    registry: seen,
    authenticator,
    subscriber: connect(notificationsUrl, false),
    notifications: 0,
  }
  api.subscriber.on('message', (_channel: string, change: string) => {
    api.notifications += 1
    authenticator.invalidate(change)
  })
  await api.subscriber.subscribe(seen.changesChannel)
  await vi.waitUntil(() => redis.status === 'ready')
  return api
}

beforeEach(async () => {
  const { redisUrl } = inject('services')
  connections = []
  prefix = installationNames(`test-changes-${randomUUID()}`).registryPrefix
  proxy = await FaultProxy.open(redisUrl)
  registry = new Registry(connect(redisUrl, false), prefix)
  notified = await startProcess(redisUrl)
  disconnectable = await startProcess(proxy.url)
  await registry.projects.create('demo')
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

/** Authenticates the key repeatedly, until the result is the expected one. */
const expectAnswer = (api: ApiProcess, key: string, expected: string, timeout: number): Promise<void> =>
  expect.poll(() => answer(api, key), { timeout, interval: 10 }).toBe(expected)

/** Creates a key that both processes have just looked up. */
async function makeWarmKey(expiresAt?: Date): Promise<{ key: string; id: string }> {
  const made = await registry.keys.create('demo', expiresAt === undefined ? {} : { expiresAt })
  // Late notifications of this creation would drop what the tests need in the cache.
  await vi.waitUntil(() => notified.notifications === 2 && disconnectable.notifications === 2)
  for (const api of [notified, disconnectable]) expect(await answer(api, made.key)).toBe('demo')
  return { key: made.key, id: made.record.id }
}

async function cutNotifications(): Promise<void> {
  await proxy.down()
  await expect.poll(() => disconnectable.subscriber.status).not.toBe('ready')
}

describe.each([
  ['a revoked key', (id: string) => registry.keys.revoke(id), 'unauthorized'],
  ['a rotated key without an overlap', (id: string) => registry.keys.rotate(id, 0), 'unauthorized'],
  ['the key of a disabled project', () => registry.projects.setEnabled('demo', false), 'project_not_found'],
  ['the key of a deleted project', () => registry.projects.delete('demo'), 'project_not_found'],
])('%s', (_what, change, code) => {
  it('is rejected at once by every process that is notified', async () => {
    const { key, id } = await makeWarmKey()
    await change(id)
    for (const api of [notified, disconnectable]) await expectAnswer(api, key, code, NOTIFIED_WITHIN_MS)
  })

  it('is rejected in time by a process that is not notified', async () => {
    const { key, id } = await makeWarmKey()
    await cutNotifications()
    await change(id)
    const changedMs = performance.now()
    // Authenticated all the time, to show that this does not extend the trust of the cached key.
    await expectAnswer(disconnectable, key, code, EFFECTIVE_WITHIN_MS)
    expect(performance.now() - changedMs).toBeLessThan(EFFECTIVE_WITHIN_MS)
    expect(await answer(notified, key)).toBe(code)
  })
})

it('a revocation takes effect at once again after the connection for notifications has recovered', async () => {
  const { key, id } = await makeWarmKey()
  await cutNotifications()
  await proxy.up()
  await expect.poll(() => disconnectable.subscriber.status).toBe('ready')
  // The subscription takes one more round trip.
  await disconnectable.subscriber.ping()
  await registry.keys.revoke(id)
  await expectAnswer(disconnectable, key, 'unauthorized', NOTIFIED_WITHIN_MS)
})

it('a new key is valid at once, before its notification arrives', async () => {
  for (let i = 0; i < 10; i += 1) {
    const made = await registry.keys.create('demo')
    expect(await answer(notified, made.key)).toBe('demo')
  }
})

it('a key that expires is rejected by every process, with or without cache and notification', async () => {
  const expiresAt = new Date(Date.now() + 4_000)
  const { key } = await makeWarmKey(expiresAt)
  await cutNotifications()
  await vi.waitUntil(() => Date.now() >= expiresAt.getTime(), { interval: 5 })
  for (const api of [notified, disconnectable]) expect(await answer(api, key)).toBe('unauthorized')
})

it('a disabled project accepts entries in time after it is enabled again, with or without notification', async () => {
  const { key } = await makeWarmKey()
  await registry.projects.setEnabled('demo', false)
  for (const api of [notified, disconnectable])
    await expectAnswer(api, key, 'project_not_found', NOTIFIED_WITHIN_MS)
  await cutNotifications()
  await registry.projects.setEnabled('demo', true)
  for (const api of [notified, disconnectable]) await expectAnswer(api, key, 'demo', EFFECTIVE_WITHIN_MS)
})

it('lookups that are made together fail in time while Redis stalls, and later ones succeed', async () => {
  const redis = connect(proxy.url, true)
  await vi.waitUntil(() => redis.status === 'ready')
  const authenticator = new Authenticator(new Registry(redis, prefix))
  const keys = [await registry.keys.create('demo'), await registry.keys.create('demo')]
  const answers = (): Promise<string[]> =>
    Promise.all(keys.map(({ key }) => answer({ ...notified, authenticator }, key)))
  proxy.hold('answer')
  const startedMs = performance.now()
  expect(await answers()).toEqual(['queue_unavailable', 'queue_unavailable'])
  expect(performance.now() - startedMs).toBeLessThan(2_000)
  proxy.resume()
  await expect.poll(answers, { timeout: EFFECTIVE_WITHIN_MS }).toEqual(['demo', 'demo'])
})
