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

describe('migrate', () => {
  it('may run several times in parallel, and does nothing when it runs again', async () => {
    await Promise.all([migrate(access, migrations), migrate(access, migrations), migrate(access, migrations)])
    expect(await migrate(access, migrations)).toEqual([])
    const tables = await select<{ engine: string }>(
      client,
      'SELECT engine FROM system.tables WHERE database = {database: String} ORDER BY engine',
      { database },
    )
    expect(tables.map(({ engine }) => engine)).toEqual(['MergeTree', 'MergeTree', 'ReplacingMergeTree'])
  })

  it('does not use the tables of a single server for a cluster, and does not change them', async () => {
    await migrate(access, migrations)
    await expect(migrate({ ...access, cluster: 'main' }, migrations)).rejects.toThrow(
      `the tables in ${database} belong to a single server; docs/scaling.md`,
    )
  })

  it('creates nothing if the cluster does not exist', async () => {
    const elsewhere = `${database}_cluster`
    await expect(
      migrate({ ...access, database: elsewhere, cluster: 'no-such' }, migrations),
    ).rejects.toMatchObject({ code: expect.stringMatching(/^(170|392|701)$/) as string })
    expect(
      await select(client, 'SELECT 1 FROM system.databases WHERE name = {name: String}', { name: elsewhere }),
    ).toEqual([])
  })
})

it('the day of expiry starts at midnight UTC, whatever the time zone of the server', async () => {
  await migrate(access, migrations)
  const [table] = await select<{ text: string }>(
    client,
    "SELECT create_table_query AS text FROM system.tables WHERE database = {database: String} AND name = 'logs'",
    { database },
  )
  expect(table?.text).toContain("TTL toDateTime(expires_on, 'UTC')")
  expect(table?.text).toContain("CHECK expires_on > toDate(now('UTC'))")
})

describe('a statement for a cluster', () => {
  it.each(['prod-1', '{cluster}'])('is understood by ClickHouse, with the name %s', async (cluster) => {
    for (const statement of migrations.flatMap(({ sql }) => statementsOf(sql))) {
      const [row] = await select<{ text: string }>(
        client,
        'SELECT formatQuery({statement: String}) AS text',
        {
          statement: replicatedStatement(statement, cluster),
        },
      )
      const [head = '', ...body] = row?.text.split('\n') ?? []
      expect(head).toMatch(/^(CREATE TABLE IF NOT EXISTS|ALTER TABLE) \w+ ON CLUSTER `/)
      expect(head.endsWith(` ON CLUSTER \`${cluster}\``)).toBe(true)
      // Only a new table has an engine. Replicas do not share the settings of a table, so each server runs their changes. They share
      // constraints and TTLs: one of them runs the statement.
      expect(body.join('\n')).toMatch(
        head.startsWith('CREATE')
          ? /^ENGINE = ReplicatedMergeTree\(/m
          : /^ {4}\((MODIFY SETTING (\w+ = \d+, )*\w+ = \d+|ADD CONSTRAINT IF NOT EXISTS .+|MODIFY TTL .+)\)$/m,
      )
    }
  })

  it('only uses table settings that this ClickHouse has', async () => {
    const withSettings = migrations
      .flatMap(({ sql }) => statementsOf(sql))
      .filter((statement) => !/\b(ADD CONSTRAINT|MODIFY TTL)\b/.test(statement))
    const settings = withSettings.flatMap((statement) => {
      const [, list] = replicatedStatement(statement, 'main').split(/^SETTINGS\b|\bMODIFY SETTING\b/m)
      expect(list).toBeDefined()
      return [...(list ?? '').matchAll(/(\w+) = /g)].map(([, name]) => name)
    })
    for (const name of [
      'replicated_deduplication_window_seconds',
      'fsync_after_insert',
      'fsync_part_directory',
      'min_rows_to_fsync_after_merge',
      'min_compressed_bytes_to_fsync_after_fetch',
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
