import { randomUUIDv7 } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { QuerySlots } from '../src/query-slots.ts'
import { type Entry, type RowFields, useQueryTests } from './support/test-query.ts'

const { clickhouse, store, open } = await useQueryTests()
const api = await open({}, afterAll)

const START = Date.UTC(2026, 0, 1)
const DAY_MS = 86_400_000
const range = { from: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z' }
const services = ['web', 'api', '', 'say "hi", \\ \n']

function makeRows(projectId: string, count: number): RowFields[] {
  return Array.from({ length: count }, (_, index) => ({
    projectId,
    timestamp: `${new Date(START + ((index * 7_919_003) % DAY_MS)).toISOString().slice(0, -1)}${String(index % 1_000).padStart(3, '0')}Z`,
    level: index % 5 === 0 ? 'error' : 'info',
    message: `message ${index}`,
    service: services[index % services.length] ?? '',
    ...(index % 2 === 0 && { metadata: `{"user":{"id":${index % 3}},"tag":"t${index % 20}","__proto__":1}` }),
  }))
}

const inTime = ({ timestamp, id }: Entry): string => `${timestamp}${id}`
const oldestFirst = (entries: readonly Entry[]): Entry[] =>
  entries.toSorted((a, b) => (inTime(a) < inTime(b) ? -1 : 1))

interface HistogramAnswer {
  readonly step_ms: number
  readonly buckets: { from: string; counts: Record<string, number>; other?: number }[]
  readonly total: number
}

const { projectId, key } = api.addProject()
const entries = oldestFirst(await store(makeRows(projectId, 600)))
await store(makeRows(api.addProject().projectId, 100))

describe('a project with entries', () => {
  it.each([1, 2, 24, 60, 499, 500])(
    'has a histogram of at most %s buckets whose sums agree',
    async (buckets) => {
      const answer: HistogramAnswer = await api.json(key, 'histogram', { ...range, buckets: String(buckets) })
      expect(answer.total).toBe(600)
      expect(answer.buckets.length).toBeLessThanOrEqual(buckets)
      for (const { from, counts } of answer.buckets) {
        const start = Date.parse(from)
        expect(start % answer.step_ms).toBe(0)
        const within = entries.filter(({ timestamp }) => {
          const ms = Date.parse(timestamp)
          return ms >= start && ms < start + answer.step_ms
        })
        const expected = Object.fromEntries(
          Object.entries(Object.groupBy(within, ({ level }) => level)).map(([level, all = []]) => [
            level,
            all.length,
          ]),
        )
        expect(counts).toEqual(expected)
      }
    },
  )

  it('has a histogram by a path in the metadata: others are counted together, and absent ones as an empty value', async () => {
    const answer: HistogramAnswer = await api.json(key, 'histogram', { ...range, by: 'tag', buckets: '1' })
    const [bucket] = answer.buckets
    // Ten values of 30 each, and 300 entries without a tag.
    expect(bucket?.counts['']).toBe(300)
    expect(Object.keys(bucket?.counts ?? {})).toHaveLength(11)
    const sum = Object.values(bucket?.counts ?? {}).reduce((a, b) => a + b, bucket?.other ?? 0)
    expect(sum).toBe(600)
    const byUser: HistogramAnswer = await api.json(key, 'histogram', {
      ...range,
      by: 'metadata.user.id',
      buckets: '1',
    })
    expect(byUser.buckets[0]?.counts).toEqual({ '': 300, 0: 100, 1: 100, 2: 100 })
  })

  it('has values of a column and of a path', async () => {
    expect(await api.json(key, 'values', { ...range, field: 'service', limit: '2' })).toMatchObject({
      values: [
        { value: 'api', count: 150 },
        { value: 'say "hi", \\ \n', count: 150 },
      ],
      total: 600,
    })
    expect(await api.json(key, 'values', { ...range, field: 'user.id' })).toMatchObject({
      values: [0, 1, 2].map((value) => ({ value: String(value), count: 100 })),
    })
  })

  it('has fields, with the paths of the metadata', async () => {
    const answer: { fields: { name: string; count: number }[]; sampled: number } = await api.json(
      key,
      'fields',
      range,
    )
    expect(answer.sampled).toBe(600)
    expect(Object.fromEntries(answer.fields.map(({ name, count }) => [name, count]))).toMatchObject({
      id: 600,
      message: 600,
      service: 450,
      'metadata.user.id': 300,
      'metadata.tag': 300,
    })
  })

  it('has the entries around one, in order', async () => {
    const at = 300
    const id = entries[at]?.id ?? ''
    expect(await api.status(key, 'context', { id: randomUUIDv7() })).toBe(404)
    const answer: { before: Entry[]; entry: Entry; after: Entry[] } = await api.json(key, 'context', {
      id,
      before: '7',
      after_count: '5',
    })
    expect([...answer.before, answer.entry, ...answer.after]).toEqual(
      entries.slice(at - 7, at + 6).map(withoutAbsent),
    )
    const same: typeof answer = await api.json(key, 'context', { id, same: 'service' })
    expect(same.after.every(({ service }) => service === answer.entry.service)).toBe(true)
    expect(same.after).toHaveLength(20)
  })

  it('has the entries around a dead letter that was retried, whose id is older than its receipt', async () => {
    const id = '0199cda0-0000-7000-8000-000000000001'
    const its = api.addProject()
    await store([{ projectId: its.projectId, id }])
    expect(await api.status(its.key, 'context', { id })).toBe(200)
  })

  it('is exported as NDJSON and as CSV, whole and in order', async () => {
    const response = await api.get(key, 'export', range)
    const lines = (await response.text()).trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line) as Entry)).toEqual(entries.map(withoutAbsent))
    const csv = await (await api.get(key, 'export', { ...range, format: 'csv', query: 'service:api' })).text()
    expect(csv.trimEnd().split('\r\n')).toHaveLength(151)
  })
})

