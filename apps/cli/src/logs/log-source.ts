import type { ClickHouseClient } from '@sluice/runtime'
import { toClickHouseTime } from '@sluice/schema'
import { CliError } from '../errors.ts'
import type { Arrival } from './follow-window.ts'
import {
  arrivals,
  entriesById,
  type LogFilter,
  type LogRow,
  newestEntries,
  newestReceipt,
  type Query,
} from './query.ts'

/** Following asks small questions all the time; one that takes longer is asked again. */
const FOLLOW_DEADLINE_MS = 15_000

/** What the parsing of rows relies on, whatever the server's or the user's profile says. */
const settings = {
  date_time_output_format: 'simple',
  output_format_json_quote_64bit_integers: 1,
  // A reader who left must not leave a long search behind.
  cancel_http_readonly_queries_on_client_close: 1,
} as const

export type FoundEntry = LogRow & Arrival

/** One project's entries in ClickHouse, through one filter. */
export class LogSource {
  readonly #client: ClickHouseClient
  readonly #filter: LogFilter
  readonly #signal: AbortSignal

  /** @param signal ends what is under way */
  constructor(client: ClickHouseClient, filter: LogFilter, signal: AbortSignal) {
    this.#client = client
    this.#filter = filter
    this.#signal = signal
  }

  /** The newest `limit` entries, oldest first, some at a time as they come. */
  newest(since: string | undefined, limit: number): AsyncGenerator<FoundEntry[]> {
    // Without a deadline of its own: somebody may read the beginning for as long as they like.
    return this.#read(newestEntries(this.#filter, since, limit), this.#signal)
  }

  /** When the project's newest row of those since `fromMs` was received; 0 if there is none. */
  async newestReceivedMs(fromMs: number): Promise<number> {
    const [row] = await this.#ask<{ newest: string }>(newestReceipt(this.#filter, toClickHouseTime(fromMs)))
    return row === undefined ? 0 : toEpochMs(row.newest)
  }

  /** What was received since `fromMs`: at most `limit` of the oldest or of the newest, oldest first. */
  async arrivals(fromMs: number, limit: number, end: 'oldest' | 'newest'): Promise<Arrival[]> {
    const query = arrivals(this.#filter, toClickHouseTime(fromMs), limit, end)
    const rows = await this.#ask<Pick<LogRow, 'id' | 'received_at'>>(query)
    if (end === 'newest') rows.reverse()
    return rows.map(({ id, received_at: receivedAt }) => ({ id, receivedAtMs: toEpochMs(receivedAt) }))
  }

  /** The entries that arrived, which must be in the order of their receipt; some at a time as they come. */
  async *entries(found: readonly Arrival[]): AsyncGenerator<FoundEntry[]> {
    const [first, last] = [found[0], found.at(-1)]
    if (first === undefined || last === undefined) return
    const ids = found.map(({ id }) => id)
    const from = toClickHouseTime(first.receivedAtMs)
    const to = toClickHouseTime(last.receivedAtMs)
    yield* this.#read(entriesById(this.#filter.projectId, ids, from, to), this.#signal)
  }

  async *#read(query: Query, signal: AbortSignal): AsyncGenerator<FoundEntry[]> {
    const result = await this.#client.query({
      ...query,
      format: 'JSONEachRow',
      clickhouse_settings: settings,
      // Ids in their hundreds are too long for an address.
      use_multipart_params_auto: true,
      abort_signal: signal,
    })
    for await (const rows of result.stream<LogRow>()) {
      yield rows.map((row) => {
        const entry = row.json<LogRow>()
        return Object.assign(entry, { receivedAtMs: toEpochMs(entry.received_at) })
      })
    }
  }

  async #ask<Row>(query: Query): Promise<Row[]> {
    const deadline = AbortSignal.timeout(FOLLOW_DEADLINE_MS)
    try {
      const result = await this.#client.query({
        ...query,
        format: 'JSONEachRow',
        clickhouse_settings: settings,
        abort_signal: AbortSignal.any([this.#signal, deadline]),
      })
      return await result.json<Row>()
    } catch (error) {
      // The client's error for an aborted request does not say who aborted it.
      throw deadline.aborted ? deadline.reason : error
    }
  }
}

/** Reads ClickHouse's text form of a time in UTC. */
function toEpochMs(time: string): number {
  const epochMs = Date.parse(`${time.replace(' ', 'T')}Z`)
  if (Number.isNaN(epochMs)) throw new CliError(`ClickHouse gave a time that is none: ${time}`)
  return epochMs
}
