import type { ClickHouseClient } from '../src/client.ts'
import { logsTable } from '../src/tables.ts'

/** The rows of one index entry of a table: ClickHouse reads no fewer. */
export const GRANULE_ROWS = 8_192

const READS_LOGS = new RegExp(String.raw`\bFROM ${logsTable}\b`)

/** A client that adds the number of rows that each query on `logs` reads to `total.readRows`. */
export function countingReads(clickhouse: ClickHouseClient, total: { readRows: number }): ClickHouseClient {
  const query = async (parameters: Parameters<ClickHouseClient['query']>[0]) => {
    const result = await clickhouse.query({
      ...parameters,
      // ClickHouse reports the rows of the whole query only if it responds at the end.
      clickhouse_settings: { ...parameters.clickhouse_settings, wait_end_of_query: 1 },
    })
    const summary = JSON.parse(String(result.response_headers['x-clickhouse-summary'])) as {
      read_rows: string
    }
    if (READS_LOGS.test(parameters.query)) total.readRows += Number(summary.read_rows)
    return result
  }
  return new Proxy(clickhouse, {
    get: (target, name) => {
      if (name === 'query') return query
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

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
  const PARTS = 4
  for (let part = 0; part < PARTS; part += 1) {
    await clickhouse.command({
      query: `INSERT INTO ${logsTable} (project_id, received_at, expires_on, id, timestamp)
        SELECT concat('demo-', toString(intHash64(number) % 20)), fromUnixTimestamp64Milli({endMs: Int64} - number % 60000) AS received,
          {expiresOn: Date}, generateUUIDv4(), toDateTime64(received, 6, 'UTC') - toIntervalMicrosecond(cityHash64(number) % 2592000000000)
        FROM numbers_mt({from: UInt64}, {count: UInt64})`,
      query_params: { endMs, expiresOn, from: (part * rows) / PARTS, count: rows / PARTS },
    })
  }
  await clickhouse.command({ query: `OPTIMIZE TABLE ${logsTable} FINAL` })
}