/** Absent strings are left out. */
function withoutAbsent<T extends object>(entry: T): T {
  return Object.fromEntries(
    Object.entries(entry).filter(([, value]) => value !== '' && value !== undefined),
  ) as T
}

describe('metadata of which ClickHouse alone reads nothing', () => {
  it.each([
    ['a number beyond 64 bits', '"n":123456789012345678901234567890'],
    ['a number beyond floats, and a text with one', String.raw`"n":1e400,"s":"\",:12345678901234567890"`],
    ['a path that it names twice', '"a.b":1,"a":{"b":2}'],
  ])('has its fields and values, with %s', async (_what, members) => {
    const own = api.addProject()
    await store([{ projectId: own.projectId, metadata: `{"user":{"id":"ann"},${members}}` }])
    const field = 'user.id'
    const values = { values: [{ value: 'ann', count: 1 }] }
    expect(await api.json(own.key, 'values', { field })).toMatchObject(values)
    const bucket = { counts: { ann: 1 } }
    expect(await api.json(own.key, 'histogram', { by: field, buckets: '1' })).toMatchObject({
      buckets: [bucket],
    })
    const fields = expect.arrayContaining([{ name: 'metadata.user.id', count: 1 }])
    expect(await api.json(own.key, 'fields')).toMatchObject({ fields })
  })
})

it('counts entries with long values', async () => {
  const own = api.addProject()
  const messages = Array.from({ length: 12 }, (_, index) => `${index}${'é'.repeat(65_000)}`)
  await store([...messages, 'short'].map((message) => ({ projectId: own.projectId, message })))
  const answer = await api.json(own.key, 'histogram', { by: 'message', buckets: '1' })
  expect(answer).toMatchObject({ buckets: [{ other: 13 }], total: 13 })
})

it('takes dates, and says what a time is', async () => {
  const own = api.addProject()
  await store([{ projectId: own.projectId, timestamp: '2026-01-01T00:00:00.000000Z' }])
  const answer = await api.json(own.key, 'histogram', { from: '2026-01-01', until: '2026-01-02' })
  expect(answer).toMatchObject({ total: 1 })
  const problem = await (await api.get(own.key, 'logs', { from: 'monday' })).json()
  expect(problem).toMatchObject({ detail: expect.stringContaining('such as -15m, 2026-11-24') })
})

describe('another project', () => {
  it('is never read, whatever id, cursor or parameter is sent', async () => {
    const mine = api.addProject()
    const theirs = api.addProject()
    const secret = (await store(makeRows(theirs.projectId, 40)))[0]?.id ?? ''
    const own = await store(makeRows(mine.projectId, 3))
    expect(await api.status(mine.key, 'context', { id: secret })).toBe(404)
    const page: { next: string } = await api.json(theirs.key, 'logs', { ...range, limit: '1' })
    const stolen: { entries: Entry[] } = await api.json(mine.key, 'logs', { ...range, cursor: page.next })
    expect(own.map(({ id }) => id)).toEqual(expect.arrayContaining(stolen.entries.map(({ id }) => id)))
    expect(await api.status(mine.key, 'logs', { ...range, project: theirs.projectId })).toBe(400)
  })
})

