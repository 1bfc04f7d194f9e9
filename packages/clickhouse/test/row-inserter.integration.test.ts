import { compressRows } from '@sluice/rows'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { classifyInsertError } from '../src/insert-errors.ts'
import { FrameInserter, RowInserter } from '../src/row-inserter.ts'
import { StoredRows } from '../src/stored-rows.ts'
import { logsTable } from '../src/tables.ts'
import { countRows, insertOptions, loseRows, makeRow, openTestDatabase, unwatched } from './test-database.ts'

const clickhouse = await openTestDatabase()
const frameInserter = new FrameInserter(clickhouse, unwatched)
const rowInserter = new RowInserter({
  frameInserter,
  storedRows: new StoredRows(clickhouse, Date.now, unwatched),
  ...insertOptions,
  onTokenWithoutRows: (token) => withoutRows.push(token),
})
/** The tokens that were reported without their rows, in one test. */
let withoutRows: string[]

beforeEach(() => {
  withoutRows = []
})

afterAll(() => clickhouse.close())

/** Rows with these retentions. By default they have two days of expiry, so that ClickHouse makes two parts of them. */
function makeRows(projectId: string, retentions: readonly number[] = [30, 30, 31], ageMs = 0): string[] {
  const receivedAtMs = Date.now() - ageMs
  return retentions.map((retentionDays) => makeRow({ projectId, retentionDays, receivedAtMs }))
}

function makeFrame(projectId: string, retentions?: readonly number[], ageMs?: number): Buffer {
  return compressRows(makeRows(projectId, retentions, ageMs).join(''))
}

const ignore = (): void => undefined
const count = (projectId: string): Promise<number> => countRows(clickhouse, logsTable, projectId)

it('does not insert rows as a whole if ClickHouse has their token without them, but in parts', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const rows = makeRows(projectId)
  const frames = [compressRows(rows.join(''))]
  await frameInserter.insert(frames, token)
  await loseRows(clickhouse, logsTable, projectId)
  await frameInserter.insert(frames, token)
  expect(await count(projectId)).toBe(0)
  const attempts = rowInserter.prepare(frames, token, true)
  expect(await attempts.run()).toBe('token-without-rows')
  expect(await attempts.run()).toBe('token-without-rows')
  expect(await count(projectId)).toBe(0)
  expect(withoutRows).toEqual([token, token])
  // The caller inserts the rows in parts, with the tokens of the parts.
  const half = rowInserter.prepare([compressRows(rows.slice(0, 2).join(''))], `${token}/0-2`, true)
  expect(await half.run()).toBe('stored')
  const row = rowInserter.prepareSingle(compressRows(rows[2] ?? ''), `${token}/2-3`, ignore)
  expect(await row.run()).toBe('stored')
  expect(await rowInserter.prepare(frames, token, true).run()).toBe('stored')
  expect(await count(projectId)).toBe(3)
})

it('inserts a single row if ClickHouse has its token without it', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const frame = makeFrame(projectId, [30])
  await frameInserter.insert([frame], token)
  await loseRows(clickhouse, logsTable, projectId)
  const attempts = rowInserter.prepareSingle(frame, token, ignore)
  expect(await attempts.run()).toBe('stored')
  expect(await attempts.run()).toBe('stored')
  expect(await count(projectId)).toBe(1)
  expect(withoutRows).toEqual([token])
})

it('reports a part whose token ClickHouse has without its rows, and does not insert the other one again', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const frames = [makeFrame(projectId)]
  await frameInserter.insert(frames, token)
  const lastDay = new Date(Date.now() + 32 * 86_400_000).toISOString().slice(0, 10)
  await loseRows(clickhouse, logsTable, projectId, `expires_on = '${lastDay}'`)
  expect(await count(projectId)).toBe(2)
  const attempts = rowInserter.prepare(frames, token, true)
  expect(await attempts.run()).toBe('token-without-rows')
  expect(await attempts.run()).toBe('token-without-rows')
  expect(await count(projectId)).toBe(2)
})

it('inserts a part that was never stored, and not the other one again', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const rows = makeRows(projectId)
  await frameInserter.insert([compressRows(rows.slice(0, 2).join(''))], token)
  expect(await count(projectId)).toBe(2)
  const attempts = rowInserter.prepare([compressRows(rows.join(''))], token, true)
  expect(await attempts.run()).toBe('stored')
  expect(await attempts.run()).toBe('stored')
  expect(await count(projectId)).toBe(3)
})

describe('rows that have expired by the clock of ClickHouse', () => {
  const DAY_MS = 86_400_000

  /**
   * Attempts to insert three rows. ClickHouse regards two of them as expired.
   *
   * @param redisBehindMs how far the clock of Redis is behind the clock of ClickHouse
   */
  function setUp(redisBehindMs: number) {
    const projectId = randomUUID()
    const inserter = new RowInserter({
      frameInserter,
      storedRows: new StoredRows(clickhouse, () => Date.now() - redisBehindMs, unwatched),
      ...insertOptions,
      onTokenWithoutRows: (token) => withoutRows.push(token),
    })
    const frames = [makeFrame(projectId, [30, 30], 40 * DAY_MS), makeFrame(projectId, [90])]
    return { projectId, attempts: inserter.prepare(frames, randomUUID(), false) }
  }

  it('and by the clock of Redis are skipped by the second attempt, and the other rows are inserted', async () => {
    const { projectId, attempts } = setUp(0)
    const error: unknown = await attempts.run().catch((rejection: unknown) => rejection)
    expect(classifyInsertError(error)).toEqual({ failure: 'transient', code: 'VIOLATED_CONSTRAINT' })
    expect(await count(projectId)).toBe(0)
    expect(await attempts.run()).toBe('stored')
    expect(await count(projectId)).toBe(1)
  })

  it('and not by the clock of Redis are never acknowledged', async () => {
    const { projectId, attempts } = setUp(40 * DAY_MS)
    for (let i = 0; i < 3; i += 1) await expect(attempts.run()).rejects.toMatchObject({ code: '469' })
    expect(await count(projectId)).toBe(0)
    expect(withoutRows).toEqual([])
  })
})
