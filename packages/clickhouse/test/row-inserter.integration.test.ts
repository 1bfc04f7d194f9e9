import { compressRows } from '@sluice/rows'
import { randomUUID } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { classifyInsertError, type ClickHouseError, TokenWithoutRowsError } from '../src/insert-errors.ts'
import { REPLACEMENTS_MAX } from '../src/insert-once.ts'
import { FrameInserter, RowInserter } from '../src/row-inserter.ts'
import { storedRowFinder } from '../src/stored-rows.ts'
import { logsTable } from '../src/tables.ts'
import { countRows, insertOptions, loseRows, makeRow, openTestDatabase, unwatched } from './test-database.ts'

const clickhouse = await openTestDatabase()
const frameInserter = new FrameInserter(clickhouse, unwatched)
const rowInserter = new RowInserter({
  frameInserter,
  storedRows: storedRowFinder(clickhouse, Date.now, unwatched),
  ...insertOptions,
})
afterAll(() => clickhouse.close())

/** Rows with these retentions. By default they have two days of expiry, so that ClickHouse makes two parts of them. */
function makeFrame(projectId: string, retentions: readonly number[] = [30, 30, 31], ageMs = 0): Buffer {
  const receivedAtMs = Date.now() - ageMs
  const rowOf = (retentionDays: number): string => makeRow({ projectId, retentionDays, receivedAtMs })
  return compressRows(retentions.map(rowOf).join(''))
}

const count = (projectId: string): Promise<number> => countRows(clickhouse, logsTable, projectId)

const lastDay = new Date(Date.now() + 32 * 86_400_000).toISOString().slice(0, 10)

it.each([
  ['rows', 'true', 0],
  ['the rows of one part', `expires_on = '${lastDay}'`, 2],
])('fails if ClickHouse has the token without %s, and inserts nothing with it', async (_what, lost, left) => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const frames = [makeFrame(projectId)]
  await frameInserter.insert(frames, token)
  await loseRows(clickhouse, logsTable, projectId, lost)
  expect(await count(projectId)).toBe(left)
  const attempts = rowInserter.prepare(frames, token, true)
  for (let times = 0; times < 2; times += 1)
    await expect(attempts.run()).rejects.toThrow(TokenWithoutRowsError)
  expect(await count(projectId)).toBe(left)
})

it('inserts a single row if ClickHouse has its token without it', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const frame = makeFrame(projectId, [30])
  await frameInserter.insert([frame], token)
  await loseRows(clickhouse, logsTable, projectId)
  const attempts = rowInserter.prepare([frame], token, true, undefined, REPLACEMENTS_MAX)
  for (let times = 0; times < 2; times += 1) await attempts.run()
  expect(await count(projectId)).toBe(1)
})

it.each([
  [
    'and by the clock of Redis are skipped by the second attempt, and the other rows are inserted',
    0,
    undefined,
    1,
  ],
  ['and not by the clock of Redis are never acknowledged', 40 * 86_400_000, '469', 0],
])('rows that have expired by the clock of ClickHouse %s', async (_what, redisBehindMs, result, rows) => {
  const projectId = randomUUID()
  const storedRows = storedRowFinder(clickhouse, () => Date.now() - redisBehindMs, unwatched)
  const inserter = new RowInserter({ frameInserter, storedRows, ...insertOptions })
  const frames = [makeFrame(projectId, [30, 30], 40 * 86_400_000), makeFrame(projectId, [90])]
  const attempts = inserter.prepare(frames, randomUUID(), false)
  const error: unknown = await attempts.run().catch((rejection: unknown) => rejection)
  expect(classifyInsertError(error)).toEqual({ failure: 'transient', code: 'VIOLATED_CONSTRAINT' })
  expect(await count(projectId)).toBe(0)
  expect(await attempts.run().catch((rejection: ClickHouseError) => rejection.code)).toBe(result)
  expect(await count(projectId)).toBe(rows)
})
