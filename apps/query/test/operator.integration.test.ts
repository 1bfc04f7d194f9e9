import { type ClickHouseClient, ClickHouseError, DeadLetterStore } from '@sluice/clickhouse'
import { Heartbeat, QueueGauge, RetryRequests } from '@sluice/ops'
import { lateInserts, queueNames, ShardCount } from '@sluice/queue'
import { rowAsJson } from '@sluice/rows'
import { connectRedis, createLogger, plainRedis, type RedisConnection, redisServers } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, beforeEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { connectAgain, makeRow } from '../../../packages/clickhouse/test/test-database.ts'
import { DeadLetterRetries } from '../../worker/src/dead-letter-retries.ts'
import { Pipeline } from '../src/pipeline.ts'
import { foreignHeaders, problemOf, useQueryTests } from './support/test-query.ts'

const logger = createLogger('test', 'silent')
const prefix = `operator-${randomUUID()}`
let nowMs = Date.now()

/** Of an installation in this Redis. It reads only when it is told to. */
function openPipeline(connection: RedisConnection): Pipeline {
  const shards = new ShardCount(connection, prefix, 1)
  const options = {
    redis: connection,
    prefix,
    shards,
    logger,
    wallMs: () => nowMs,
    monotonicMs: () => performance.now(),
    completePoint: { until: () => Promise.resolve(nowMs - 500) },
  }
  const gauge = new QueueGauge({ ...options, servers: () => redisServers(connection), memoryBytes: 1e9 })
  const opened = new Pipeline({ ...options, gauge })
  opened.stop()
  return opened
}

const { clickhouse, open } = await useQueryTests()
const redis = connectRedis(inject('services').redisUrl, { failFast: false })
const pipeline = openPipeline(redis)
const retries = new RetryRequests(redis, prefix)
const api = await open({ pipeline, retries }, afterAll)
const { key: admin } = api.addProject(['read', 'admin'])

beforeEach(async () => {
  await clickhouse.command({ query: 'TRUNCATE TABLE dead_letters' })
  await redis.del(...(await redis.keys(`*${prefix}*`)), 'none')
})
afterAll(async () => {
  await redis.del(...(await redis.keys(`*${prefix}*`)), 'none')
  redis.disconnect()
})

interface Letters {
  readonly total: number
  readonly groups: readonly Record<string, unknown>[]
  readonly retry: Record<string, unknown> | null
}

const ask = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${api.url}/v1/query/dead-letters/retry`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${admin}`, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

interface LetterFields {
  readonly code?: string
  readonly reason?: string
  readonly project?: string
}
async function storeLetter({ code = 'X', reason = '', project = 'shop' }: LetterFields = {}): Promise<{
  readonly id: string
  readonly message: string
}> {
  const [id, message] = [randomUUID(), `secret ${randomUUID()}`]
  const text = rowAsJson(makeRow({ projectId: project }, { message }))
  const failedAt = new Date(nowMs).toISOString().slice(0, -1)
  await clickhouse.insert({
    table: 'dead_letters',
    values: [{ id, project_id: project, failed_at: failedAt, code, reason, text }],
    format: 'JSONEachRow',
  })
  return { id, message }
}

const storedTimes = async (message: string): Promise<number> => {
  const result = await clickhouse.query({
    query: 'SELECT id FROM logs WHERE message = {message: String}',
    query_params: { message },
    format: 'JSONEachRow',
  })
  return (await result.json()).length
}

const worker = (its = clickhouse): DeadLetterRetries =>
  new DeadLetterRetries({
    redis,
    requests: retries,
    store: new DeadLetterStore(its),
    late: lateInserts(plainRedis(redis), queueNames(prefix)),
    logger,
  })

describe('the scope admin', () => {
  it.each(['pipeline', 'dead-letters'])('is needed for %s', async (path) => {
    const reader = api.addProject().key
    expect(await problemOf(await api.get(reader, path))).toBe('403 forbidden')
    expect(await problemOf(await api.get('slk_wrong', path))).toBe('401 unauthorized')
    const given = await api.get(admin, path, { project: 'shop' })
    expect(await problemOf(given)).toBe('400 invalid_parameter')
  })

  it('is needed for a retry, which changes nothing otherwise', async () => {
    const { key } = api.addProject()
    const asked = await ask({ id: randomUUID() }, { authorization: `Bearer ${key}` })
    expect(await problemOf(asked)).toBe('403 forbidden')
    expect(await retries.read()).toBeNull()
  })
})

const reason = (name: string): string => `Constraint \`${name}\` for table logs is violated. Expression: (…)`

