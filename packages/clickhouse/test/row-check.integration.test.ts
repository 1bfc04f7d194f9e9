import { rowKey } from '@sluice/rows'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ClickHouseClient } from '../src/client.ts'
import { rowChecker, type RowCheck } from '../src/row-check.ts'
import { makeRow, openTestDatabase, unwatched } from './test-database.ts'

let clickhouse: ClickHouseClient
let check: RowCheck

beforeEach(async () => {
  clickhouse = await openTestDatabase()
  check = rowChecker(clickhouse, unwatched)
})

afterEach(() => clickhouse.close())

const rows = ['good', "a 'quoted' \\ one\n", 'bad', ''].map((message) =>
  makeRow({ projectId: 'p' }, { message }),
)
const ids = rows.map((row) => rowKey(row).id)

async function found(its = rows): Promise<readonly (readonly [string, string | undefined])[]> {
  const suspects = await check.findSuspects(its)
  return [...suspects].map(([id, violated]) => [id, /`(.*)`/.exec(violated?.message ?? '')?.[1]] as const)
}

async function alter(change: string): Promise<void> {
  await clickhouse.command({ query: `ALTER TABLE logs ${change}` })
}

it('finds no row if the table has no constraints of an operator', async () => {
  expect(await found()).toEqual([])
})

it('finds rows that violate one of several constraints', async () => {
  await alter(`ADD CONSTRAINT a CHECK message != 'bad' OR level = 'x'`)
  await alter(`ADD CONSTRAINT b CHECK notEmpty(message)`)
  expect(await found()).toEqual([
    [ids[2], 'a'],
    [ids[3], 'b'],
  ])
})

it('finds rows that ClickHouse cannot parse', async () => {
  const old = makeRow({ projectId: 'p' }, { message: 'b' }).replace('\tinfo\t', '\tother\t')
  await alter(`MODIFY COLUMN level Enum8('info' = 1)`)
  expect(await found([...rows, old])).toEqual([[rowKey(old).id, undefined]])
})

it('finds rows that violate a constraint on a computed column', async () => {
  await alter(`ADD COLUMN size UInt64 MATERIALIZED length(message)`)
  await alter(`ADD CONSTRAINT a CHECK size < 5`)
  expect(await found()).toEqual([[ids[1], 'a']])
})

it('fails if a constraint throws an exception', async () => {
  await alter(`ADD CONSTRAINT a CHECK throwIf(message = 'bad') = 0`)
  await expect(check.findSuspects(rows)).rejects.toThrow('throwIf')
})
