import type { ClickHouseClient } from '@clickhouse/client'
import type { RowKey } from '@sluice/rows'
import { clickhouseClockLimits } from './clickhouse-clock.ts'
import { lookUp, type QueryWatcher } from './query-watch.ts'
import { inPortions, quote } from './sql.ts'
import { logsTable } from './tables.ts'

/** Rows of one time and project share granules, and each query reads a granule once. */
const PORTION_ROWS_MAX = 20_000
/** A query contains its keys, which take at most 140 bytes each. By default, ClickHouse accepts 256 KiB. */
const QUERY_BYTES_MAX = 4 * 1024 ** 2

const UUID = /^[0-9a-f-]{36}$/

/** Looks up which rows ClickHouse already has. */
export class StoredRows {
  readonly #client: Pick<ClickHouseClient, 'query'>
  readonly #wallMs: () => number
  readonly #watch: Pick<QueryWatcher, 'run'>

  /** @param wallMs the clock of Redis, which sets the day of expiry of rows, ms since 1970 */
  constructor(
    client: Pick<ClickHouseClient, 'query'>,
    wallMs: () => number,
    watch: Pick<QueryWatcher, 'run'>,
  ) {
    this.#client = client
    this.#wallMs = wallMs
    this.#watch = watch
  }

  /** @returns the ids of rows that are stored, and of rows past their retention, which are treated as stored */
  async find(rows: Iterable<RowKey>): Promise<ReadonlySet<string>> {
    const stored = new Set<string>()
    for (const portion of inPortions(rows, PORTION_ROWS_MAX)) {
      const keys = portion.filter(({ id }) => UUID.test(id))
      if (keys.length === 0) continue
      const [today, found] = await Promise.all([this.#today(), this.#findSome(keys)])
      for (const { id } of found) stored.add(id)
      for (const { id, expiresOn } of keys) if (expiresOn <= today) stored.add(id)
    }
    return stored
  }

  /**
   * `YYYY-MM-DD` by ClickHouse's clock, since ClickHouse removes expired rows. If that clock is ahead by more than is permitted, the last
   * permitted day: rows that are not stored must not count as expired because of a wrong clock.
   */
  async #today(): Promise<string> {
    const query = "SELECT toString(toDate(now('UTC'))) AS today"
    const [row] = await lookUp<{ today: string }>(this.#client, this.#watch, { query })
    if (row === undefined) throw new Error('ClickHouse does not report the date')
    const latest = new Date(this.#wallMs() + clickhouseClockLimits.skewMaxMs).toISOString().slice(0, 10)
    return row.today < latest ? row.today : latest
  }

  #findSome(keys: readonly RowKey[]): Promise<{ id: string }[]> {
    const tuples = keys.map(({ projectId, timestamp, id }) => [projectId, timestamp, id])
    const times = keys.map(({ receivedAt }) => receivedAt).toSorted()
    return lookUp<{ id: string }>(this.#client, this.#watch, {
      // The sorting key (project_id, timestamp) leads to one granule per row, however large the table is. If a client sends many
      // rows with the same timestamp, the index on received_at leaves few of their granules. ClickHouse parses the timestamps,
      // because it also parsed them at the insert.
      query: `SELECT id FROM ${logsTable}
        WHERE expires_on IN {days: Array(Date)} AND received_at BETWEEN {from: DateTime64(3, 'UTC')} AND {to: DateTime64(3, 'UTC')}
        AND (project_id, timestamp, id) IN (
          SELECT key.1, parseDateTime64BestEffortOrZero(key.2, 6, 'UTC'), toUUIDOrZero(key.3)
          FROM (SELECT arrayJoin(JSONExtract(${quote(JSON.stringify(tuples))}, 'Array(Tuple(String, String, String))')) AS key)
        )`,
      query_params: {
        days: [...new Set(keys.map(({ expiresOn }) => expiresOn))],
        from: times.at(0),
        to: times.at(-1),
      },
      clickhouse_settings: { max_query_size: String(QUERY_BYTES_MAX) },
    })
  }
}
