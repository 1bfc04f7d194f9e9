import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, inject, it } from 'vitest'
import { connectClickHouse } from '../src/client.ts'
import {
  migrate,
  migrationsFolder,
  readMigrations,
  replicatedStatement,
  statementsOf,
} from '../src/migrate.ts'
import { select } from './test-database.ts'

const database = `migrate_${randomUUID().replaceAll('-', '')}`
const access = { ...inject('services').clickhouse, database }
const client = connectClickHouse(
  { ...access, database: 'default' },
  { requestTimeoutMs: 20_000, connectionsMax: 1 },
)
const migrations = await readMigrations(migrationsFolder)

afterAll(async () => {
  await client.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` })
  await client.close()
})

it('may run several times in parallel, and does nothing when it runs again', async () => {
  await Promise.all([migrate(access, migrations), migrate(access, migrations), migrate(access, migrations)])
  expect(await migrate(access, migrations)).toEqual([])
  const query = 'SELECT engine FROM system.tables WHERE database = {database: String} ORDER BY engine'
  const tables = await select<{ engine: string }>(client, query, { database })
  expect(tables.map(({ engine }) => engine)).toEqual([
    'MergeTree',
    'MergeTree',
    'MergeTree',
    'MergeTree',
    'ReplacingMergeTree',
  ])
})

it('does not use the tables of a single server for a cluster, and creates nothing on a cluster that does not exist', async () => {
  await migrate(access, migrations)
  await expect(migrate({ ...access, cluster: 'main' }, migrations)).rejects.toThrow(
    `the tables in ${database} belong to a single server; docs/scaling.md`,
  )
  const elsewhere = { ...access, database: `${database}_cluster`, cluster: 'no-such' }
  await expect(migrate(elsewhere, migrations)).rejects.toMatchObject({
    code: expect.stringMatching(/^(170|392|701)$/) as string,
  })
  const query = 'SELECT 1 FROM system.databases WHERE name = {name: String}'
  expect(await select(client, query, { name: elsewhere.database })).toEqual([])
})

it('the day of expiry starts at midnight UTC, whatever the time zone of the server', async () => {
  await migrate(access, migrations)
  const query = 'SELECT create_table_query AS text FROM system.tables WHERE database = {database: String}'
  const [table] = await select<{ text: string }>(client, `${query} AND name = 'logs'`, { database })
  expect(table?.text).toContain("TTL toDateTime(expires_on, 'UTC')")
  expect(table?.text).toContain("CHECK expires_on > toDate(now('UTC'))")
})

describe('a statement for a cluster', () => {
  it.each(['prod-1', '{cluster}'])('is understood by ClickHouse, with the name %s', async (cluster) => {
    const query = 'SELECT formatQuery({statement: String}) AS text'
    for (const each of migrations.flatMap(({ sql }) => statementsOf(sql))) {
      const statement = replicatedStatement(each, cluster)
      const [row] = await select<{ text: string }>(client, query, { statement })
      const [head = '', ...body] = row?.text.split('\n') ?? []
      const form = /^(CREATE TABLE IF NOT EXISTS|ALTER TABLE) \w+ ON CLUSTER `(.+)`$/
      expect(form.exec(head)?.[2]).toBe(cluster)
      // Only a new table has an engine. Replicas do not share the settings of a table, so each server runs their changes. They share
      // columns, constraints and TTLs: one of them runs the statement.
      expect(body.join('\n')).toMatch(
        head.startsWith('CREATE')
          ? /^ENGINE = ReplicatedMergeTree\(/m
          : /^ {4}\((MODIFY SETTING (\w+ = (\d+|''), )*\w+ = (\d+|'')|MODIFY COLUMN .+|ADD CONSTRAINT IF NOT EXISTS .+|MODIFY TTL .+)\)$/m,
      )
    }
  })

  it('only uses table settings that this ClickHouse has', async () => {
    const settings = migrations.flatMap(({ sql }) =>
      statementsOf(sql).flatMap((statement) => {
        const [, list = ''] = replicatedStatement(statement, 'main').split(/^SETTINGS\b|\bMODIFY SETTING\b/m)
        return [...list.matchAll(/(\w+) = /g)].map(([, name]) => name)
      }),
    )
    for (const name of [
      'replicated_deduplication_window_seconds',
      'fsync_after_insert',
      'fsync_part_directory',
    ])
      expect(settings).toContain(name)
    const unknown = await select(
      client,
      `SELECT arrayJoin({settings: Array(String)}) AS name
       WHERE name NOT IN (SELECT name FROM system.merge_tree_settings)`,
      { settings },
    )
    expect(unknown).toEqual([])
  })
})
