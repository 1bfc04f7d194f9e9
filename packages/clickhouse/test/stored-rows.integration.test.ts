import { compressRows, framesWithout, makeRowPrefix, type RequestStamp, shapeRow } from '@sluice/rows'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../src/client.ts'
import { FrameInserter } from '../src/frame-inserter.ts'
import { StoredRows } from '../src/stored-rows.ts'
import { openTestDatabase } from './test-database.ts'

let clickhouse: ClickHouseClient

beforeAll(async () => {
  clickhouse = await openTestDatabase()
})

afterAll(async () => {
  await clickhouse.close()
})

/** A frame of rows with these ids. By default they were received a minute apart, in two projects with different retentions. */
function frameOf(
  ids: readonly string[],
  stampOf: (i: number) => RequestStamp = (i) => ({
    projectId: `p${i % 2}`,
    retentionDays: 30 + (i % 2),
    receivedAtMs: Date.now() - i * 60_000,
  }),
): Buffer {
  const rows = ids.map((id, i) => {
    const shaped = shapeRow({ level: 'info', message: 'm' }, id, makeRowPrefix(stampOf(i)), false)
    if ('error' in shaped) throw new Error(shaped.error.message)
    return shaped.row
  })
  return compressRows(rows.join(''))
}

const newIds = (count: number): string[] => Array.from({ length: count }, () => randomUUID())

it('finds the rows that are stored, and no others', async () => {
  const ids = newIds(9)
  const stored = frameOf(ids)
  await new FrameInserter(clickhouse).insert([stored], randomUUID())
  const found = await new StoredRows(clickhouse).find([frameOf(newIds(9)), stored, frameOf(newIds(9))])
  expect(found).toEqual(new Set(ids))
})

it('looks up more rows than fit in one query', async () => {
  const frames = Array.from({ length: 5 }, () => frameOf(newIds(2_000)))
  await new FrameInserter(clickhouse).insert(frames.slice(1), randomUUID())
  const found = await new StoredRows(clickhouse).find(frames)
  expect(found.size).toBe(8_000)
  expect(framesWithout(found, frames)).toEqual([frames[0]])
})

it('finds no rows in a frame that cannot be decompressed', async () => {
  const broken = Buffer.from('not zstd')
  expect(await new StoredRows(clickhouse).find([broken])).toEqual(new Set())
  expect(framesWithout(new Set(['x']), [broken])).toEqual([broken])
})

it('uses the date of ClickHouse', async () => {
  const ids = newIds(2)
  const query = (async () => ({
    json: async () => [{ today: '2100-01-01' }],
  })) as unknown as ClickHouseClient['query']
  expect(await new StoredRows({ query }).find([frameOf(ids)])).toEqual(new Set(ids))
})

it('treats rows as stored from their day of expiry on', async () => {
  const ids = newIds(3)
  const expiring = frameOf(ids, (i) => ({
    projectId: 'p',
    retentionDays: 1,
    receivedAtMs: Date.now() - (3 - i) * 86_400_000,
  }))
  const found = await new StoredRows(clickhouse).find([expiring])
  // A row is kept one day longer than its retention, so the last row expires tomorrow.
  expect(found).toEqual(new Set(ids.slice(0, 2)))
})
