import { type RequestStamp } from '@sluice/rows'
import { rowOf, textPrefix } from '@sluice/rows/testing'
import { randomUUID } from 'node:crypto'
import { inject } from 'vitest'
import { type ClickHouseClient, connectClickHouse, readRows } from '../src/client.ts'
import type { InsertOnceOptions } from '../src/insert-once.ts'
import { migrate, migrationsFolder, readMigrations } from '../src/migrate.ts'
import type { QueryWatcher } from '../src/query-watch.ts'
import { logsTable } from '../src/tables.ts'

export { readRows as select } from '../src/client.ts'

/** Creates a database with Sluice's tables in the ClickHouse of the tests. */
export async function openTestDatabase(): Promise<ClickHouseClient> {
  const access = { ...inject('services').clickhouse, database: `test_${randomUUID().slice(0, 8)}` }
  await migrate(access, await readMigrations(migrationsFolder))
  return connectClickHouse(access, { requestTimeoutMs: 20_000, connectionsMax: 1 })
}

/** A row of an entry. By default it was received now, and expires in 30 days. */
export function makeRow(
  stamp: Pick<RequestStamp, 'projectId'> & Partial<RequestStamp>,
  { id = randomUUID(), ...fields }: { id?: string; message?: string; timestamp?: string | undefined } = {},
): string {
  const prefix = textPrefix({ retentionDays: 30, receivedAtMs: Date.now(), ...stamp })
  const { message = 'm', timestamp } = fields
  const entry = { level: 'info', message, ...(timestamp !== undefined && { timestamp }) } as const
  return rowOf(entry, id, prefix)
}

/** Attempts to insert that wait for nothing. */
export const insertOptions: InsertOnceOptions = {
  areTokensAtomic: false,
  sleep: () => Promise.resolve(),
  beforeAttempt: () => Promise.resolve(),
}

/** Sends queries without watching them. */
export const unwatched: QueryWatcher = {
  run: (_queryId, send) => send({ signal: new AbortController().signal, progressed: () => undefined }),
  isRunning: async () => false,
}

/**
 * Another client for the database of a client.
 *
 * @param rowsReadMax ClickHouse rejects a query that reads more rows
 * @param blockRowsMax ClickHouse divides inserts into blocks of this many rows
 */
export async function connectAgain(
  clickhouse: ClickHouseClient,
  {
    rowsReadMax = 0,
    settings = {},
    url = inject('services').clickhouse.url,
    requestTimeoutMs = 20_000,
    connectionsMax = 4,
  }: {
    rowsReadMax?: number
    settings?: Readonly<Record<string, string>>
    url?: string
    requestTimeoutMs?: number
    connectionsMax?: number
  } = {},
): Promise<ClickHouseClient> {
  const [row] = await readRows<{ database: string }>(clickhouse, 'SELECT currentDatabase() AS database')
  const parameters = Object.entries(settings).map(([name, value]) => `&ch_${name}=${value}`)
  const access = { ...inject('services').clickhouse, database: row?.database ?? '' }
  return connectClickHouse(
    { ...access, url: `${url}?ch_max_rows_to_read=${rowsReadMax}${parameters.join('')}` },
    { requestTimeoutMs, connectionsMax },
  )
}

/** Counts the rows of a project in a table. */
export async function countRows(
  clickhouse: ClickHouseClient,
  table: string,
  projectId: string,
): Promise<number> {
  const query = `SELECT toUInt32(count()) AS rows FROM ${table} WHERE project_id = {projectId: String}`
  const [row] = await readRows<{ rows: number }>(clickhouse, query, { projectId })
  return row?.rows ?? -1
}

/** Deletes rows but not their token: the state of a ClickHouse that crashed after it recorded the token. */
export async function loseRows(
  clickhouse: ClickHouseClient,
  table: string,
  projectId: string,
  condition = 'true',
): Promise<void> {
  await clickhouse.command({
    query: `DELETE FROM ${table} WHERE project_id = {projectId: String} AND ${condition}`,
    query_params: { projectId },
    clickhouse_settings: { lightweight_deletes_sync: '2' },
  })
}

/** The rows of one index entry of a table: ClickHouse reads no fewer. */
export const GRANULE_ROWS = 8_192

/**
 * Fills `logs` with rows of 20 projects, `demo-0` to `demo-19`, as one part. They were received in the minute before `endMs`, and
 * their timestamps are scattered over the 30 days before.
 */
export async function fillLogs(
  clickhouse: ClickHouseClient,
  rows: number,
  endMs: number,
  expiresOn: string,
): Promise<void> {
  await clickhouse.command({
    query: `INSERT INTO ${logsTable} (project_id, received_at, expires_on, id, timestamp)
      SELECT concat('demo-', toString(intHash64(number) % 20)), fromUnixTimestamp64Milli({endMs: Int64} - number % 60000) AS received,
        {expiresOn: Date}, generateUUIDv4(), toDateTime64(received, 6, 'UTC') - toIntervalMicrosecond(cityHash64(number) % 2592000000000)
      FROM numbers_mt({rows: UInt64})`,
    query_params: { endMs, expiresOn, rows },
  })
  await clickhouse.command({ query: `OPTIMIZE TABLE ${logsTable} FINAL` })
}
