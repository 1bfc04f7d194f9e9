import {
  columnTypes,
  compressBlock,
  compressedBlockOf,
  compressRows,
  insertBody,
  rowColumns,
  readJoined,
} from '@sluice/rows'
import { encodeBlock, rowOf, textOfBlocks, textPrefix, validEntry } from '@sluice/rows/testing'
import type { Entry } from '@sluice/schema'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, expect, it } from 'vitest'
import { EXPIRY_CONSTRAINT } from '../src/insert-errors.ts'
import {
  insertBlock,
  logsInsertBlockQuery,
  logsInsertQuery,
  logsInsertSettings,
  logsTable,
} from '../src/tables.ts'
import { openTestDatabase, select } from './test-database.ts'

const clickhouse = await openTestDatabase()
afterAll(() => clickhouse.close())

/** Inserts rows into one table as text and into another one as a block. Compares the bytes of all values that are stored. */
async function expectEqual(rows: readonly string[], blocks: Buffer = encodeBlock(rows)): Promise<void> {
  const block = compressedBlockOf(compressBlock(readJoined(blocks)))
  const fromText = await insertAll(logsInsertQuery, [compressRows(rows.join(''))])
  const fromBlocks = await insertAll(logsInsertBlockQuery, insertBody(block === undefined ? [] : [block]))
  expect(fromText).toHaveLength(rows.length)
  expect(fromBlocks).toHaveLength(rows.length)
  for (const [index, row] of fromText.entries()) expect(fromBlocks[index]).toEqual(row)
}

/** @returns the rows in the order of their ids */
async function insertAll(query: string, body: Iterable<Buffer>): Promise<unknown[]> {
  const table = `logs_${randomUUID().slice(0, 8)}`
  await clickhouse.command({ query: `CREATE TABLE ${table} AS ${logsTable}` })
  // Any day of expiry is stored.
  await clickhouse.command({ query: `ALTER TABLE ${table} REMOVE TTL` })
  await clickhouse.command({ query: `ALTER TABLE ${table} DROP CONSTRAINT ${EXPIRY_CONSTRAINT}` })
  const { stream } = await clickhouse.exec({
    query: query.replace(` ${logsTable} `, ` ${table} `),
    values: Readable.from(body, { objectMode: false }),
    http_headers: { 'Content-Encoding': 'zstd' },
    clickhouse_settings: { ...logsInsertSettings, ...insertBlock },
  })
  stream.resume()
  const values = rowColumns.map((name) => `hex(toString(${name})) AS ${name}`).join(', ')
  return select(
    clickhouse,
    `SELECT ${values}, toString(metadata) AS metadata FROM ${table} ORDER BY toString(id)`,
  )
}

const today = new Date().setUTCHours(0, 0, 0, 0)

/** Rows of entries with any content, received at any time of today, and with any retention. */
const anyRow = fc
  .record({
    entry: validEntry,
    projectId: fc.constantFrom('demo', 'p-2', 'a'.repeat(63)),
    retentionDays: fc.constantFrom(1, 30, 730),
    receivedAtMs: fc.integer({ min: today, max: today + 86_399_999 }),
  })
  .map(({ entry, ...stamp }) => rowOf(entry as Entry, randomUUID(), textPrefix(stamp)))

it('stores rows by columns as it stores them as text, whatever their content is', async () => {
  const chunks = fc.sample(fc.array(anyRow, { maxLength: 100 }), runsOf(100))
  await expectEqual(chunks.flat(), Buffer.concat(chunks.map(encodeBlock)))
})

/** A row with some values, which are escaped as in TabSeparated. */
function rowWith(values: Partial<Record<(typeof rowColumns)[number], string>>): string {
  const row: Record<string, string> = {
    project_id: 'demo',
    received_at: '2026-11-20 22:43:01.123',
    expires_on: '2100-01-01',
    id: randomUUID(),
    timestamp: '2026-11-20 22:43:01.123',
    level: 'info',
    metadata_text: '{}',
    ...values,
  }
  return `${rowColumns.map((name) => row[name] ?? '').join('\t')}\n`
}

it.each([
  ['times', ['1970-01-01 00:00:00.000000', '1970-01-01T00:00:00', '2261-12-31T23:59:59.999999999Z']],
  ['fractions', ['2026-11-20T22:43:01Z', '2026-11-20T22:43:01.1', '2026-11-20 22:43:01.000001']],
])('stores the same %s', (_what, timestamps) => {
  const rows = timestamps.map((timestamp) => rowWith({ timestamp }))
  return expectEqual(rows)
})

it('stores the same days, ids and texts', async () => {
  const days = ['1970-01-01', '2100-02-28', '2149-06-06'].map((day) => rowWith({ expires_on: day }))
  const ids = ['00000000-0000-0000-0000-000000000001', 'ffffffff-ffff-ffff-ffff-ffffffffffff', randomUUID()]
  const texts = ['', '\0', '\\t\\n\\\\', '\\\\N', '\r', '\ufeff', 'é😀', 'x'.repeat(127), 'é'.repeat(64)]
  const rows = [
    ...days,
    ...ids.map((id) => rowWith({ id })),
    ...texts.map((message) => rowWith({ message, project_id: message, level: message })),
    rowWith({ stack: 'x'.repeat(20_000), metadata_text: '{"a":{"b":[1,null,"\\n"]}}' }),
  ]
  await expectEqual(rows)
})

it('reads rows from blocks as ClickHouse stores them', async () => {
  const rows = fc.sample(anyRow, runsOf(500))
  await expectEqual(textOfBlocks(encodeBlock(rows)).split(/(?<=\n)/), encodeBlock(rows))
})

it('names the columns of the table and their types', async () => {
  const query = `SELECT name, replaceRegexpOne(type, '^LowCardinality\\\\((.*)\\\\)$', '\\\\1') AS type FROM system.columns
    WHERE database = currentDatabase() AND table = '${logsTable}' AND default_kind != 'ALIAS'`
  const columns = await select<{ name: string; type: string }>(clickhouse, query)
  expect(Object.fromEntries(columns.map(({ name, type }) => [name, type]))).toEqual(columnTypes)
})
