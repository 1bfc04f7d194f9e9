import { compressRows, framesWithout, type RequestStamp, rowKey, rowsOfFrame } from '@sluice/rows'
import { validTimestamps } from '@sluice/rows/testing'
import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../src/client.ts'
import { FrameInserter } from '../src/row-inserter.ts'
import { StoredRows } from '../src/stored-rows.ts'
import { logsTable } from '../src/tables.ts'
import { countingReads, fillLogs, GRANULE_ROWS } from './read-rows.ts'
import { makeRow, openTestDatabase, select, unwatched } from './test-database.ts'

const clickhouse = await openTestDatabase()

afterAll(() => clickhouse.close())

/** A frame of rows with these ids. By default they were received a minute apart, in two projects with different retentions. */
function frameOf(
  ids: readonly string[],
  stampOf: (i: number) => RequestStamp = (i) => ({
    projectId: `p${i % 2}`,
    retentionDays: 30 + (i % 2),
    receivedAtMs: Date.now() - i * 60_000,
  }),
  timestampOf: (i: number) => string | undefined = () => undefined,
): Buffer {
  return compressRows(ids.map((id, i) => makeRow(stampOf(i), { id, timestamp: timestampOf(i) })).join(''))
}

const newIds = (count: number): string[] => Array.from({ length: count }, () => randomUUID())

it('finds the rows that are stored, and no others', async () => {
  const ids = newIds(9)
  const stored = frameOf(ids)
  await new FrameInserter(clickhouse, unwatched).insert([stored], randomUUID())
  const found = await new StoredRows(clickhouse, Date.now, unwatched).find([
    frameOf(newIds(9)),
    stored,
    frameOf(newIds(9)),
  ])
  expect(found).toEqual(new Set(ids))
})

it('looks up more rows than fit in one query', async () => {
  const frames = Array.from({ length: 5 }, () => frameOf(newIds(5_200)))
  await new FrameInserter(clickhouse, unwatched).insert(frames.slice(1), randomUUID())
  const found = await new StoredRows(clickhouse, Date.now, unwatched).find(frames)
  expect(found.size).toBe(20_800)
  expect(framesWithout(found, frames)).toEqual([frames[0]])
})

it('finds no rows in a frame that cannot be decompressed', async () => {
  const broken = Buffer.from('not zstd')
  expect(await new StoredRows(clickhouse, Date.now, unwatched).find([broken])).toEqual(new Set())
  expect(framesWithout(new Set(['x']), [broken])).toEqual([broken])
})

describe('a row counts as expired', () => {
  const MINUTE_MS = 60_000
  const MIDNIGHT_MS = Date.UTC(2026, 10, 23)
  /** Its row expires at `MIDNIGHT_MS`. */
  const frame = frameOf(newIds(1), () => ({
    projectId: 'p',
    retentionDays: 1,
    receivedAtMs: MIDNIGHT_MS - 2 * 86_400_000,
  }))

  /** Whether it does. No row is stored. */
  async function isExpired(clickhouseMs: number, redisMs: number): Promise<boolean> {
    const query = (async ({ query: text }: { query: string }) => ({
      json: async () =>
        text.includes('today') ? [{ today: new Date(clickhouseMs).toISOString().slice(0, 10) }] : [],
    })) as unknown as ClickHouseClient['query']
    return (await new StoredRows({ query }, () => redisMs, unwatched).find([frame])).size === 1
  }

  it.each([
    ['both clocks', 0, 0, true],
    ['the clock of ClickHouse, and soon by the clock of Redis', 0, -9 * MINUTE_MS, true],
    ['the clock of ClickHouse alone', 40 * 86_400_000, -11 * MINUTE_MS, false],
    ['the clock of Redis alone', -1, 40 * 86_400_000, false],
    ['neither', -1, -1, false],
  ])('by %s', async (_by, clickhouseAfterMs, redisAfterMs, expected) => {
    expect(await isExpired(MIDNIGHT_MS + clickhouseAfterMs, MIDNIGHT_MS + redisAfterMs)).toBe(expected)
  })
})

it('treats rows as stored from their day of expiry on', async () => {
  const ids = newIds(3)
  const expiring = frameOf(ids, (i) => ({
    projectId: 'p',
    retentionDays: 1,
    receivedAtMs: Date.now() - (3 - i) * 86_400_000,
  }))
  const found = await new StoredRows(clickhouse, Date.now, unwatched).find([expiring])
  // A row is kept one day longer than its retention, so the last row expires tomorrow.
  expect(found).toEqual(new Set(ids.slice(0, 2)))
})

