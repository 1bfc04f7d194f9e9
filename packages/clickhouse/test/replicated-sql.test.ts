import { describe, expect, it } from 'vitest'
import { migrationsFolder, readMigrations, statementsOf } from '../src/migrate.ts'
import { replicatedStatement, replicatedWindowSeconds } from '../src/replicated-sql.ts'

const create = `-- ENGINE = MergeTree in a comment.
CREATE TABLE IF NOT EXISTS things
(
    a UInt8 COMMENT 'ENGINE = MergeTree'
)
ENGINE = MergeTree
ORDER BY a
SETTINGS
    ttl_only_drop_parts = 1,
    non_replicated_deduplication_window = 100`

describe('a statement for a cluster', () => {
  it('creates a replicated table on all servers, with the deduplication window of a replicated table', () => {
    expect(replicatedStatement(create, 'main')).toBe(`-- ENGINE = MergeTree in a comment.
CREATE TABLE IF NOT EXISTS things ON CLUSTER 'main'
(
    a UInt8 COMMENT 'ENGINE = MergeTree'
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')
ORDER BY a
SETTINGS
    ttl_only_drop_parts = 1,
    replicated_deduplication_window = 100, replicated_deduplication_window_seconds = ${replicatedWindowSeconds}`)
  })

  it('may have a macro as the name of the cluster', () => {
    expect(replicatedStatement(create, '{cluster}')).toContain("things ON CLUSTER '{cluster}'\n")
  })

  it('keeps the other kinds of MergeTree', () => {
    const statement = 'CREATE TABLE IF NOT EXISTS t (a UInt8)\nENGINE = ReplacingMergeTree\nORDER BY a'
    expect(replicatedStatement(statement, 'main')).toContain('ENGINE = ReplicatedReplacingMergeTree(')
  })

  it('alters a table on all servers, including its deduplication window', () => {
    const statement = 'ALTER TABLE logs MODIFY SETTING non_replicated_deduplication_window = 5'
    expect(replicatedStatement(statement, 'main')).toBe(
      `ALTER TABLE logs ON CLUSTER 'main' MODIFY SETTING replicated_deduplication_window = 5, ` +
        `replicated_deduplication_window_seconds = ${replicatedWindowSeconds}`,
    )
  })

  it.each([
    ['INSERT INTO logs SELECT 1'],
    ['CREATE TABLE logs (a UInt8)\nENGINE = MergeTree\nORDER BY a'],
    ['CREATE TABLE IF NOT EXISTS logs (a UInt8)\nENGINE = Memory'],
    ['CREATE MATERIALIZED VIEW v AS SELECT 1'],
  ])('is not guessed for: %s', (statement) => {
    expect(() => replicatedStatement(`-- Why.\n${statement}`, 'main')).toThrow(
      `no cluster form is known for: ${statement.split('\n')[0]}`,
    )
  })

  it('exists for every statement of the migrations of this project', async () => {
    const migrations = await readMigrations(migrationsFolder)
    const statements = migrations.flatMap(({ sql }) => statementsOf(sql))
    expect(statements.length).toBeGreaterThanOrEqual(migrations.length)
    for (const statement of statements) {
      const replicated = replicatedStatement(statement, 'main')
      expect(replicated).toContain(" ON CLUSTER 'main'")
      expect(replicated).not.toMatch(/\bENGINE = (?!Replicated)|non_replicated_/)
    }
  })
})