describe('a retry', () => {
  it.each(foreignHeaders)('is not begun by another site: %j', async (headers) => {
    expect(await problemOf(await ask({ id: randomUUID() }, headers))).toBe('403 cross_origin')
    expect(await retries.read()).toBeNull()
  })

  it.each([
    {},
    { id: 'all' },
    { id: 1 },
    { code: 'X' },
    { code: 'X', reason: 1 },
    { code: 'X', reason: 'y'.repeat(2_001) },
    { id: randomUUID(), code: 'X' },
    [],
    '{',
    'null',
  ])('is not begun with body %#', async (body) => {
    expect(await problemOf(await ask(body))).toBe('400 invalid_body')
    expect(await problemOf(await ask(body, { 'content-type': 'text/plain' }))).toBe('400 invalid_body')
    expect(await retries.read()).toBeNull()
  })

  it('stores a row once, however often it is asked for, and by how many workers', async () => {
    const [one, other] = [await storeLetter(), await storeLetter()]
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async () => (await ask({ id: one.id })).status),
    )
    expect(new Set(statuses)).toEqual(new Set([202]))
    expect(await problemOf(await ask({ id: other.id }))).toBe('409 retry_running')
    await Promise.all([worker().check(), worker().check(), worker().check()])
    expect(await retries.read()).toEqual({
      choice: { id: one.id },
      state: 'done',
      inserted: 1,
      rejected: 0,
      reason: '',
    })
    expect(await storedTimes(one.message)).toBe(1)
    expect(await storedTimes(other.message)).toBe(0)
    // Again, when its dead letter is gone.
    expect((await ask({ id: one.id })).status).toBe(202)
    await worker().check()
    expect(await retries.read()).toMatchObject({ state: 'done', inserted: 0 })
    expect(await storedTimes(one.message)).toBe(1)
  })

  it('takes all rows with a code and a reason, and no others', async () => {
    const chosen = await storeLetter({ code: 'VIOLATED_CONSTRAINT', reason: reason('a') })
    const project = await storeLetter({
      code: 'VIOLATED_CONSTRAINT',
      reason: reason('a'),
      project: 'billing',
    })
    const others = [
      await storeLetter({ code: 'VIOLATED_CONSTRAINT', reason: reason('b') }),
      await storeLetter({ code: 'CANNOT_PARSE_DATE' }),
    ]
    await ask({ code: 'VIOLATED_CONSTRAINT', reason: 'Constraint `a`' })
    await worker().check()
    const times = await Promise.all([chosen, project, ...others].map(({ message }) => storedTimes(message)))
    expect(times).toEqual([1, 1, 0, 0])
    expect(await new DeadLetterStore(clickhouse).count()).toMatchObject({ total: 2 })
  })

  it('goes on with another worker if its worker stops, and says why it failed', async () => {
    const { id, message } = await storeLetter()
    await ask({ id })
    const stopping = worker()
    stopping.stop()
    await stopping.check()
    expect(await retries.read()).toMatchObject({ state: 'waiting' })
    const closed = await connectAgain(clickhouse, { url: 'http://127.0.0.1:1' })
    onTestFinished(() => closed.close())
    await worker(closed).check()
    expect(await retries.read()).toMatchObject({
      state: 'failed',
      reason: expect.stringContaining('ECONNREFUSED') as string,
    })
    await ask({ id })
    await worker().check()
    expect(await storedTimes(message)).toBe(1)
  })
})

describe('dead letters', () => {
  it('are grouped by what never has a value of a row', async () => {
    const quoted = `Cannot parse input: expected ',' before: 'secret'`
    const own = `Constraint \`c\` for table x is violated at row 1. Column values: message = 'secret'`
    for (const project of ['shop', 'billing'])
      await storeLetter({ code: 'VIOLATED_CONSTRAINT', reason: own, project })
    const { id } = await storeLetter({ code: 'CANNOT_PARSE_TEXT', reason: quoted })
    await storeLetter({ code: 'CANNOT_PARSE_TEXT', reason: 'Constraint `secret`' })
    const unreadable = 'the frame cannot be read'
    await storeLetter({ code: 'UNREADABLE_CHUNK', reason: unreadable, project: '' })
    // Answers are shared for two seconds.
    const fresh = await open({ pipeline, retries })
    const answer = await fresh.json<Letters>(fresh.addProject(['admin']).key, 'dead-letters')
    expect(answer.total).toBe(5)
    expect(
      answer.groups.map(({ code, reason: said, count, projects }) => [code, said, count, projects]),
    ).toEqual([
      ['CANNOT_PARSE_TEXT', '', 2, ['shop']],
      ['VIOLATED_CONSTRAINT', 'Constraint `c`', 2, ['billing', 'shop']],
      ['UNREADABLE_CHUNK', unreadable, 1, ['']],
    ])
    expect(JSON.stringify(answer.groups[0]?.['letters'])).toContain(id)
    expect(answer.groups[0]?.['letters']).toEqual(
      Array.from({ length: 2 }, () => ({
        id: expect.any(String) as string,
        project_id: 'shop',
        failed_at: expect.any(String) as string,
      })),
    )
    expect(JSON.stringify(answer)).not.toContain('secret')
  })

  it('cost one query, however many look', async () => {
    const fresh = await open({ pipeline, retries })
    const { key } = fresh.addProject(['admin'])
    await Promise.all(Array.from({ length: 20 }, () => fresh.json(key, 'dead-letters')))
    expect(fresh.queries).toBe(1)
  })

  it.each([
    ['without ClickHouse', 'database_unavailable', new Error('connect ECONNREFUSED')],
    [
      'if the user of an older installation may not read them',
      'database_forbidden',
      new ClickHouseError({ code: '497', type: 'ACCESS_DENIED', message: 'Not enough privileges' }),
    ],
  ])('are not known %s', async (_when, code, error) => {
    const fresh = await open({ client: { query: () => Promise.reject(error) }, pipeline, retries })
    const { key } = fresh.addProject(['admin'])
    expect(await problemOf(await fresh.get(key, 'dead-letters'))).toBe(`503 ${code}`)
  })

  it('are not known while ClickHouse is silent', async () => {
    const silence = new AbortController()
    vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(silence.signal)
    const query: ClickHouseClient['query'] = async ({ abort_signal: signal }) => {
      silence.abort(new DOMException('the time has passed', 'TimeoutError'))
      signal?.throwIfAborted()
      return new Promise(() => undefined)
    }
    const fresh = await open({ client: { query }, pipeline, retries })
    const { key } = fresh.addProject(['admin'])
    expect(await problemOf(await fresh.get(key, 'dead-letters'))).toBe('503 database_unavailable')
  })
})

