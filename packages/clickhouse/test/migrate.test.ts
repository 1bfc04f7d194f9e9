import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { migrate, readMigrations, replicatedStatement, replicatedWindowSeconds } from '../src/migrate.ts'
import { recordRequests } from './recorder.ts'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-migrations-'))
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

async function read(files: Readonly<Record<string, string>>): ReturnType<typeof readMigrations> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return readMigrations(pathToFileURL(`${folder}/`))
}

describe('readMigrations', () => {
  it('reads the files in the order of their numbers, each with its version, name and checksum', async () => {
    const migrations = await read({ '0002-more.sql': 'SELECT 2', '0001-logs.sql': 'SELECT 1' })
    const checksum = createHash('sha256').update('SELECT 1').digest('hex')
    expect(migrations[0]).toEqual({ version: 1, name: 'logs', sql: 'SELECT 1', checksum })
    expect(migrations.map(({ version, name }) => `${version} ${name}`)).toEqual(['1 logs', '2 more'])
  })

  it('ignores files that are not SQL', async () => {
    const migrations = await read({
      '0001-a.sql': '',
      'README.md': '',
      '0002-b.sql.bak': '',
      '.DS_Store': '',
    })
    expect(migrations).toHaveLength(1)
  })

  it.each([
    ['a gap', ['0001-a.sql', '0003-c.sql'], '0003-c.sql'],
    ['a start that is not 1', ['0002-a.sql'], '0002-a.sql'],
    ['a start of 0', ['0000-a.sql', '0001-b.sql'], '0000-a.sql'],
    ['a duplicate number', ['0001-a.sql', '0001-b.sql'], '0001-b.sql'],
    ['no number', ['logs.sql'], 'logs.sql'],
    ['too few digits', ['001-a.sql'], '001-a.sql'],
    ['too many digits', ['00001-a.sql'], '00001-a.sql'],
    ['upper-case letters', ['0001-Logs.sql'], '0001-Logs.sql'],
    ['no name', ['0001-.sql'], '0001-.sql'],
    ['an underscore', ['0001_a.sql'], '0001_a.sql'],
  ])('rejects %s, and names the file', async (_what, names, culprit) => {
    await expect(read(Object.fromEntries(names.map((name) => [name, ''])))).rejects.toThrow(culprit)
  })
})

describe('migrate', () => {
  const migration = {
    version: 1,
    name: 'things',
    sql: 'CREATE TABLE IF NOT EXISTS things (a UInt8)\nENGINE = MergeTree\nORDER BY a;\n',
    checksum: 'sum',
  }

  /** The requests that create something. */
  async function creations(cluster: { cluster: string } | undefined) {
    const requests = await recordRequests(async (url) => {
      const access = { url, username: 'u', password: '', database: 'd', ...cluster }
      expect(await migrate(access, [migration])).toEqual([migration])
    })
    return requests.filter(({ body }) => body.startsWith('CREATE'))
  }

  it('creates everything on all servers of a cluster, including the ledger, and gets an error if any server fails', async () => {
    const requests = await creations({ cluster: '{cluster}' })
    expect(requests.map(({ body }) => body.split('\n', 1)[0])).toEqual([
      "CREATE DATABASE IF NOT EXISTS d ON CLUSTER '{cluster}'",
      "CREATE TABLE IF NOT EXISTS sluice_migrations ON CLUSTER '{cluster}'",
      "CREATE TABLE IF NOT EXISTS things ON CLUSTER '{cluster}' (a UInt8)",
    ])
    expect(requests.map(({ body }) => /ENGINE = (\w+)/.exec(body)?.[1])).toEqual([
      undefined,
      'ReplicatedReplacingMergeTree',
      'ReplicatedMergeTree',
    ])
    for (const { parameters } of requests) {
      expect(parameters).toMatchObject({
        distributed_ddl_task_timeout: '50',
        distributed_ddl_output_mode: 'throw',
        wait_end_of_query: '1',
      })
    }
  })

  it('sends statements to a single server unchanged', async () => {
    const requests = await creations(undefined)
    expect(requests[0]?.body).toBe('CREATE DATABASE IF NOT EXISTS d')
    expect(requests[2]?.body).toBe(migration.sql.slice(0, -2))
    for (const { body, parameters } of requests) {
      expect(body).not.toMatch(/CLUSTER|Replicated/)
      expect(Object.keys(parameters).filter((name) => /distributed|quorum|wait/.test(name))).toEqual([])
    }
  })
})

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
})
