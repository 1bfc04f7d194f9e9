import { eventually, postLogs } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let installation: Installation

beforeAll(async () => {
  installation = await startTestInstallation({ worker: { environment: { LOCK_DURATION_MS: '2000' } } })
})

afterAll(() => installation?.stop())

const logsWhere = <Row>(columns: string, condition: string, parameters: Record<string, string>) =>
  select<Row>(installation.clickhouse, `SELECT ${columns} FROM logs WHERE ${condition}`, parameters)

/** The number of rows of a service, and the number of distinct messages. */
async function counts(service: string): Promise<{ rows: number; distinct: number }> {
  const [row] = await logsWhere<{ rows: number; distinct: number }>(
    'toUInt32(count()) AS rows, toUInt32(uniqExact(message)) AS distinct',
    'service = {service: String}',
    { service },
  )
  return row ?? { rows: 0, distinct: 0 }
}

async function sendBatches(service: string, batches: number): Promise<number> {
  for (let batch = 0; batch < batches; batch += 1) {
    const logs = Array.from({ length: 10 }, (_, i) => ({ level: 'info', message: `${batch}-${i}`, service }))
    const { status, body } = await postLogs(installation, { logs })
    expect({ status, body }).toEqual({ status: 202, body: { success: true, accepted: 10, rejected: 0 } })
  }
  return batches * 10
}

describe('an entry', () => {
  it('is in ClickHouse within two seconds, with all fields and metadata', async () => {
    const entry = {
      level: 'error',
      message: 'quote " backslash \\ newline \n tab \t nul \u0000 separator \u2028 emoji 😀 accents éü',
      timestamp: '2026-03-29T01:30:00.123456789+02:00',
      environment: 'production',
      source: 'edge',
      service: 'pipeline',
      url: 'https://example.com/a?b=c#d',
      pathname: '/a',
      stack: 'Error: x\n    at y',
      metadata: { user: 7 },
      unknownField: [1, 2],
    }
    const { status, body } = await postLogs(installation, entry)
    expect(status).toBe(202)
    expect(body).toEqual({ id: expect.any(String), status: 'accepted', timestamp: entry.timestamp })
    const { id } = body as { id: string }
    const [row] = await eventually(async () => {
      const rows = await logsWhere<Record<string, unknown>>('*', 'id = {id: UUID}', { id })
      expect(rows).toHaveLength(1)
      return rows
    })
    const { metadata: _metadata, timestamp: _timestamp, unknownField: _unknown, ...columns } = entry
    expect(row).toMatchObject({
      ...columns,
      id,
      project_id: installation.projectId,
      timestamp: '2026-03-28 23:30:00.123456',
      metadata_text: '{"user":7,"unknownField":[1,2]}',
    })
  })
})

describe('metadata', () => {
  const names = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`name ${i}`, i]))
  const hardCases: readonly [string, string][] = [
    ['nested objects', '{"a":{"b":{"c":{"d":[{"e":1}]}}}}'],
    ['names with dots', '{"a.b":1,"a":{"b":2},"c.d.e":{"f.g":3}}'],
    [
      '64-bit integers',
      '{"min":-9223372036854775808,"max":9223372036854775807,"unsigned":18446744073709551615}',
    ],
    ['larger integers', '{"big":123456789012345678901234567890,"negative":-123456789012345678901234567890}'],
    [
      'floats',
      '{"tenth":0.1,"tiny":5e-324,"huge":1.7976931348623157e+308,"beyond":1e400,"digits":3.141592653589793}',
    ],
    ['unicode', '{"emoji 😀":"😀","nul":"a\\u0000b","line":"a\\u2028b","quote\\"":"\\\\"}'],
    [
      'names of Object.prototype',
      '{"__proto__":{"polluted":true},"constructor":1,"toString":2,"hasOwnProperty":3}',
    ],
    ['250 names', JSON.stringify(names)],
    ['16 levels', `${'{"a":'.repeat(16)}1${'}'.repeat(16)}`],
    ['a name with one type', '{"flip":"text"}'],
    ['the same name with another type', '{"flip":{"now":"an object"}}'],
  ]

  it('is stored unchanged', async () => {
    const logs = hardCases.map(
      ([name, metadata]) =>
        `{"level":"info","message":${JSON.stringify(name)},"service":"hard","metadata":${metadata}}`,
    )
    expect(await postLogs(installation, `[${logs.join(',')}]`)).toMatchObject({ status: 202 })
    const rows = await eventually(async () => {
      const found = await logsWhere<{ message: string; metadata_text: string }>(
        'message, metadata_text',
        'service = {service: String}',
        { service: 'hard' },
      )
      expect(found).toHaveLength(hardCases.length)
      return found
    })
    const stored = Object.fromEntries(rows.map(({ message, metadata_text: json }) => [message, json]))
    // Compares the strings: JavaScript can represent neither large integers nor 1e400.
    expect(stored).toEqual(Object.fromEntries(hardCases))
  })

  it('can be queried by path, even next to numbers beyond 64 bits', async () => {
    const metadata = '{"user":{"id":42},"big":123456789012345678901234567890}'
    const { body } = await postLogs(installation, `{"level":"info","message":"paths","metadata":${metadata}}`)
    const { id } = body as { id: string }
    const columns = 'metadata.user.id::Int64 AS user, metadata.big::String AS big'
    await eventually(async () => {
      expect(await logsWhere(columns, 'id = {id: UUID}', { id })).toEqual([
        { user: 42, big: '123456789012345678901234567890' },
      ])
    })
  })
})

describe('during an outage', () => {
  it('accepts entries without ClickHouse, and delivers all of them when it recovers', async () => {
    await installation.processes.clickhouse.stop({ signal: 'SIGKILL' })
    const sent = await sendBatches('no-clickhouse', 30)
    await installation.processes.clickhouse.start()
    await eventually(async () => {
      expect(await counts('no-clickhouse')).toEqual({ rows: sent, distinct: sent })
    })
  })

  it('rejects entries within two seconds without Redis, and accepts them again when it recovers', async () => {
    const entry = { level: 'info', message: 'x', service: 'no-redis' }
    await installation.processes.redis.stop({ signal: 'SIGKILL' })
    const startedMs = performance.now()
    const rejection = await postLogs(installation, entry)
    expect(performance.now() - startedMs).toBeLessThan(2_500)
    expect(rejection).toMatchObject({ status: 503, body: { code: 'queue_unavailable' } })
    await installation.processes.redis.start()
    await eventually(async () => expect(await postLogs(installation, entry)).toMatchObject({ status: 202 }))
    await eventually(async () => expect((await counts('no-redis')).rows).toBe(1))
  })
})
