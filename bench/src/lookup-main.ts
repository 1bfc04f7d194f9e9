// Measures the lookup of stored rows in a large table: the rows that ClickHouse reads for each id, and the time.
import {
  type ClickHouseClient,
  connectClickHouse,
  logsTable,
  migrate,
  migrationsFolder,
  readMigrations,
  StoredRows,
} from '@sluice/clickhouse'
import { CommandLine } from '@sluice/harness/command-line'
import { startServices } from '@sluice/local'
import { zstdCompressSync } from 'node:zlib'
import { readPositive } from './options.ts'

const commandLine = new CommandLine(`node bench/src/lookup-main.ts [options]

  --rows N      rows of the table, which are in one partition; default 20000000
  --help        prints this text
`)
const values = commandLine.read({ rows: { type: 'string', default: '20000000' } })
const rows = readPositive(commandLine, '--rows', values.rows)

const LOOKUP_SIZES = [10, 100, 1_000, 10_000, 100_000] as const
/** Longer than any statement of this benchmark takes. */
const STATEMENT_MAX_MS = 600_000
const RUNS = 3
const COLUMNS = 'project_id, received_at, expires_on, id, timestamp'

/** How the timestamps of entries relate to the time of their receipt. */
const timestamps = {
  'scattered over 30 days': "received_at - toIntervalMicrosecond(cityHash64(number, 'time') % 2592000000000)",
  'equal to the receipt': 'received_at',
  'the same for all rows': "'2026-11-20 00:00:00'",
} as const

/** Rows of one day and 200 projects, in the order of their receipt. Rows with another salt have the same receipt, but other ids. */
function rowsQuery(timestamp: string, from: number, count: number, salt: number): string {
  return `SELECT concat('project-', toString(intHash64(number) % 200)) AS project_id,
      toStartOfDay(now64(3, 'UTC')) + toIntervalMillisecond(intDiv(number * 86400000, ${rows})) AS received_at,
      toDate(received_at) + 31 AS expires_on,
      reinterpret(sipHash128(number, ${salt}), 'UUID') AS id,
      toDateTime64(${timestamp}, 6, 'UTC') AS timestamp
    FROM numbers_mt(${from}, ${count})`
}

interface Cost {
  readRows: number
  queries: number
}

/** A client that adds the cost of each query on `logs` to `cost`. */
function countingReads(clickhouse: ClickHouseClient, cost: Cost): Pick<ClickHouseClient, 'query'> {
  const query = async (parameters: Parameters<ClickHouseClient['query']>[0]) => {
    const result = await clickhouse.query({
      ...parameters,
      // ClickHouse reports the rows of the whole query only if it answers at the end.
      clickhouse_settings: { ...parameters.clickhouse_settings, wait_end_of_query: 1 },
    })
    const summary = JSON.parse(String(result.response_headers['x-clickhouse-summary'])) as {
      read_rows: string
    }
    if (parameters.query.includes(logsTable)) {
      cost.readRows += Number(summary.read_rows)
      cost.queries += 1
    }
    return result
  }
  return { query }
}

async function measure(
  clickhouse: ClickHouseClient,
  frame: Buffer,
  what: string,
  ids: number,
): Promise<void> {
  let bestMs = Infinity
  let cost: Cost = { readRows: 0, queries: 0 }
  let found = 0
  for (let run = 0; run < RUNS; run += 1) {
    cost = { readRows: 0, queries: 0 }
    const startMs = performance.now()
    found = (await new StoredRows(countingReads(clickhouse, cost), Date.now).find([frame])).size
    bestMs = Math.min(bestMs, performance.now() - startMs)
  }
  const columns = [
    ids,
    found,
    cost.readRows,
    Math.round(cost.readRows / ids),
    cost.queries,
    Math.round(bestMs),
  ]
  console.log(what.padEnd(34) + columns.map((value) => String(value).padStart(11)).join(''))
}

const services = await startServices({})
try {
  const access = { ...services.clickhouse, database: 'lookup' }
  await migrate(access, await readMigrations(migrationsFolder))
  const clickhouse = connectClickHouse(access, { requestTimeoutMs: STATEMENT_MAX_MS, connectionsMax: 1 })
  const names = ['ids', 'found', 'rows read', 'per id', 'queries', 'ms']
  console.log(`${rows} rows`.padEnd(34) + names.map((name) => name.padStart(11)).join(''))
  for (const [name, timestamp] of Object.entries(timestamps)) {
    await clickhouse.command({ query: `TRUNCATE TABLE ${logsTable}` })
    await clickhouse.command({
      query: `INSERT INTO ${logsTable} (${COLUMNS}) SELECT ${COLUMNS} FROM (${rowsQuery(timestamp, 0, rows, 0)})`,
    })
    await clickhouse.command({ query: `OPTIMIZE TABLE ${logsTable} FINAL` })
    for (const ids of LOOKUP_SIZES) {
      for (const [salt, kind] of ['stored', 'missing'].entries()) {
        const query = `SELECT ${COLUMNS} FROM (${rowsQuery(timestamp, Math.floor(rows / 2), ids, salt)})`
        const text = await (await clickhouse.query({ query, format: 'TabSeparated' })).text()
        await measure(clickhouse, zstdCompressSync(text), `${name}, ${kind}`, ids)
      }
    }
  }
  await clickhouse.close()
} finally {
  await services.stop()
}