/** From 1970 to 2261, in steps that are not a divisor of a day. */
function anyTimestamp(i: number): string {
  const seconds = new Date(i * 459_131_017).toISOString().slice(0, 19)
  const fraction = String(i * 7_919_999)
    .padStart(9, '9')
    .slice(-9)
  return `${seconds}${['', `.${fraction.slice(0, i % 9)}1`][i % 2]}${['', 'Z', '+05:45'][i % 3]}`
}

describe('a timestamp', () => {
  it.each<readonly [why: string, text: string, stored: string]>([
    ...validTimestamps,
    ['seven digits of fraction', '2026-11-20T22:43:01.1234569Z', '2026-11-20 22:43:01.123456'],
    ['eight digits of fraction', '2026-11-20T22:43:01.12345699Z', '2026-11-20 22:43:01.123456'],
    ['nine digits of fraction and no offset', '2026-11-20T22:43:01.123456999', '2026-11-20 22:43:01.123456'],
    ['ten digits of fraction', '2026-11-20T22:43:01.1234569999Z', '2026-11-20 22:43:01.123456'],
    ['nine digits in the last second', '2261-12-28T23:59:59.999999999Z', '2261-12-28 23:59:59.999999'],
    ['nine digits in the first second', '1970-01-01T00:00:00.000000999Z', '1970-01-01 00:00:00.000000'],
  ])('is looked up as it is stored: %s', async (_why, text, storedText) => {
    const [id = ''] = newIds(1)
    const frame = frameOf([id], undefined, () => text)
    await new FrameInserter(clickhouse, unwatched).insert([frame], randomUUID())
    expect(await new StoredRows(clickhouse, Date.now, unwatched).find([frame])).toEqual(new Set([id]))
    const query = `SELECT toString(timestamp) AS timestamp FROM ${logsTable} WHERE id = {id: UUID}`
    expect(await select(clickhouse, query, { id })).toEqual([{ timestamp: storedText }])
  })
})

it('finds the other rows of a frame that has a row with an invalid timestamp or project', async () => {
  const ids = newIds(3)
  const frame = frameOf(ids)
  await new FrameInserter(clickhouse, unwatched).insert([frame], randomUUID())
  const [row = ''] = rowsOfFrame(frame) ?? []
  const fields = row.split('\t')
  const withField = (i: number, value: string) => fields.with(i, value).with(3, randomUUID()).join('\t')
  const broken = [
    withField(4, 'yesterday'),
    withField(4, ''),
    withField(4, String.raw`\'") --`),
    withField(0, String.raw`\'") -- {x: String} \\`),
    withField(3, '-'.repeat(36)),
  ]
  const found = await new StoredRows(clickhouse, Date.now, unwatched).find([
    compressRows(broken.join('')),
    frame,
  ])
  expect(found).toEqual(new Set(ids))
})

it('looks up as many rows with the longest keys as one query holds, with any time and number of digits', async () => {
  const ids = newIds(20_000)
  const stamp = { projectId: 'p'.repeat(63), retentionDays: 30, receivedAtMs: Date.now() }
  const frame = frameOf(ids, () => stamp, anyTimestamp)
  await new FrameInserter(clickhouse, unwatched).insert([frame], randomUUID())
  expect((await new StoredRows(clickhouse, Date.now, unwatched).find([frame])).size).toBe(ids.length)
})

it('reads about one granule per row of a large table with scattered timestamps', async () => {
  const ROWS = 1_000_000
  const ids = newIds(10)
  const receivedAtMs = Date.now() - 30_000
  const frame = frameOf(
    ids,
    (i) => ({ projectId: `demo-${i * 2}`, retentionDays: 90, receivedAtMs: receivedAtMs + i }),
    (i) => new Date(receivedAtMs - i * 250_000_000).toISOString(),
  )
  const [row = ''] = rowsOfFrame(frame) ?? []
  await new FrameInserter(clickhouse, unwatched).insert([frame], randomUUID())
  await fillLogs(clickhouse, ROWS, Date.now(), rowKey(row).expiresOn)
  const total = { readRows: 0 }
  const found = await new StoredRows(countingReads(clickhouse, total), Date.now, unwatched).find([frame])
  expect(found).toEqual(new Set(ids))
  expect(total.readRows).toBeGreaterThan(GRANULE_ROWS)
  expect(total.readRows).toBeLessThan((ids.length + 1) * GRANULE_ROWS)
})