describe('the pipeline', () => {
  type State = Record<string, unknown> & { readonly history: readonly unknown[] }
  const stateOf = async (): Promise<State> => api.json<State>(admin, 'pipeline')

  it('has rates, backlog, age and lag, by shard and process, and one reading for all viewers', async () => {
    const names = queueNames(prefix)
    await redis.hset(names.totalsKey, { added: 100, inserted: 60, 'dead-lettered': 10 })
    const counts = { accepted: 100, rejected: 4 }
    const heartbeat = new Heartbeat({
      redis,
      prefix,
      processId: 'a',
      role: 'api',
      host: 'web-1',
      pid: 7,
      version: '1.2.3',
      readiness: () => ({ ready: true, reasons: [] }),
      queues: { canRead: true, report: undefined, update: async () => undefined },
      work: () => ({ counts: { ...counts }, lag: { chunks: 1, meanS: 0.5, maxS: 1.5 } }),
      monotonicMs: () => 0,
      logger,
    })
    await heartbeat.check()
    // Each call has what was read before it.
    const reading = async (): Promise<State> => {
      const before = (await stateOf().catch(() => undefined))?.['at']
      await expect
        .poll(async () => {
          pipeline.runNow()
          return (await stateOf().catch(() => undefined))?.['at'] ?? before
        })
        .not.toBe(before)
      return stateOf()
    }
    nowMs += 500_000
    const first = await reading()
    expect(first).toMatchObject({
      backlog: 30,
      oldest_age_s: 0,
      lag_s: 1.5,
      complete_behind_s: 0.5,
    })
    await redis.hset(names.totalsKey, { added: 2_600, inserted: 2_590, 'dead-lettered': 10 })
    Object.assign(counts, { accepted: 2_600, rejected: 1_004 })
    await heartbeat.check()
    // Last: a reading that is under way would have the new time with the counts from before.
    nowMs += 500_000
    const second = await reading()
    // A report has its time by the clock of Redis.
    const [about5, about2] = [5, 2].map((rate) => expect.closeTo(rate, 0) as number)
    expect(second).toMatchObject({
      accepted: 5,
      stored: 5.06,
      dead_lettered: 0,
      rejected: about2,
      backlog: 0,
      shards: [
        { shard: 0, is_reachable: true, entries: 0, rates: { accepted: 5, stored: 5.06, dead_lettered: 0 } },
      ],
      processes: [
        {
          id: 'a',
          role: 'api',
          host: 'web-1',
          is_silent: false,
          rates: { accepted: about5, rejected: about2 },
        },
      ],
    })
    expect(second.history.length).toBeGreaterThanOrEqual(2)
    const all = await Promise.all(Array.from({ length: 50 }, stateOf))
    expect(new Set(all.map(({ at }) => at)).size).toBe(1)
  })

  it('is not known, and says so at once, if Redis is down or silent', async () => {
    const silent = createServer((socket) => void socket.resume()).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    onTestFinished(() => void silent.close())
    for (const port of [1, (silent.address() as AddressInfo).port]) {
      const connection = connectRedis(`redis://127.0.0.1:${port}`, { failFast: true, commandTimeoutMs: 100 })
      connection.on('error', () => undefined)
      const broken = openPipeline(connection)
      const fresh = await open({ pipeline: broken, retries: new RetryRequests(connection, prefix) })
      const { key } = fresh.addProject(['admin'])
      broken.runNow()
      for (const path of ['pipeline', 'dead-letters']) {
        const response = await fresh.get(key, path)
        expect(response.headers.get('retry-after')).toMatch(/^\d$/)
        expect(await problemOf(response)).toBe('503 queue_unavailable')
      }
      connection.disconnect()
    }
  })
})
