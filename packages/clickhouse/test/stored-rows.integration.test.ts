import {
  compressRows,
  framesWithout,
  type RequestStamp,
  type RowKey,
  rowKey,
  rowsOfFrame,
} from '@sluice/rows'
import { validTimestamps } from '@sluice/rows/testing'
import { randomUUID } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../src/client.ts'
import { FrameInserter } from '../src/row-inserter.ts'
import { storedRowFinder } from '../src/stored-rows.ts'
import { logsTable } from '../src/tables.ts'
import {
  connectAgain,
  fillLogs,
  GRANULE_ROWS,
  makeRow,
  openTestDatabase,
  select,
  unwatched,
} from './test-database.ts'

const clickhouse = await openTestDatabase()
const storedRows = storedRowFinder(clickhouse, Date.now, unwatched)
const frameInserter = new FrameInserter(clickhouse, unwatched)

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

const keysIn = (...frames: readonly Buffer[]): RowKey[] =>
  frames.flatMap((frame) => rowsOfFrame(frame) ?? []).map(rowKey)

const newIds = (count: number): string[] => Array.from({ length: count }, () => randomUUID())

/** From 1970 to 2261, in steps that are not a divisor of a day. */
function anyTimestamp(i: number): string {
  const seconds = new Date(i * 459_131_017).toISOString().slice(0, 19)
  const fraction = String(i * 7_919_999)
    .padStart(9, '9')
    .slice(-9)
  return `${seconds}${['', `.${fraction.slice(0, i % 9)}1`][i % 2]}${['', 'Z', '+05:45'][i % 3]}`
}

it('finds the rows that are stored, and no others, with the longest keys, in more frames than fit in one query', async () => {
  const stamp = { projectId: 'p'.repeat(63), retentionDays: 30, receivedAtMs: Date.now() }
  const frames = Array.from({ length: 5 }, () => frameOf(newIds(5_200), () => stamp, anyTimestamp))
  await frameInserter.insert(frames.slice(1), randomUUID())
  const found = await storedRows.find(keysIn(...frames))
  expect(found.size).toBe(20_800)
  expect(framesWithout(found, frames)).toEqual(frames.slice(0, 1))
})

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

it.each([
  ['both clocks', 0, 0, true],
  ['the clock of ClickHouse, and soon by the clock of Redis', 0, -9 * MINUTE_MS, true],
  ['the clock of ClickHouse alone', 40 * DAY_MS, -11 * MINUTE_MS, false],
  ['the clock of Redis alone', -1, 40 * DAY_MS, false],
])('counts a row as expired by %s', async (_by, clickhouseAfterMs, redisAfterMs, expected) => {
  const expiresMs = Date.UTC(2026, 10, 23)
  const stamp = { projectId: 'p', retentionDays: 1, receivedAtMs: expiresMs - 2 * DAY_MS }
  const now = `toDateTime('${new Date(expiresMs + clickhouseAfterMs).toISOString().slice(0, 10)}', 'UTC')`
  const query = ((params: { query: string }) =>
    clickhouse.query({
      ...params,
      query: params.query.replace("now('UTC')", now),
    })) as unknown as ClickHouseClient['query']
  const found = await storedRowFinder({ query }, () => expiresMs + redisAfterMs, unwatched).find(
    keysIn(frameOf(newIds(1), () => stamp)),
  )
  expect(found.size).toBe(expected ? 1 : 0)
})

it('treats rows as stored from their day of expiry on', async () => {
  const ids = newIds(3)
  const frame = frameOf(ids, (i) => ({
    projectId: 'p',
    retentionDays: 1,
    receivedAtMs: Date.now() - (3 - i) * DAY_MS,
  }))
  // A row is kept one day longer than its retention, so the last row expires tomorrow.
  expect(await storedRows.find(keysIn(frame))).toEqual(new Set(ids.slice(0, 2)))
})

it.each<readonly [why: string, text: string, stored: string]>([
  ...validTimestamps,
  ['seven digits of fraction', '2026-11-20T22:43:01.1234569Z', '2026-11-20 22:43:01.123456'],
  ['nine digits of fraction and no offset', '2026-11-20T22:43:01.123456999', '2026-11-20 22:43:01.123456'],
  ['nine digits in the last second', '2261-12-28T23:59:59.999999999Z', '2261-12-28 23:59:59.999999'],
])('a timestamp is looked up as it is stored: %s', async (_why, text, storedText) => {
  const [id = ''] = newIds(1)
  const frame = frameOf([id], undefined, () => text)
  await frameInserter.insert([frame], randomUUID())
  expect(await storedRows.find(keysIn(frame))).toEqual(new Set([id]))
  const query = `SELECT toString(timestamp) AS timestamp FROM ${logsTable} WHERE id = {id: UUID}`
  expect(await select(clickhouse, query, { id })).toEqual([{ timestamp: storedText }])
})

it('finds the other rows of a frame that has a row with an invalid timestamp or project', async () => {
  const ids = newIds(3)
  const frame = frameOf(ids)
  await frameInserter.insert([frame], randomUUID())
  const [row = ''] = rowsOfFrame(frame) ?? []
  const withField = (i: number, value: string) =>
    row.split('\t').with(i, value).with(3, randomUUID()).join('\t')
  const broken = [
    withField(4, 'yesterday'),
    withField(4, String.raw`\'") --`),
    withField(0, String.raw`\'") -- {x: String} \\`),
    withField(3, '-'.repeat(36)),
  ]
  expect(await storedRows.find([...broken.map(rowKey), ...keysIn(frame)])).toEqual(new Set(ids))
})

it('reads about one granule per row of a large table with scattered timestamps', async () => {
  const ids = newIds(10)
  const receivedAtMs = Date.now() - 30_000
  const frame = frameOf(
    ids,
    (i) => ({ projectId: `demo-${i * 2}`, retentionDays: 90, receivedAtMs: receivedAtMs + i }),
    (i) => new Date(receivedAtMs - i * 250_000_000).toISOString(),
  )
  const [row = ''] = rowsOfFrame(frame) ?? []
  await frameInserter.insert([frame], randomUUID())
  await fillLogs(clickhouse, 1_000_000, Date.now(), rowKey(row).expiresOn)
  await using limited = await connectAgain(clickhouse, { rowsReadMax: (ids.length + 1) * GRANULE_ROWS })
  expect(await storedRowFinder(limited, Date.now, unwatched).find(keysIn(frame))).toEqual(new Set(ids))
})
