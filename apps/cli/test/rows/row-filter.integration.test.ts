import { type ClickHouseClient, logsInsertQuery } from '@sluice/clickhouse'
import { parseJsonExactly } from '@sluice/rows'
import { rowOf, textPrefix } from '@sluice/rows/testing'
import type { Entry } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestDatabase, select } from '../../../../packages/clickhouse/test/test-database.ts'
import { type MetadataFilter, parseMetadataFilter } from '../../src/rows/metadata-filter.ts'
import { rowCondition } from '../../src/rows/row-filter.ts'

let client: ClickHouseClient

beforeAll(async () => {
  client = await openTestDatabase()
})
afterAll(() => client.close())

/** Stores entries, given as JSON, as the API and the worker would. */
async function store(entries: readonly string[]): Promise<void> {
  const rowPrefix = textPrefix({ projectId: 'where', retentionDays: 30, receivedAtMs: Date.now() })
  const rows = entries.map((entry) => rowOf(parseJsonExactly(entry) as Entry, randomUUID(), rowPrefix))
  await client.command({ query: `${logsInsertQuery}\n${rows.join('')}` })
}

/** The messages of the rows that a filter selects. */
async function messages({
  where,
  ...filter
}: {
  where: readonly string[]
  environment?: readonly string[]
}): Promise<string[]> {
  const conditions = where.reduce<MetadataFilter[]>(
    (before, each) => parseMetadataFilter(`metadata.${each}`, before),
    [],
  )
  const { condition, params } = rowCondition('where', { ...filter, where: conditions })
  const rows = await select<{ message: string }>(
    client,
    `SELECT message FROM logs WHERE ${condition} ORDER BY timestamp`,
    params,
  )
  return rows.map(({ message }) => message)
}

const values = {
  integer: '42',
  text: '"42"',
  decimal: '42.0',
  exponent: '4.2e1',
  other: '43',
  yes: 'true',
  'yes-text': '"true"',
  nothing: 'null',
  'nothing-text': '"null"',
  empty: '""',
  object: '{"a":42}',
  array: '[42]',
  large: '9007199254740993',
  neighbour: '9007199254740992',
  huge: '123456789012345678901234567890',
  quotes: String.raw`"it's \" \\ x' OR 1=1 --"`,
  unicode: '"Ärger 東京"',
}
beforeAll(async () => {
  const entries = Object.entries(values).map(
    ([name, value], index) =>
      `{"level":"info","message":"${name}","environment":"${index === 0 ? 'staging' : 'production'}",` +
      `"timestamp":"2026-01-01T00:00:${String(index).padStart(2, '0')}Z",` +
      `"metadata":{"v":${value},"deep":{"er":{"v":${value}}},"flat.v":${value},"n":${index}}}`,
  )
  await store([
    ...entries,
    '{"level":"info","message":"absent","metadata":{"n":100}}',
    '{"level":"info","message":"next to huge numbers","metadata":{"v":44, "big": 1e400,"bigger":123456789012345678901234567890}}',
    '{"level":"info","message":"dots","metadata":{"a.b":1,"c d":{"e=\\"":2}}}',
  ])
})

test.each([
  ['v=42', ['integer', 'text', 'decimal', 'exponent']],
  ['v=42.0', ['integer', 'decimal', 'exponent']],
  ['v="42"', ['text']],
  ['v=true', ['yes', 'yes-text']],
  ['v="true"', ['yes-text']],
  ['v=null', ['nothing', 'nothing-text']],
  ['v="null"', ['nothing-text']],
  ['v=', ['empty']],
  ['v={"a":42}', []],
  ['v=9007199254740993', ['large']],
  ['v=9007199254740992', ['neighbour']],
  ['v=123456789012345678901234567890', ['huge']],
  [String.raw`v=it's " \ x' OR 1=1 --`, ['quotes']],
  ['v=Ärger 東京', ['unicode']],
  ['v=ärger 東京', []],
  ["v=' OR 1=1 --", []],
  ['v=44', ['next to huge numbers']],
  // A path leads through nested names, or is one name with dots.
  ['deep.er.v=43', ['other']],
  ['flat.v=43', ['other']],
  ['"flat.v"=43', ['other']],
  ['a.b=1', ['dots']],
  [String.raw`"c d"."e=\""=2`, ['dots']],
  ['deep.er=43', []],
  ['v.a=43', []],
  ["v'=43", []],
])('metadata.%s', async (condition, expected) => {
  expect(await messages({ where: [condition] })).toEqual(expected)
})

test('all conditions must hold, with the other filters', async () => {
  expect(await messages({ where: ['v=42', 'n=1'] })).toEqual(['text'])
  expect(await messages({ where: ['v=42', 'n=99'] })).toEqual([])
  expect(await messages({ where: ['v=42'], environment: ['staging'] })).toEqual(['integer'])
  expect(await messages({ where: ['v=42'], environment: ['staging', 'production'] })).toHaveLength(4)
})
