import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../src/client.ts'
import { LogReader, type LogQuery, ReadLimitError, ReadUnavailableError } from '../src/log-reader.ts'
import { logsInsertSettings } from '../src/tables.ts'
import { connectAgain, openTestDatabase, select } from './test-database.ts'

const ROWS = 50_000
const projectId = `p-${randomUUID()}`
const limits = { timeMs: 60_000, rowsMax: 0, bytesMax: 0, memoryBytesMax: 1e9 }
const { signal: never } = new AbortController()

let clickhouse: ClickHouseClient
let readers: ClickHouseClient
let reader: LogReader

beforeAll(async () => {
  clickhouse = await openTestDatabase()
  readers = await connectAgain(clickhouse)
  reader = new LogReader(readers, limits)
  await clickhouse.command({
    query: `INSERT INTO logs (project_id, received_at, expires_on, id, message)
      SELECT {projectId:String}, now64(3), today() + 9, generateUUIDv7(), repeat('x', 100) FROM numbers({rows:UInt32})`,
    query_params: { projectId, rows: ROWS },
  })
})
afterAll(async () => {
  await readers.close()
  await clickhouse.close()
})

const messages: LogQuery = { sql: (from) => `SELECT message ${from}` }

/** A query that would take a quarter of an hour, with rows from the start. @param mark is in its text */
const slowQuery = (mark: string): LogQuery => ({
  sql: () =>
    `SELECT '${mark}', sleepEachRow(0.01), repeat('y', 100000) FROM numbers(100000) SETTINGS max_block_size = 10, max_threads = 1`,
})

/** How many queries with this text run. */
const running = async (text: string): Promise<number> =>
  (
    await select(
      clickhouse,
      'SELECT 1 FROM system.processes WHERE position(query, {text:String}) > 0 AND query NOT LIKE {own:String}',
      { text, own: '%system.processes%' },
    )
  ).length

describe('a query', () => {
  it('reads only the entries of its project', async () => {
    expect(await reader.rows(`not-${projectId}`, messages, { signal: never })).toEqual([])
    expect(await reader.rows(projectId, messages, { signal: never })).toHaveLength(ROWS)
  })

  it('has a lower priority than inserts, for which it waits less than a second, unless it is urgent', async () => {
    const priorities: unknown[] = []
    const query: ClickHouseClient['query'] = (options) => {
      priorities.push(options.clickhouse_settings?.priority)
      expect(Number(options.clickhouse_settings?.['low_priority_query_wait_time_ms'])).toBeLessThan(1_000)
      return readers.query(options)
    }
    const observed = new LogReader({ query }, limits)
    await observed.rows(projectId, messages, { signal: never })
    await observed.rows(projectId, messages, { signal: never, isUrgent: true })
    // 1 is the highest one.
    expect([...priorities, logsInsertSettings.priority]).toEqual(['2', '1', '1'])
  })

  it.each([
    ['rows', { rowsMax: 10 }],
    ['bytes', { bytesMax: 1_000 }],
    ['memory', { memoryBytesMax: 1 }],
  ] as const)('that exceeds its limit of %s fails', async (limit, lower) => {
    const sorted: LogQuery = { sql: (from) => `SELECT message, id ${from} ORDER BY id` }
    await expect(reader.rows(projectId, sorted, { signal: never, limits: lower })).rejects.toMatchObject({
      name: ReadLimitError.name,
      limit,
    })
  })

  it('that takes too long fails, also after its first rows', async () => {
    const reading = reader.rows(projectId, slowQuery(''), { signal: never, limits: { timeMs: 600 } })
    await expect(reading).rejects.toMatchObject({ limit: 'time', cause: { code: '159' } })
  })

  it('ends in ClickHouse when its reader goes', async () => {
    const mark = randomUUID()
    const gone = new AbortController()
    const reading = reader.rows(projectId, slowQuery(mark), { signal: gone.signal })
    const failure = reading.catch((error: unknown) => error)
    await expect.poll(() => running(mark)).toBe(1)
    gone.abort(new Error('gone'))
    expect(await failure).toEqual(new Error('gone'))
    await expect.poll(() => running(mark)).toBe(0)
  })

  it('ends in ClickHouse when its reader has enough', async () => {
    const mark = randomUUID()
    for await (const rows of reader.stream(projectId, slowQuery(mark), { signal: never })) {
      expect(rows.length).toBeGreaterThan(0)
      expect(await running(mark)).toBe(1)
      break
    }
    await expect.poll(() => running(mark)).toBe(0)
  })

  it('changes nothing', async () => {
    const query: LogQuery = { sql: () => 'INSERT INTO logs (id) SELECT generateUUIDv4()' }
    await expect(reader.rows(projectId, query, { signal: never })).rejects.toThrow(/readonly/)
  })

  it('fails as unavailable when ClickHouse does not answer', async () => {
    const absent = await connectAgain(clickhouse, { url: 'http://127.0.0.1:1' }).catch(() => undefined)
    const closed = absent ?? readers
    const reading = new LogReader(closed, limits).rows(projectId, messages, { signal: never })
    await expect(reading).rejects.toThrow(ReadUnavailableError)
    await closed.close()
  })
})
