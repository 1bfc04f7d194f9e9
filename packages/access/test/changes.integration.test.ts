import { FaultProxy } from '@sluice/harness'
import { Registry } from '@sluice/projects'
import { connectRedis, installationNames, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, expect, inject, it, vi } from 'vitest'
import { Authenticator } from '../src/authenticator.ts'
import { HttpProblem as Problem } from '../src/problems.ts'
import { authenticatorOptions } from './fake-registry.ts'

const CLIENT = { ip: '192.0.2.1', socket: {} }

let prefix: string
let connections: RedisConnection[]
/** The registry through which the tests make changes. */
let registry: Registry
/** An API process: its lookups, and its notifications, go through proxies. */
let lookups: FaultProxy
let notifications: FaultProxy
let subscriber: RedisConnection
let authenticator: Authenticator

const connect = (url: string, failFast: boolean): RedisConnection => {
  const redis = connectRedis(url, { failFast, ...(failFast ? { commandTimeoutMs: 1_800 } : {}) })
  connections.push(redis.on('error', () => undefined))
  return redis
}

beforeEach(async () => {
  const { redisUrl } = inject('services')
  connections = []
  prefix = installationNames(`test-changes-${randomUUID()}`).registryPrefix
  registry = new Registry(connect(redisUrl, false), prefix)
  lookups = await FaultProxy.open(redisUrl)
  notifications = await FaultProxy.open(redisUrl)
  const redis = connect(lookups.url, true)
  authenticator = new Authenticator(new Registry(redis, prefix), authenticatorOptions)
  subscriber = connect(notifications.url, false)
  subscriber.on('message', (_channel: string, change: string) => authenticator.invalidate(change))
  await subscriber.subscribe(registry.changesChannel)
  await vi.waitUntil(() => redis.status === 'ready')
  await registry.projects.create('demo')
})

afterEach(async () => {
  const [redis] = connections
  const left = (await redis?.keys(`${prefix.replaceAll(/[{}]/g, '?')}:*`)) ?? []
  if (left.length > 0) await redis?.del(left)
  for (const connection of connections) connection.disconnect()
  await Promise.all([lookups.down(), notifications.down()])
})

const answer = (key: string): Promise<string> =>
  authenticator.authenticate(`Bearer ${key}`, CLIENT).then(
    ({ id }) => id,
    (error: unknown) => {
      if (error instanceof Problem) return error.code
      throw error
    },
  )

/** Waits for the notifications of all changes until now: Redis replies after it has sent them. */
const notified = (): Promise<unknown> => subscriber.ping()

/** Creates a key that the process has just looked up. */
async function makeWarmKey(): Promise<{ key: string; id: string }> {
  const made = await registry.keys.create('demo')
  // A late notification of this creation would drop what the tests need in the cache.
  await notified()
  expect(await answer(made.key)).toBe('demo')
  return { key: made.key, id: made.record.id }
}

it.each([
  ['a revoked key', (id: string) => registry.keys.revoke(id), 'unauthorized'],
  ['a rotated key without an overlap', (id: string) => registry.keys.rotate(id, 0), 'unauthorized'],
  ['the key of a disabled project', () => registry.projects.setEnabled('demo', false), 'project_not_found'],
  ['the key of a deleted project', () => registry.projects.delete('demo'), 'project_not_found'],
])('%s is rejected as soon as the notification arrives', async (_what, change, code) => {
  const { key, id } = await makeWarmKey()
  await change(id)
  await notified()
  expect(await answer(key)).toBe(code)
})

it('without notifications a change takes effect too, and with them at once again when they are back', async () => {
  const { key, id } = await makeWarmKey()
  await notifications.down()
  await expect.poll(() => subscriber.status).not.toBe('ready')
  await registry.projects.setEnabled('demo', false)
  await expect.poll(() => answer(key)).toBe('project_not_found')
  await registry.projects.setEnabled('demo', true)
  await expect.poll(() => answer(key)).toBe('demo')
  await notifications.up()
  await expect.poll(() => subscriber.status).toBe('ready')
  await notified()
  await registry.keys.revoke(id)
  await notified()
  expect(await answer(key)).toBe('unauthorized')
})

it('a new key is valid at once, before its notification arrives', async () => {
  await notifications.down()
  for (let i = 0; i < 10; i += 1) expect(await answer((await registry.keys.create('demo')).key)).toBe('demo')
})

it('a Redis that is silent causes queue_unavailable, and keys are valid when it replies again', async () => {
  const keys = [await registry.keys.create('demo'), await registry.keys.create('demo')]
  const answers = (): Promise<string[]> => Promise.all(keys.map(({ key }) => answer(key)))
  lookups.hold('answer')
  expect(await answers()).toEqual(['queue_unavailable', 'queue_unavailable'])
  lookups.resume()
  await expect.poll(answers).toEqual(['demo', 'demo'])
})
