import { FaultProxy } from '@sluice/harness'
import { Registry } from '@sluice/projects'
import { connectRedis, installationNames, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, expect, inject, it, vi } from 'vitest'
import { Authenticator } from '../src/authenticator.ts'
import { credentialLimits } from '../src/authenticator.ts'
import { HttpProblem as Problem } from '../src/problems.ts'
import { authenticatorOptions } from './fake-registry.ts'

const CLIENT = { ip: '192.0.2.1', socket: {} }

let prefix: string
let connections: RedisConnection[]
/** The registry through which the tests make changes. */
let registry: Registry
/** An API process: its lookups go through a proxy. */
let lookups: FaultProxy
let authenticator: Authenticator
let monotonicMs: number

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
  const redis = connect(lookups.url, true)
  monotonicMs = 0
  const options = { ...authenticatorOptions, monotonicMs: () => monotonicMs }
  authenticator = new Authenticator(new Registry(redis, prefix), options)
  await vi.waitUntil(() => redis.status === 'ready')
  await registry.projects.create('demo')
})

afterEach(async () => {
  const [redis] = connections
  const left = (await redis?.keys(`${prefix.replaceAll(/[{}]/g, '?')}:*`)) ?? []
  if (left.length > 0) await redis?.del(left)
  for (const connection of connections) connection.disconnect()
  await lookups.down()
})

const answer = (key: string): Promise<string> =>
  authenticator.authenticate(`Bearer ${key}`, CLIENT).then(
    ({ id }) => id,
    (error: unknown) => {
      if (error instanceof Problem) return error.code
      throw error
    },
  )

it.each([
  ['a revoked key', (id: string) => registry.keys.revoke(id), 'unauthorized'],
  ['a rotated key without an overlap', (id: string) => registry.keys.rotate(id, 0), 'unauthorized'],
  [
    'the key of a disabled project',
    () => registry.projects.update('demo', { enabled: false }),
    'project_not_found',
  ],
  ['the key of a deleted project', () => registry.projects.delete('demo'), 'project_not_found'],
])('%s is rejected when it is looked up again', async (_what, change, code) => {
  const { key, record } = await registry.keys.create('demo')
  expect(await answer(key)).toBe('demo')
  await change(record.id)
  monotonicMs += credentialLimits.trustMs
  expect(await answer(key)).toBe(code)
})

it('a new key is valid at once', async () => {
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
