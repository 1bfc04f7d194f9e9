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
    const files = { '0002-more.sql': 'SELECT 2', '0001-logs.sql': 'SELECT 1', '0003-b.sql.bak': '' }
    const migrations = await read(files)
    const checksum = createHash('sha256').update('SELECT 1').digest('hex')
    expect(migrations[0]).toEqual({ version: 1, name: 'logs', sql: 'SELECT 1', checksum })
    expect(migrations.map(({ version, name }) => `${version} ${name}`)).toEqual(['1 logs', '2 more'])
  })

  it.each([
    ['a gap', ['0001-a.sql', '0003-c.sql'], '0003-c.sql'],
    ['a start that is not 1', ['0002-a.sql'], '0002-a.sql'],
    ['a duplicate number', ['0001-a.sql', '0001-b.sql'], '0001-b.sql'],
  ])('rejects %s, and names the file', async (_what, names, culprit) => {
    await expect(read(Object.fromEntries(names.map((name) => [name, ''])))).rejects.toThrow(culprit)
  })
})

/** The requests that create something. */
async function creations(sql: string, cluster: { cluster: string } | undefined) {
  const migration = { version: 1, name: 'things', sql, checksum: 'sum' }
  const requests = await recordRequests(async (url) => {
    const access = { url, username: 'u', password: '', database: 'd', ...cluster }
    expect(await migrate(access, [migration])).toEqual([migration])
  })
  return requests.filter(({ body }) => /CREATE|ALTER/.test(body))
}

const sql = `-- ENGINE = MergeTree in a comment.
CREATE TABLE IF NOT EXISTS things
(
    a UInt8 COMMENT 'ENGINE = MergeTree'
)
ENGINE = MergeTree
ORDER BY a
SETTINGS
    ttl_only_drop_parts = 1,
    non_replicated_deduplication_window = 100;
ALTER TABLE things MODIFY SETTING non_replicated_deduplication_window = 5`

it('creates and alters everything on all servers of a cluster, including the ledger, and gets an error if any server fails', async () => {
  const requests = await creations(sql, { cluster: '{cluster}' })
  const windowSeconds = `replicated_deduplication_window_seconds = ${replicatedWindowSeconds}`
  const [database, ledger, things, altered] = requests.map(({ body }) => body.trim())
  expect(database).toBe("CREATE DATABASE IF NOT EXISTS d ON CLUSTER '{cluster}'")
  expect(ledger).toMatch(/^CREATE TABLE IF NOT EXISTS sluice_migrations ON CLUSTER '\{cluster\}'\n/)
  expect(ledger).toContain('ENGINE = ReplicatedReplacingMergeTree(')
  expect(things).toBe(`-- ENGINE = MergeTree in a comment.
CREATE TABLE IF NOT EXISTS things ON CLUSTER '{cluster}'
(
    a UInt8 COMMENT 'ENGINE = MergeTree'
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')
ORDER BY a
SETTINGS
    ttl_only_drop_parts = 1,
    replicated_deduplication_window = 100, ${windowSeconds}`)
  expect(altered).toBe(
    `ALTER TABLE things ON CLUSTER '{cluster}' MODIFY SETTING replicated_deduplication_window = 5, ${windowSeconds}`,
  )
  for (const { parameters } of requests)
    expect(parameters).toMatchObject({
      distributed_ddl_task_timeout: '50',
      distributed_ddl_output_mode: 'throw',
      wait_end_of_query: '1',
    })
})

it('sends statements to a single server unchanged', async () => {
  const requests = await creations(sql, undefined)
  expect(requests[0]?.body).toBe('CREATE DATABASE IF NOT EXISTS d')
  expect(requests.slice(2).map(({ body }) => body.trim())).toEqual(sql.split(';\n'))
  for (const { parameters } of requests)
    expect(Object.keys(parameters).filter((name) => /distributed|quorum|wait/.test(name))).toEqual([])
})

it.each([
  'INSERT INTO logs SELECT 1',
  'CREATE TABLE logs (a UInt8)\nENGINE = MergeTree\nORDER BY a',
  'CREATE TABLE IF NOT EXISTS logs (a UInt8)\nENGINE = Memory',
])('the form of a statement for a cluster is not guessed: %s', (statement) => {
  expect(() => replicatedStatement(`-- Why.\n${statement}`, 'main')).toThrow(
    `no cluster form is known for: ${statement.split('\n')[0]}`,
  )
})
