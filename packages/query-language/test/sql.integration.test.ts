import {
  connectClickHouse,
  logsTable,
  migrate,
  migrationsFolder,
  readMigrations,
  readRows,
} from '@sluice/clickhouse'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { randomUUID } from 'node:crypto'
import { afterAll, expect, inject, it } from 'vitest'
import { matcher, type QueriedEntry } from '../src/match.ts'
import type { Query } from '../src/query.ts'
import { toSql } from '../src/sql.ts'
import { anyEntry, anyQuery, anyTerm } from './support/arbitrary-query.ts'
import { printQuery } from './support/print-query.ts'
import { queryOf } from './support/query-of.ts'

const access = { ...inject('services').clickhouse, database: `test_${randomUUID().slice(0, 8)}` }
await migrate(access, await readMigrations(migrationsFolder))
const clickhouse = connectClickHouse(access, { requestTimeoutMs: 60_000, connectionsMax: 1 })
afterAll(() => clickhouse.close())

const QUERIES_PER_REQUEST = 50

/** Which entries match each query, by ClickHouse. The project's id is the entry's number. */
async function matchesInClickHouse(
  entries: readonly QueriedEntry[],
  queries: readonly Query[],
): Promise<number[][]> {
  await clickhouse.command({ query: `TRUNCATE TABLE ${logsTable}` })
  await clickhouse.insert({
    table: logsTable,
    values: entries.map(({ metadata, timestamp, received_at, ...columns }, index) => ({
      ...columns,
      project_id: String(index),
      expires_on: '2100-01-01',
      timestamp: timestamp?.slice(0, -1),
      received_at: received_at?.slice(0, -1),
      metadata_text: metadata,
    })),
    format: 'JSONEachRow',
  })
  const results: number[][] = []
  for (let from = 0; from < queries.length; from += QUERIES_PER_REQUEST) {
    const parameters: Record<string, unknown> = {}
    const conditions = queries.slice(from, from + QUERIES_PER_REQUEST).map((query, index) => {
      const condition = toSql(query)
      for (const [name, value] of Object.entries(condition.parameters)) parameters[`p${index}${name}`] = value
      const sql = `(${condition.first ?? 'true'}) AND ${condition.sql}`
      return `toUInt8(${sql.replaceAll(/\{(q\d+):/g, `{p${index}$1:`)})`
    })
    const rows = await readRows<{ matches: number[] }>(
      clickhouse,
      `SELECT [${conditions.join(', ')}] AS matches FROM ${logsTable} ORDER BY toUInt32(project_id)`,
      parameters,
    )
    for (const index of conditions.keys()) results.push(rows.map(({ matches }) => matches[index] ?? -1))
  }
  return results
}

async function expectSameResults(entries: readonly QueriedEntry[], queries: readonly Query[]): Promise<void> {
  const results = await matchesInClickHouse(entries, queries)
  const different = queries.flatMap((query, index) => {
    const matches = matcher(query)
    return entries.flatMap((entry, number) =>
      Number(matches(entry)) === results[index]?.[number]
        ? []
        : [{ query: printQuery(query), entry: JSON.stringify(entry), clickhouse: results[index]?.[number] }],
    )
  })
  expect(different.slice(0, 3)).toEqual([])
}

it('finds the entries in ClickHouse that match in memory', async () => {
  const entries = fc.sample(anyEntry, runsOf(300))
  const queries = [...fc.sample(anyTerm, runsOf(200)), ...fc.sample(anyQuery, runsOf(50))]
  await expectSameResults(entries, queries)
  // Otherwise nothing is compared.
  const shares = queries.map((query) => entries.filter(matcher(query)).length / entries.length)
  expect(shares.filter((share) => share > 0 && share < 1).length).toBeGreaterThan(queries.length / 4)
})

it('finds zero, with a sign or without', async () => {
  const zeros = ['-0.0', '-0', '0'].map((zero) => ({ metadata: `{"a":${zero}}` }))
  const queries = ['a:-0', 'a:0', 'a:-0.0', 'a:0e1'].map(queryOf)
  await expectSameResults(zeros, queries)
  for (const query of queries) expect(zeros.filter(matcher(query))).toEqual(zeros)
})

// ClickHouse writes such a float as an integer that it cannot read.
it('finds an element of a list with a float of 20 digits', async () => {
  await expectSameResults(
    [{ metadata: '{"a":["x",62669818392190290000.5]}' }],
    [queryOf('a:x'), queryOf('a:>=w')],
  )
})
