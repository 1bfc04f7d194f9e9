import { type LogsResponse, postLogs } from '@sluice/harness'
import { type ApiApp, provisionProject, startApi, Supervisor } from '@sluice/local'
import { Registry } from '@sluice/projects'
import { connectRedis, installationNames, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'

// A project that makes a new idempotency key for each request must not fill Redis for the others.

const KEYS_MAX = 1_000
const AT_ONCE = 50

const prefix = `test-idempotency-flood-${randomUUID()}`
let supervisor: Supervisor
let api: ApiApp
let redis: RedisConnection
let registry: Registry

beforeAll(async () => {
  const { redisUrl } = inject('services')
  redis = connectRedis(redisUrl, { failFast: false })
  registry = new Registry(redis, installationNames(prefix).registryPrefix)
  supervisor = new Supervisor({})
  const environment = { IDEMPOTENCY_KEYS_PER_PROJECT_MAX: String(KEYS_MAX) }
  api = await startApi(supervisor, { prefix, redisUrl, environment })
})

afterAll(async () => {
  await supervisor?.stop()
  const keys = await redis.keys(`*${prefix}*`)
  if (keys.length > 0) await redis.del(keys)
  redis.disconnect()
})

const recordCount = async (): Promise<number> => (await redis.keys(`*${prefix}*:idempotency:*`)).length

const createKey = (project: string): Promise<string> => provisionProject(registry, project)

const post = (apiKey: string, body: unknown, idempotencyKey: string): Promise<LogsResponse> =>
  postLogs({ apiUrl: api.url, apiKey }, body, { 'idempotency-key': idempotencyKey })

/** Sends requests with new idempotency keys. @returns how many got each status */
async function flood(apiKey: string, body: unknown, count: number): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {}
  for (let sent = 0; sent < count; sent += AT_ONCE) {
    const answers = Array.from({ length: AT_ONCE }, () => post(apiKey, body, randomUUID()))
    for (const { status } of await Promise.all(answers)) statuses[status] = (statuses[status] ?? 0) + 1
  }
  return statuses
}

const entry = { level: 'info', message: 'm' }

it('stores no records of requests without rows', async () => {
  const apiKey = await createKey('empty')
  expect(await flood(apiKey, [], 500)).toEqual({ 202: 500 })
  expect(await flood(apiKey, [{}], 500)).toEqual({ 202: 500 })
  expect(await recordCount()).toBe(0)
})

it('limits requests without entries like an entry each', async () => {
  const apiKey = await createKey('slow')
  await registry.projects.update('slow', { entriesPerSecond: 1, burstEntries: 10 })
  const { 202: accepted = 0, 429: rejected = 0 } = await flood(apiKey, [], 500)
  expect(accepted + rejected).toBe(500)
  expect(accepted).toBeLessThan(30)
})

it('stores at most the records that a project may have, and other projects are not affected', async () => {
  const [rogue, other] = [await createKey('rogue'), await createKey('other')]
  const first = await post(rogue, entry, 'first')
  expect(await flood(rogue, entry, 2 * KEYS_MAX)).toEqual({ 202: KEYS_MAX - 1, 429: KEYS_MAX + 1 })
  expect(await recordCount()).toBe(KEYS_MAX)

  const rejected = await post(rogue, entry, 'another')
  expect(rejected).toMatchObject({ status: 429, body: { code: 'too_many_idempotency_keys' } })
  expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThan(3_600)
  const replay = await post(rogue, entry, 'first')
  expect(replay.headers.get('idempotency-replayed')).toBe('true')
  expect(replay.text).toBe(first.text)
  expect((await post(rogue, [entry], 'first')).status).toBe(422)
  expect((await postLogs({ apiUrl: api.url, apiKey: rogue }, entry)).status).toBe(202)
  expect((await post(other, entry, 'first')).status).toBe(202)
})
