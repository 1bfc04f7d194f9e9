import type { ClickHouseClient } from '@sluice/clickhouse'
import { toClickHouseTime } from '@sluice/rows'
import { CliError } from '../errors.ts'
import type { Arrival } from './follow.ts'
import {
  anyEntryQuery,
  arrivalsQuery,
  entriesByIdQuery,
  laterEntriesQuery,
  type LogFilter,
  type LogRow,
  newestEntriesQuery,
  newestReceivedQuery,
  type Query,
  type TimeRange,
} from './queries.ts'

/** For queries with small results. Following sends them all the time, and retries a query that takes longer. */
const SMALL_QUERY_DEADLINE_MS = 15_000

/** The parsing of rows relies on these, whatever the profile of the server or the user says. */
const settings = {
  date_time_output_format: 'simple',
  output_format_json_quote_64bit_integers: 1,
  // When the user stops reading, ClickHouse must stop searching.
  cancel_http_readonly_queries_on_client_close: 1,
} as const

export type FoundEntry = LogRow & Arrival

/** The entries of one project that match one filter, in ClickHouse. */
export class LogSource {
  readonly #client: ClickHouseClient
  readonly #filter: LogFilter
  readonly #signal: AbortSignal

  /** @param signal aborts the queries in flight */
  constructor(client: ClickHouseClient, filter: LogFilter, signal: AbortSignal) {
    this.#client = client
    this.#filter = filter
    this.#signal = signal
  }

  /** Yields the newest `limit` entries of the range, oldest first, in pieces as they are received. */
  newest(range: TimeRange, limit: number): AsyncGenerator<FoundEntry[]> {
    // Without a deadline: the user may read the first entries for any length of time.
    return this.#stream(newestEntriesQuery(this.#filter, range, limit))
  }

  /** The number of entries with a timestamp after the range, up to `max`. */
  async countAfter({ until }: TimeRange, max: number): Promise<number> {
    const [row] = await this.#query<{ count: string }>(laterEntriesQuery(this.#filter, until, max))
    return Number(row?.count ?? 0)
  }

  /** Whether the project has any row, whatever the other conditions. */
  async hasEntries(): Promise<boolean> {
    return (await this.#query(anyEntryQuery(this.#filter))).length > 0
  }

  /** The newest receive time of the project's rows that were received at `fromMs` or later; 0 if there are none. */
  async newestReceivedMs(fromMs: number): Promise<number> {
    const query = newestReceivedQuery(this.#filter, toClickHouseTime(fromMs))
    const [row] = await this.#query<{ newest: string }>(query)
    return row === undefined ? 0 : toEpochMs(row.newest)
  }

  /** Entries received at `fromMs` or later: the oldest or the newest `limit`, oldest first. */
  async arrivals(fromMs: number, limit: number, end: 'oldest' | 'newest'): Promise<Arrival[]> {
    const query = arrivalsQuery(this.#filter, toClickHouseTime(fromMs), limit, end)
    const rows = await this.#query<Pick<LogRow, 'id' | 'received_at'>>(query)
    if (end === 'newest') rows.reverse()
    return rows.map(({ id, received_at: receivedAt }) => ({ id, receivedAtMs: toEpochMs(receivedAt) }))
  }

  /**
   * Yields entries in pieces as they are received from ClickHouse.
   *
   * @param found in the order in which they were received by the API
   */
  async *entries(found: readonly Arrival[]): AsyncGenerator<FoundEntry[]> {
    const [first, last] = [found[0], found.at(-1)]
    if (first === undefined || last === undefined) return
    const ids = found.map(({ id }) => id)
    const from = toClickHouseTime(first.receivedAtMs)
    const to = toClickHouseTime(last.receivedAtMs)
    yield* this.#stream(entriesByIdQuery(this.#filter.projectId, ids, from, to))
  }

  async *#stream(query: Query): AsyncGenerator<FoundEntry[]> {
    const result = await this.#client.query({
      ...query,
      format: 'JSONEachRow',
      clickhouse_settings: settings,
      // Hundreds of ids are too long for a URL.
      use_multipart_params_auto: true,
      abort_signal: this.#signal,
    })
    for await (const rows of result.stream<LogRow>()) {
      yield rows.map((row) => {
        const entry = row.json<LogRow>()
        return Object.assign(entry, { receivedAtMs: toEpochMs(entry.received_at) })
      })
    }
  }

  async #query<Row>(query: Query): Promise<Row[]> {
    const deadline = AbortSignal.timeout(SMALL_QUERY_DEADLINE_MS)
    try {
      const result = await this.#client.query({
        ...query,
        format: 'JSONEachRow',
        clickhouse_settings: settings,
        abort_signal: AbortSignal.any([this.#signal, deadline]),
      })
      return await result.json<Row>()
    } catch (error) {
      // The client's error for an aborted request does not show which signal aborted it.
      throw deadline.aborted ? deadline.reason : error
    }
  }
}

/** Parses a UTC time in ClickHouse's text form. */
function toEpochMs(time: string): number {
  const epochMs = Date.parse(`${time.replace(' ', 'T')}Z`)
  if (Number.isNaN(epochMs)) throw new CliError(`ClickHouse returned an invalid time: ${time}`)
  return epochMs
}
