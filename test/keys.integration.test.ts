import { type ApiApp, startApi, Supervisor } from '@sluice/local'
import { Registry } from '@sluice/projects'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { post } from './support.ts'

/** What the contract gives a change of a key or a project. */
const EFFECTIVE_WITHIN_MS = 5_000

const prefix = `test-keys-${randomUUID()}`
let supervisor: Supervisor
let apis: ApiApp[]
let redis: RedisConnection
let registry: Registry

beforeAll(async () => {
  const { redisUrl } = inject('services')
  redis = connectRedis(redisUrl, { failFast: false })
  registry = new Registry(redis, redisNames(prefix).registryPrefix)
  supervisor = await Supervisor.open({})
  apis = await Promise.all(['api-1', 'api-2'].map((name) => startApi(supervisor, { name, prefix, redisUrl })))
  await registry.createProject('demo')
})

afterAll(async () => {
  await supervisor?.stop()
  const keys = await redis.keys(`*${prefix}*`)
  if (keys.length > 0) await redis.del(keys)
  redis.disconnect()
})

/** What each process answers to an empty batch. */
const statuses = (apiKey: string): Promise<number[]> =>
  Promise.all(apis.map(async ({ url }) => (await post({ apiUrl: url, apiKey }, [])).status))

const everywhere = (apiKey: string, status: number): Promise<void> =>
  expect
    .poll(() => statuses(apiKey), { timeout: EFFECTIVE_WITHIN_MS, interval: 50 })
    .toEqual(apis.map(() => status))

it('a key is good in every process, and useless in every one when it is revoked', async () => {
  const { key, record } = await registry.createKey('demo')
  expect(await statuses(key)).toEqual([202, 202])
  await registry.revokeKey(record.id)
  await everywhere(key, 401)
})

it('a project is refused by every process while it is disabled, and when it is deleted', async () => {
  await registry.createProject('shop')
  const { key } = await registry.createKey('shop')
  expect(await statuses(key)).toEqual([202, 202])
  await registry.enableProject('shop', false)
  await everywhere(key, 404)
  await registry.enableProject('shop', true)
  await everywhere(key, 202)
  await registry.deleteProject('shop')
  await everywhere(key, 404)
})

it('a process that stops writes down which keys were used', async () => {
  await registry.createProject('used')
  const { key } = await registry.createKey('used')
  const beforeMs = Date.now()
  expect(await statuses(key)).toEqual([202, 202])
  expect((await registry.listKeys('used'))[0]?.lastUsedAt).toBeUndefined()
  await apis[0]?.process.stop()
  const [record] = await registry.listKeys('used')
  expect(Date.parse(record?.lastUsedAt ?? '')).toBeGreaterThanOrEqual(beforeMs)
})
