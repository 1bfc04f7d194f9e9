import type { ClickHouseClient } from '@clickhouse/client'
import type { RowKey } from '@sluice/rows'
import { clickhouseClockLimits } from './clickhouse-clock.ts'
import { lookUp, type QueryWatcher } from './query-watch.ts'
import { inPortions, quote } from './sql.ts'
import { logsTable } from './tables.ts'

/** Rows of one time and project share granules, and each query reads a granule once. */
const PORTION_ROWS_MAX = 20_000
/** A query contains its keys, which take at most 160 bytes each. By default, ClickHouse accepts 256 KiB. */
const QUERY_BYTES_MAX = 4 * 1024 ** 2

const UUID = /^[0-9a-f-]{36}$/

export type StoredRows = ReturnType<typeof storedRowFinder>

/**
 * Looks up which rows ClickHouse already has.
 *
 * @param wallMs the clock of Redis, which sets the day of expiry of rows, ms since 1970
 */
export function storedRowFinder(
  client: Pick<ClickHouseClient, 'query'>,
  wallMs: () => number,
  watch: Pick<QueryWatcher, 'run'>,
) {
  function findSome(keys: readonly RowKey[]): Promise<{ id: string }[]> {
    const tuples = keys.map((key) => [key.projectId, key.timestamp, key.id, key.expiresOn])
    const times = keys.map(({ receivedAt }) => receivedAt).toSorted()
    return lookUp<{ id: string }>(client, watch, {
      // The sorting key (project_id, timestamp) leads to one granule per row, however large the table is. If a client sends many
      // rows with the same timestamp, the index on received_at leaves few of their granules. ClickHouse parses the timestamps,
      // because it also parsed them at the insert.
      query: `WITH keys AS
          (SELECT arrayJoin(JSONExtract(${quote(JSON.stringify(tuples))}, 'Array(Tuple(String, String, String, String))')) AS key)
        SELECT id FROM ${logsTable}
        WHERE expires_on IN {days: Array(Date)} AND received_at BETWEEN {from: DateTime64(3, 'UTC')} AND {to: DateTime64(3, 'UTC')}
        AND (project_id, timestamp, id) IN
          (SELECT key.1, parseDateTime64BestEffortOrZero(key.2, 6, 'UTC'), toUUIDOrZero(key.3) FROM keys)
        UNION ALL SELECT toUUIDOrZero(key.3) FROM keys WHERE toDateOrZero(key.4) <= least(toDate(now('UTC')), {latest: Date})`,
      query_params: {
        days: [...new Set(keys.map(({ expiresOn }) => expiresOn))],
        from: times.at(0),
        to: times.at(-1),
        latest: new Date(wallMs() + clickhouseClockLimits.skewMaxMs).toISOString().slice(0, 10),
      },
      clickhouse_settings: { max_query_size: String(QUERY_BYTES_MAX) },
    })
  }
  return {
    /**
     * Returns the ids of rows that are stored, and of rows past their retention, which are treated as stored: by ClickHouse's clock, since
     * ClickHouse removes them. If that clock is ahead by more than is permitted, the last permitted day counts: rows that are not stored
     * must not count as expired because of a wrong clock.
     */
    async find(rows: Iterable<RowKey>): Promise<ReadonlySet<string>> {
      const stored = new Set<string>()
      for (const portion of inPortions(rows, PORTION_ROWS_MAX)) {
        const keys = portion.filter(({ id }) => UUID.test(id))
        if (keys.length > 0) for (const { id } of await findSome(keys)) stored.add(id)
      }
      return stored
    },
  }
}
