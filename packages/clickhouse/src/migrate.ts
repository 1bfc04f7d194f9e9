import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { type ClickHouseAccess, type ClickHouseClient, connectClickHouse, readRows } from './client.ts'

export const migrationsFolder = new URL('../migrations/', import.meta.url)

/** A numbered SQL file. Its statements can be repeated: ClickHouse has no transactions that would undo half of them. */
export interface Migration {
  readonly version: number
  readonly name: string
  readonly sql: string
  /** SHA-256 of `sql`, which detects a file that was changed after it was applied. */
  readonly checksum: string
}

/** A migration that cannot be applied as it is. The message is for the operator. */
export class MigrationError extends Error {
  override name = 'MigrationError'
}

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/
const LEDGER = 'sluice_migrations'
const REQUEST_TIMEOUT_MS = 60_000

/** The ClickHouse settings of a statement that all servers of a cluster run. */
const clusterSettings = {
  // Shorter than the request timeout, so that the response reports how many servers have not run the statement. They run it when
  // they recover.
  distributed_ddl_task_timeout: String(REQUEST_TIMEOUT_MS / 1_000 - 10),
  distributed_ddl_output_mode: 'throw',
  // The servers' results arrive one by one. An error after the first result must not follow a status of 200.
  wait_end_of_query: 1,
} as const

/** Reads the migrations in a folder, in order. They are numbered from 1 without a gap. */
export async function readMigrations(folder: URL): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).toSorted()
  return Promise.all(
    files.map(async (file, index) => {
      const [, digits, name] = FILE_NAME.exec(file) ?? []
      if (digits === undefined || name === undefined || Number(digits) !== index + 1) {
        throw new MigrationError(`${file} is not a valid name for migration ${index + 1}`)
      }
      const sql = await readFile(new URL(file, folder), 'utf8')
      return { version: Number(digits), name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    }),
  )
}

/**
 * Creates the database if it does not exist, and applies the migrations that are not yet in the ledger, a table of the applied
 * migrations. On a cluster, all servers get the database and the tables, and the tables are replicated.
 *
 * @returns the migrations that this call applied
 * @throws MigrationError if a migration was changed after it was applied, or if the tables belong to a single server but a cluster
 *   is configured, or the other way round
 */
export async function migrate(
  access: ClickHouseAccess,
  migrations: readonly Migration[],
): Promise<Migration[]> {
  const { database, cluster } = access
  const tuning = { requestTimeoutMs: REQUEST_TIMEOUT_MS, connectionsMax: 1 }
  const server = connectClickHouse({ ...access, database: 'default' }, tuning)
  try {
    await checkEngine(server, access)
    const place = cluster === undefined ? '' : ` ${onCluster(cluster)}`
    await command(server, `CREATE DATABASE IF NOT EXISTS ${database}${place}`, cluster)
  } finally {
    await server.close()
  }
  const client = connectClickHouse(access, tuning)
  try {
    await runStatement(client, LEDGER_TABLE, cluster)
    const query = `SELECT version, checksum FROM ${LEDGER} FINAL`
    const ledger = await readRows<{ version: number; checksum: string }>(client, query)
    const applied = new Map(ledger.map(({ version, checksum }) => [version, checksum]))
    const pending = migrations.filter((migration) => isPending(migration, applied))
    for (const { version, name, sql, checksum } of pending) {
      for (const statement of statementsOf(sql)) await runStatement(client, statement, cluster)
      await client.insert({ table: LEDGER, values: [{ version, name, checksum }], format: 'JSONEachRow' })
    }
    return pending
  } finally {
    await client.close()
  }
}

const LEDGER_TABLE = `CREATE TABLE IF NOT EXISTS ${LEDGER}
(version UInt32, name String, checksum String, applied_at DateTime DEFAULT now())
ENGINE = ReplacingMergeTree
ORDER BY version`

