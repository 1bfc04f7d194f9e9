import type { ClickHouseClient } from '@sluice/runtime'
import { encodeFrame, shapeRow, startRows, type RequestStamp } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Inserter } from '../src/inserter.ts'
import { framesWithout, StoredRows } from '../src/stored-rows.ts'
import { openTestDatabase } from './test-database.ts'

let clickhouse: ClickHouseClient

beforeAll(async () => {
  clickhouse = await openTestDatabase()
})

afterAll(async () => {
  await clickhouse.close()
})

/** A frame of rows of these ids: received a minute apart, of two projects with retentions of their own, unless it is said. */
function frameOf(
  ids: readonly string[],
  stampOf: (i: number) => RequestStamp = (i) => ({
    projectId: `p${i % 2}`,
    retentionDays: 30 + (i % 2),
    receivedAtMs: Date.now() - i * 60_000,
  }),
): Buffer {
  const rows = ids.map((id, i) => {
    const shaped = shapeRow({ level: 'info', message: 'm' }, id, startRows(stampOf(i)), false)
    if ('error' in shaped) throw new Error(shaped.error.message)
    return shaped.row
  })
  return encodeFrame(rows.join(''))
}

const newIds = (count: number): string[] => Array.from({ length: count }, () => randomUUID())

it('finds the rows that are stored, and no others', async () => {
  const ids = newIds(9)
  const stored = frameOf(ids)
  await new Inserter(clickhouse).insert([stored], randomUUID())
  const found = await new StoredRows(clickhouse).find([frameOf(newIds(9)), stored, frameOf(newIds(9))])
  expect(found).toEqual(new Set(ids))
})

it('asks for more rows than one query has room for', async () => {
  const frames = Array.from({ length: 5 }, () => frameOf(newIds(2_000)))
  await new Inserter(clickhouse).insert(frames.slice(1), randomUUID())
  const found = await new StoredRows(clickhouse).find(frames)
  expect(found.size).toBe(8_000)
  expect(framesWithout(found, frames)).toEqual([frames[0]])
})

it('finds nothing in a frame that cannot be read, and leaves it as it is', async () => {
  const broken = Buffer.from('not zstd')
  expect(await new StoredRows(clickhouse).find([broken])).toEqual(new Set())
  expect(framesWithout(new Set(['x']), [broken])).toEqual([broken])
})

it('asks ClickHouse what day it is', async () => {
  const ids = newIds(2)
  const query = (async () => ({
    json: async () => [{ today: '2100-01-01' }],
  })) as unknown as ClickHouseClient['query']
  expect(await new StoredRows({ query }).find([frameOf(ids)])).toEqual(new Set(ids))
})

it('takes rows for stored whose day of expiry has come', async () => {
  const ids = newIds(3)
  const expiring = frameOf(ids, (i) => ({
    projectId: 'p',
    retentionDays: 1,
    receivedAtMs: Date.now() - (3 - i) * 86_400_000,
  }))
  const found = await new StoredRows(clickhouse).find([expiring])
  // A day is added to the retention, so the last of them has until tomorrow.
  expect(found).toEqual(new Set(ids.slice(0, 2)))
})