describe('a hostile parameter', () => {
  const texts = [
    "' OR 1=1 --",
    "') OR 1=1 UNION ALL SELECT * FROM logs --",
    '{project:String}',
    String.raw`\' OR true; DROP TABLE logs`,
    '\u0000',
    '\ud800',
    'a'.repeat(5_000),
    '%00',
    '__proto__',
    '-99999999999d',
    '1e400',
    'null',
    '[]',
  ]
  const parameters = [
    ...['query', 'from', 'until', 'after', 'order', 'limit', 'cursor'].map((name) => ['logs', name] as const),
    ['histogram', 'by'],
    ['histogram', 'buckets'],
    ['values', 'field'],
    ['context', 'id'],
    ['context', 'same'],
    ['export', 'format'],
  ] as const

  it.each(parameters)('of %s, %s, is rejected or a value, and never SQL', async (operation, name) => {
    const its = api.addProject()
    await store([{ projectId: its.projectId, message: 'only one' }])
    for (const text of texts) {
      const response = await api.get(its.key, operation, {
        ...(operation === 'values' && { field: 'level' }),
        ...(operation === 'context' && { id: randomUUIDv7() }),
        [name]: text,
      })
      const body = await response.text()
      expect([200, 400, 404], `${text}: ${body}`).toContain(response.status)
      expect(body.match(/"id":/g)?.length ?? 0).toBeLessThan(2)
    }
    const twice = await fetch(`${api.url}/v1/query/${operation}?${name}=a&${name}=b`, {
      headers: { authorization: `Bearer ${its.key}` },
    })
    expect(twice.status).toBe(400)
    await twice.text()
  })
})

describe('a query that is too expensive', () => {
  it('is rejected with what it would read, or says what ended it', async () => {
    const limited = await open({ limits: { rowsMax: 10 } })
    const its = limited.addProject()
    await store(makeRows(its.projectId, 600))
    const histogram = await limited.get(its.key, 'histogram', range)
    expect(histogram.status).toBe(422)
    expect(await histogram.json()).toMatchObject({
      code: 'query_too_expensive',
      detail: expect.stringMatching(/would read about [\d,]+ entries.*Narrow/),
    })
    const logs = await limited.get(its.key, 'logs', { ...range, query: 'nowhere' })
    const answer = (await logs.json()) as { code?: string; limited_by?: string; next?: string }
    // The first window may be empty, and then the answer has its end.
    expect(answer.code ?? answer.limited_by).toMatch(/^(query_too_expensive|rows)$/)
  })
})

it('an export ends when its key is revoked', async () => {
  const fresh = await open()
  const its = fresh.addProject()
  await clickhouse.command({
    query: `INSERT INTO logs (project_id, received_at, timestamp, expires_on, id, message)
      SELECT {project:String}, now64(3), now64(6) - number / 1000, today() + 9, generateUUIDv7(), repeat('abcdefghij', 100) FROM numbers(50000)`,
    query_params: { project: its.projectId },
  })
  const client = fresh.ask('/v1/query/export?from=-1h', its.key)
  await expect.poll(() => fresh.queries).toBeGreaterThan(0)
  // At once: the authenticator has the same record.
  Object.assign(its.record, { revokedAt: new Date().toISOString() })
  client.read()
  await expect.poll(() => fresh.slots.running).toBe(0)
  expect(client.text.match(/"id":/g) ?? []).not.toHaveLength(50_000)
})

describe('queries at once', () => {
  it('are limited per project, and end in ClickHouse when their clients go', async () => {
    const slow = await open({ slots: new QuerySlots(3, 2) })
    const its = slow.addProject()
    await clickhouse.command({
      query: `INSERT INTO logs (project_id, received_at, timestamp, expires_on, id, message)
        SELECT {project:String}, now64(3), now64(6) - number / 1000, today() + 9, generateUUIDv7(), repeat('abcdefghij', 200) FROM numbers(60000)`,
      query_params: { project: its.projectId },
    })
    const gone = new AbortController()
    // An export whose client reads nothing keeps its slot.
    const exports = await Promise.all(
      [1, 2].map(() => slow.get(its.key, 'export', { from: '-1h' }, { signal: gone.signal })),
    )
    expect(exports.map(({ status }) => status)).toEqual([200, 200])
    const third = await slow.get(its.key, 'logs')
    expect([third.status, third.headers.get('retry-after')]).toEqual([429, '1'])
    await third.text()
    const page = await slow.metrics.page.text()
    expect(page).toContain('sluice_query_rejected_total{reason="too_many_queries"} 1\n')
    expect(page).toContain('sluice_query_requests_total{route="/v1/query/logs",status="429"} 1\n')
    expect(await slow.status(slow.addProject().key, 'logs')).toBe(200)
    gone.abort()
    await expect.poll(() => slow.status(its.key, 'logs')).toBe(200)
  })
})