/** Runs a statement of a migration, which creates a table or changes it. */
function runStatement(
  client: ClickHouseClient,
  statement: string,
  cluster: string | undefined,
): Promise<void> {
  const query = cluster === undefined ? statement : replicatedStatement(statement, cluster)
  return command(client, query, cluster)
}

async function command(client: ClickHouseClient, query: string, cluster: string | undefined): Promise<void> {
  await client.command({ query, clickhouse_settings: cluster === undefined ? {} : clusterSettings })
}

/**
 * Existing tables are not changed: without this check, tables of a single server would be used as if they were replicated. The ledger is the
 * first table that is created.
 */
async function checkEngine(client: ClickHouseClient, { database, cluster }: ClickHouseAccess): Promise<void> {
  const query =
    'SELECT engine FROM system.tables WHERE database = {database: String} AND name = {name: String}'
  const rows = await readRows<{ engine: string }>(client, query, { database, name: LEDGER })
  const { engine } = rows[0] ?? { engine: '' }
  if (cluster === undefined ? !engine.startsWith('Replicated') : engine !== 'ReplacingMergeTree') return
  const owner =
    cluster === undefined
      ? 'a cluster; set CLICKHOUSE_CLUSTER to its name'
      : 'a single server; docs/scaling.md describes how to move them to a cluster'
  throw new MigrationError(`the tables in ${database} belong to ${owner}`)
}

function isPending({ version, name, checksum }: Migration, applied: ReadonlyMap<number, string>): boolean {
  const known = applied.get(version) ?? checksum
  if (known !== checksum)
    throw new MigrationError(
      `migration ${version} (${name}) was changed after it was applied; add a new migration instead`,
    )
  return !applied.has(version)
}

/** Splits a migration into statements. Each ends with a semicolon at the end of a line. */
export function statementsOf(sql: string): string[] {
  return sql.split(/;\s*$/m).filter((part) => withoutComments(part) !== '')
}

function withoutComments(sql: string): string {
  return sql.replaceAll(/^\s*--.*$/gm, '').trim()
}

/**
 * The path in Keeper for the data that the replicas of a table share. It has names and not the table's UUID, so that a replica that is
 * created later joins the others.
 */
const ENGINE_ARGUMENTS = `('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')`

/**
 * A replicated table also forgets tokens that are this much older than the newest one. With the default of an hour, the first insert after an
 * outage of all workers would make it forget earlier ones.
 */
export const replicatedWindowSeconds = 365 * 24 * 60 * 60

const TARGET = /^\s*(?:CREATE TABLE IF NOT EXISTS|ALTER TABLE) \w+/m
const ENGINE = /^(\s*ENGINE = )(\w*MergeTree)\b/m
const WINDOW = /\bnon_replicated_deduplication_window = (\d+)/

/**
 * Converts a statement of a migration to its cluster form: it runs on all servers of the cluster, the table is replicated, and it has the
 * deduplication window of a replicated table.
 *
 * @param cluster validated by the pattern of CLICKHOUSE_CLUSTER, because it becomes part of the statement
 * @throws Error if no cluster form is known for the statement, which is a mistake in the migration
 */
export function replicatedStatement(statement: string, cluster: string): string {
  const target = TARGET.exec(statement)?.[0]
  if (target === undefined || (target.includes('CREATE') && !ENGINE.test(statement))) {
    throw new Error(`no cluster form is known for: ${withoutComments(statement).slice(0, 60)}`)
  }
  return statement
    .replace(TARGET, () => `${target} ${onCluster(cluster)}`)
    .replace(
      ENGINE,
      (_all, start: string, engine: string) => `${start}Replicated${engine}${ENGINE_ARGUMENTS}`,
    )
    .replace(
      WINDOW,
      (_all, blocks: string) =>
        `replicated_deduplication_window = ${blocks}, replicated_deduplication_window_seconds = ${replicatedWindowSeconds}`,
    )
}

/** The name is quoted: only a quoted name may be a macro. */
function onCluster(cluster: string): string {
  return `ON CLUSTER '${cluster}'`
}
