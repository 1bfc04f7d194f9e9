import { compressRows, makeRowPrefix, shapeRow } from '@sluice/rows'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../src/client.ts'
import { FrameInserter } from '../src/frame-inserter.ts'
import { type InsertHistory, RowInserter } from '../src/row-inserter.ts'
import { StoredRows } from '../src/stored-rows.ts'
import { logsTable } from '../src/tables.ts'
import { countRows, loseRows, openTestDatabase } from './test-database.ts'

/** The rows were sent, and no earlier attempt can commit any more. */
const sent: InsertHistory = { sent: true, mayLandUntilMs: 0 }

let clickhouse: ClickHouseClient
let frameInserter: FrameInserter
let rowInserter: RowInserter

beforeAll(async () => {
  clickhouse = await openTestDatabase()
  frameInserter = new FrameInserter(clickhouse)
  rowInserter = new RowInserter({
    frameInserter,
    storedRows: new StoredRows(clickhouse),
    areTokensAtomic: false,
    sleep: () => Promise.resolve(),
    onTokenWithoutRows: () => undefined,
    lingerMaxMs: 60_000,
    monotonicMs: () => 0,
  })
})

afterAll(async () => {
  await clickhouse.close()
})

/** A frame of three rows with two days of expiry, so that ClickHouse makes two parts of it. */
function makeFrame(projectId: string): Buffer {
  const rows = [30, 30, 31].map((retentionDays) => {
    const prefix = makeRowPrefix({ projectId, retentionDays, receivedAtMs: Date.now() })
    const shaped = shapeRow({ level: 'info', message: 'm' }, randomUUID(), prefix, false)
    if ('error' in shaped) throw new Error(shaped.error.message)
    return shaped.row
  })
  return compressRows(rows.join(''))
}

const count = (projectId: string): Promise<number> => countRows(clickhouse, logsTable, projectId)

it('inserts rows if ClickHouse has their token without them', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const frames = [makeFrame(projectId)]
  await frameInserter.insert(frames, token)
  await loseRows(clickhouse, logsTable, projectId)
  await frameInserter.insert(frames, token)
  expect(await count(projectId)).toBe(0)
  expect(await rowInserter.prepare(frames, token, sent).run()).toBe(true)
  expect(await count(projectId)).toBe(3)
})

it('inserts the part that is missing, and not the other one again', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const frames = [makeFrame(projectId)]
  await frameInserter.insert(frames, token)
  const lastDay = new Date(Date.now() + 32 * 86_400_000).toISOString().slice(0, 10)
  await loseRows(clickhouse, logsTable, projectId, `expires_on = '${lastDay}'`)
  expect(await count(projectId)).toBe(2)
  const attempts = rowInserter.prepare(frames, token, sent)
  expect(await attempts.run()).toBe(true)
  expect(await attempts.run()).toBe(true)
  expect(await count(projectId)).toBe(3)
})

it('does not insert stored rows again under another token', async () => {
  const projectId = randomUUID()
  const frames = [makeFrame(projectId)]
  await frameInserter.insert(frames, randomUUID())
  expect(await rowInserter.prepare(frames, randomUUID(), sent).run()).toBe(true)
  expect(await count(projectId)).toBe(3)
})
