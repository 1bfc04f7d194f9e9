import { compressRows, makeRowPrefix, rowAsJson, rowKey, shapeRow } from '@sluice/rows'
import { validTimestamps } from '@sluice/rows/testing'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../src/client.ts'
import { DeadLetterStore } from '../src/dead-letter-store.ts'
import { FrameInserter } from '../src/frame-inserter.ts'
import { deadLettersTable, logsTable } from '../src/tables.ts'
import { countingReads, fillLogs, GRANULE_ROWS } from './read-rows.ts'
import { countRows, openTestDatabase } from './test-database.ts'

let clickhouse: ClickHouseClient
let store: DeadLetterStore
let projectId: string

beforeAll(async () => {
  clickhouse = await openTestDatabase()
  store = new DeadLetterStore(clickhouse)
})

beforeEach(() => {
  projectId = randomUUID()
})

afterAll(async () => {
  await clickhouse.close()
})

function rowOf(timestamp?: string, id: string = randomUUID()): string {
  const entry = { level: 'info', message: 'm', ...(timestamp !== undefined && { timestamp }) } as const
  const shaped = shapeRow(
    entry,
    id,
    makeRowPrefix({ projectId, retentionDays: 30, receivedAtMs: Date.now() }),
    false,
  )
  if ('error' in shaped) throw new Error(shaped.error.message)
  return shaped.row
}

function objectOf(row: string): Record<string, string> {
  return JSON.parse(rowAsJson(row) ?? '') as Record<string, string>
}

/** Stores a dead letter with this text, and retries it. Returns why it was rejected. */
async function retry(text: string, itsStore: DeadLetterStore = store): Promise<string | undefined> {
  const id = randomUUID()
  await clickhouse.insert({
    table: deadLettersTable,
    values: [{ id, project_id: projectId, failed_at: '2026-11-20 00:00:00', code: 'X', reason: '', text }],
    format: 'JSONEachRow',
  })
  const letter = await itsStore.find(id)
  if (letter === undefined) throw new Error('the dead letter is not stored')
  const [outcome] = await itsStore.retry([letter])
  return outcome?.rejection
}

const insertRow = (row: string) => new FrameInserter(clickhouse).insert([compressRows(row)], randomUUID())
const storedRows = (project: string = projectId) => countRows(clickhouse, logsTable, project)

const countBoth = async (): Promise<number> => (await storedRows()) + (await storedRows('another'))

describe('a retry after a retry that was interrupted', () => {
  it.each(validTimestamps.map(([why, text]) => [why, text] as const))(
    'does not insert the row again: %s',
    async (_why, timestamp) => {
      const row = rowOf(timestamp)
      await insertRow(row)
      expect(await retry(rowAsJson(row) ?? '')).toBeUndefined()
      expect(await storedRows()).toBe(1)
    },
  )

  // Each of these texts is a row that ClickHouse accepts.
  it.each<[what: string, edit: (row: Record<string, string>) => Record<string, unknown>]>([
    ['has no timestamp', (row) => ({ ...row, timestamp: undefined })],
    ['has a timestamp in seconds', (row) => ({ ...row, timestamp: '1795214581' })],
    ['has a timestamp as a number', (row) => ({ ...row, timestamp: 1_795_214_581 })],
    ['has a timestamp in RFC 2822', (row) => ({ ...row, timestamp: '20 Nov 2026 22:43:01 +0100' })],
    ['has its id in uppercase', (row) => ({ ...row, id: row['id']?.toUpperCase() })],
    ['has its id without dashes', (row) => ({ ...row, id: row['id']?.replaceAll('-', '') })],
    ['has another project', (row) => ({ ...row, project_id: 'another' })],
  ])('does not insert the row again if its text %s', async (_what, edit) => {
    const text = JSON.stringify(edit(objectOf(rowOf('2026-11-20T22:43:01.123456789Z'))))
    const before = await countBoth()
    expect(await retry(text)).toBeUndefined()
    expect(await retry(text)).toBeUndefined()
    expect(await countBoth()).toBe(before + 1)
  })
})

it.each([
  ['an id', { id: 'no uuid' }],
  ['a timestamp', { timestamp: 'yesterday' }],
  ['a timestamp of the usual form', { timestamp: '2026-99-99 99:99:99.000000' }],
  ['a day of expiry', { expires_on: 'tomorrow' }],
])('reports that ClickHouse rejects %s that is invalid', async (_what, change) => {
  expect(await retry(JSON.stringify({ ...objectOf(rowOf()), ...change }))).toMatch(/^[A-Z_]+ \d+$/)
  expect(await storedRows()).toBe(0)
})

it('keeps the dead letter of a row that has expired: ClickHouse rejects the row', async () => {
  const day = new Date().toISOString().slice(0, 10)
  const text = JSON.stringify({ ...objectOf(rowOf()), expires_on: day })
  expect(await retry(text)).toBe('VIOLATED_CONSTRAINT 469')
  expect(await storedRows()).toBe(0)
  const letters = await store.list(projectId, 10)
  expect(letters.map((letter) => letter.text)).toEqual([text])
})

it.each(['', 'not JSON', 'null', '[]', '"text"'])(
  'retries a dead letter without an id, whose text is %j',
  async (text) => {
    const id = randomUUID()
    const [outcome] = await store.retry([{ id, failedAt: '', projectId, code: 'X', reason: '', text }])
    expect(outcome).toMatchObject({ id })
    expect(await storedRows()).toBe(0)
  },
)

it('reads one granule of a large table', async () => {
  projectId = 'demo-7'
  const row = rowOf(new Date(Date.now() - 86_400_000).toISOString())
  await insertRow(row)
  await fillLogs(clickhouse, 1_000_000, Date.now(), rowKey(row).expiresOn)
  const total = { readRows: 0 }
  expect(
    await retry(rowAsJson(row) ?? '', new DeadLetterStore(countingReads(clickhouse, total))),
  ).toBeUndefined()
  expect(total.readRows).toBeGreaterThan(0)
  expect(total.readRows).toBeLessThan(2 * GRANULE_ROWS)
})
