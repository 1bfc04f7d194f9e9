import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { type ClickHouseAccess, type ClickHouseClient, connectClickHouse } from './clickhouse.ts'

/** A numbered SQL file. Its statements can be run again: ClickHouse has no transaction that would undo half of them. */
export interface Migration {
  readonly version: number
  readonly name: string
  readonly sql: string
  /** SHA-256 of the text, so that a file that was changed after it was applied is noticed. */
  readonly checksum: string
}

/** A migration that cannot be applied as it is; the message is for the person who applies it. */
export class MigrationError extends Error {
  override name = 'MigrationError'
}

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/
const LEDGER = 'sluice_migrations'
const REQUEST_TIMEOUT_MS = 60_000

/** The migrations in a folder, in order. Their numbers run from 1 without a gap. */
export async function readMigrations(folder: URL): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).toSorted()
  return Promise.all(
    files.map(async (file, index) => {
      const [, digits, name] = FILE_NAME.exec(file) ?? []
      if (digits === undefined || name === undefined || Number(digits) !== index + 1) {
        throw new MigrationError(`${file} is not the migration ${index + 1} by its name`)
      }
      const sql = await readFile(new URL(file, folder), 'utf8')
      return { version: Number(digits), name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    }),
  )
}

/**
 * Makes the database if it is missing, and applies the migrations that the ledger does not have yet.
 *
 * @returns the migrations that were applied now
 * @throws MigrationError when a migration was changed after it was applied
 */
export async function migrate(
  access: ClickHouseAccess,
  migrations: readonly Migration[],
): Promise<Migration[]> {
  const tuning = { requestTimeoutMs: REQUEST_TIMEOUT_MS, connectionsMax: 1 }
  const server = connectClickHouse({ ...access, database: 'default' }, tuning)
  try {
    await server.command({ query: `CREATE DATABASE IF NOT EXISTS ${access.database}` })
  } finally {
    await server.close()
  }
  const client = connectClickHouse(access, tuning)
  try {
    const applied = await readLedger(client)
    const pending = migrations.filter((migration) => isPending(migration, applied))
    for (const migration of pending) await apply(client, migration)
    return pending
  } finally {
    await client.close()
  }
}

async function readLedger(client: ClickHouseClient): Promise<Map<number, string>> {
  await client.command({
    query: `CREATE TABLE IF NOT EXISTS ${LEDGER}
      (version UInt32, name String, checksum String, applied_at DateTime DEFAULT now())
      ENGINE = ReplacingMergeTree ORDER BY version`,
  })
  const result = await client.query({
    query: `SELECT version, checksum FROM ${LEDGER} FINAL`,
    format: 'JSONEachRow',
  })
  const rows = await result.json<{ version: number; checksum: string }>()
  return new Map(rows.map(({ version, checksum }) => [version, checksum]))
}

function isPending({ version, name, checksum }: Migration, applied: ReadonlyMap<number, string>): boolean {
  const known = applied.get(version)
  if (known !== undefined && known !== checksum) {
    throw new MigrationError(
      `migration ${version} (${name}) was changed after it was applied; add a new one instead`,
    )
  }
  return known === undefined
}

async function apply(client: ClickHouseClient, { version, name, sql, checksum }: Migration): Promise<void> {
  // A statement ends at a semicolon at the end of a line.
  for (const statement of sql.split(/;\s*$/m)) {
    if (statement.replaceAll(/^\s*--.*$/gm, '').trim() === '') continue
    await client.command({ query: statement })
  }
  await client.insert({ table: LEDGER, values: [{ version, name, checksum }], format: 'JSONEachRow' })
}
