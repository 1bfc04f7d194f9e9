import { postLogs } from '@sluice/harness'
import { type ApiApp, startApi, Supervisor } from '@sluice/local'
import { Registry } from '@sluice/projects'
import { connectRedis, installationNames, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'

/** The documented limit for a change of a key or a project. */
const EFFECTIVE_WITHIN_MS = 5_000

const prefix = `test-keys-${randomUUID()}`
let supervisor: Supervisor
let apis: ApiApp[]
let redis: RedisConnection
let registry: Registry

beforeAll(async () => {
  const { redisUrl } = inject('services')
  redis = connectRedis(redisUrl, { failFast: false })
  registry = new Registry(redis, installationNames(prefix).registryPrefix)
  supervisor = await Supervisor.open({})
  apis = await Promise.all(['api-1', 'api-2'].map((name) => startApi(supervisor, { name, prefix, redisUrl })))
  await registry.projects.create('demo')
})

afterAll(async () => {
  await supervisor?.stop()
  const keys = await redis.keys(`*${prefix}*`)
  if (keys.length > 0) await redis.del(keys)
  redis.disconnect()
})

/** The answer of each process to an empty batch. */
const statuses = (apiKey: string): Promise<number[]> =>
  Promise.all(apis.map(async ({ url }) => (await postLogs({ apiUrl: url, apiKey }, [])).status))

const everywhere = (apiKey: string, status: number): Promise<void> =>
  expect
    .poll(() => statuses(apiKey), { timeout: EFFECTIVE_WITHIN_MS, interval: 50 })
    .toEqual(apis.map(() => status))

it('a key is valid in every process, and in none after it is revoked', async () => {
  const { key, record } = await registry.keys.create('demo')
  expect(await statuses(key)).toEqual([202, 202])
  await registry.keys.revoke(record.id)
  await everywhere(key, 401)
})

it('every process rejects a project while it is disabled, and after it is deleted', async () => {
  await registry.projects.create('shop')
  const { key } = await registry.keys.create('shop')
  expect(await statuses(key)).toEqual([202, 202])
  await registry.projects.setEnabled('shop', false)
  await everywhere(key, 404)
  await registry.projects.setEnabled('shop', true)
  await everywhere(key, 202)
  await registry.projects.delete('shop')
  await everywhere(key, 404)
})

it('a process records the last use of keys when it stops', async () => {
  await registry.projects.create('used')
  const { key } = await registry.keys.create('used')
  // The use is recorded by the clock of Redis, which a process knows to half of a round trip.
  const beforeMs = Date.now() - 1_000
  expect(await statuses(key)).toEqual([202, 202])
  expect((await registry.keys.list('used'))[0]?.lastUsedAt).toBeUndefined()
  await apis[0]?.process.stop()
  const [record] = await registry.keys.list('used')
  expect(Date.parse(record?.lastUsedAt ?? '')).toBeGreaterThanOrEqual(beforeMs)
})
