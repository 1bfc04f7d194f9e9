import type { ClickHouseClient } from '@sluice/clickhouse'
import { toClickHouseTime } from '@sluice/rows'
import { CliError } from '../errors.ts'
import { metadataCondition, type MetadataFilter } from './metadata-filter.ts'

/** Selects entries. A condition that is absent holds for all. */
export interface LogFilter {
  /** Any of these levels. */
  readonly level?: readonly string[] | undefined
  readonly service?: string | undefined
  /** Any of these environments. */
  readonly environment?: readonly string[] | undefined
  /** A part of the message; case is ignored. */
  readonly search?: string | undefined
  /** All of these conditions on the metadata. */
  readonly where?: readonly MetadataFilter[] | undefined
}

/** A range of timestamps, in UTC with microseconds, in ClickHouse's form. */
export interface TimeRange {
  /** Included. Undefined: without a beginning. */
  readonly from?: string | undefined
  /** Excluded. */
  readonly until: string
}

const columns = [
  ...(['id', 'project_id', 'timestamp', 'received_at', 'level', 'service', 'environment'] as const),
  ...(['source', 'message', 'url', 'pathname', 'stack', 'metadata_text'] as const),
]
const COLUMNS = columns.join(', ')

/** An entry as ClickHouse returns it. Absent strings are empty. Times are UTC, in ClickHouse's form. */
export type LogRow = Readonly<Record<(typeof columns)[number], string>>

/** An entry that was found, without its content. */
export interface Arrival {
  readonly id: string
  readonly receivedAtMs: number
}

/** ClickHouse sorts UUIDs by their second half. Numbers sort by the first half, which is the time of a UUIDv7. */
const ID_ORDER = 'toUInt128(id)'

/** For queries with small results. Following sends them all the time, and retries a query that takes longer. */
const SMALL_QUERY_DEADLINE_MS = 15_000

/** The parsing of rows relies on these, whatever the profile of the server or the user says. */
const settings = {
  date_time_output_format: 'simple',
  output_format_json_quote_64bit_integers: 1,
  // When the user stops reading, ClickHouse must stop searching.
  cancel_http_readonly_queries_on_client_close: 1,
} as const

type Params = Readonly<Record<string, unknown>>

/** The conditions of `LogFilter` in SQL. Each has the name of its parameter. */
const conditions: Readonly<Record<Exclude<keyof LogFilter, 'where'>, string>> = {
  level: 'level IN {level:Array(String)}',
  service: 'service = {service:String}',
  environment: 'environment IN {environment:Array(String)}',
  search: 'positionCaseInsensitiveUTF8(message, {search:String}) > 0',
}

/** The entries of one project that match one filter, in ClickHouse. What users pass is in the parameters of queries only. */
export class LogSource {
  readonly #client: ClickHouseClient
  /** The conditions of the project and the filter, and their parameters. */
  readonly #matches: string
  readonly #params: Params
  readonly #signal: AbortSignal

  /** @param signal aborts the queries in flight */
  constructor(client: ClickHouseClient, projectId: string, filter: LogFilter, signal: AbortSignal) {
    const { level, service, environment, search, where = [] } = filter
    const given = { level, service, environment, search }
    const names = (Object.keys(conditions) as (keyof typeof given)[]).filter(
      (name) => given[name] !== undefined,
    )
    const added = where.map((condition, index) => metadataCondition(condition, `where${index}`))
    this.#client = client
    this.#signal = signal
    this.#params = Object.assign(
      { project: projectId, ...given },
      ...added.map(({ params }) => params),
    ) as Params
    this.#matches = [
      'project_id = {project:String}',
      ...names.map((name) => conditions[name]),
      ...added.map(({ condition }) => condition),
    ].join(' AND ')
  }

  /** Yields the newest `limit` entries of the range, oldest first, in pieces as they are received. */
  newest({ from, until }: TimeRange, limit: number): AsyncGenerator<(LogRow & Arrival)[]> {
    const begin = from === undefined ? '' : "AND timestamp >= {from:DateTime64(6, 'UTC')}"
    // Without a deadline: the user may read the first entries for any length of time.
    return this.#stream(
      `SELECT * FROM (
        SELECT ${COLUMNS} FROM logs
        WHERE ${this.#matches} AND timestamp < {until:DateTime64(6, 'UTC')} ${begin}
        ORDER BY timestamp DESC, ${ID_ORDER} DESC LIMIT {limit:UInt32}
      ) ORDER BY timestamp, ${ID_ORDER}`,
      { limit, until, from },
    )
  }

  /** Whether there are entries with a timestamp after the range. */
  async hasAfter({ until }: TimeRange): Promise<boolean> {
    const query = `SELECT 1 FROM logs WHERE ${this.#matches} AND timestamp >= {until:DateTime64(6, 'UTC')} LIMIT 1`
    return (await this.#query(query, { until })).length > 0
  }

  /** Whether the project has any row, whatever the other conditions. */
  async hasEntries(): Promise<boolean> {
    return (await this.#query('SELECT 1 FROM logs WHERE project_id = {project:String} LIMIT 1')).length > 0
  }

  /**
   * The newest receive time of the project's rows received since `fromMs`, whatever the other conditions; 0 if there are none. A time in
   * the future, from a machine whose clock is ahead, counts as now: otherwise it would hide everything that is received until then.
   */
  async newestReceivedMs(fromMs: number): Promise<number> {
    const [row] = await this.#query<{ newest: string }>(
      `SELECT least(max(received_at), now64(3, 'UTC')) AS newest FROM logs
       WHERE project_id = {project:String} AND received_at >= {from:DateTime64(3, 'UTC')}`,
      { from: toClickHouseTime(fromMs) },
    )
    return row === undefined ? 0 : toEpochMs(row.newest)
  }

  /** Entries received at `fromMs` or later: the oldest or the newest `limit`, oldest first. */
  async arrivals(fromMs: number, limit: number, end: 'oldest' | 'newest'): Promise<Arrival[]> {
    const direction = end === 'oldest' ? 'ASC' : 'DESC'
    const rows = await this.#query<Pick<LogRow, 'id' | 'received_at'>>(
      `SELECT id, received_at FROM logs
       WHERE ${this.#matches} AND received_at >= {from:DateTime64(3, 'UTC')}
       ORDER BY received_at ${direction}, ${ID_ORDER} ${direction} LIMIT {limit:UInt32}`,
      { from: toClickHouseTime(fromMs), limit },
    )
    if (end === 'newest') rows.reverse()
    return rows.map(({ id, received_at: receivedAt }) => ({ id, receivedAtMs: toEpochMs(receivedAt) }))
  }

  /**
   * Yields entries in pieces as they are received from ClickHouse.
   *
   * @param found in the order in which they were received by the API
   */
  async *entries(found: readonly Arrival[]): AsyncGenerator<(LogRow & Arrival)[]> {
    const [first, last] = [found[0], found.at(-1)]
    if (first === undefined || last === undefined) return
    yield* this.#stream(
      `SELECT ${COLUMNS} FROM logs
       WHERE project_id = {project:String} AND id IN {ids:Array(UUID)}
         AND received_at BETWEEN {from:DateTime64(3, 'UTC')} AND {to:DateTime64(3, 'UTC')}
       ORDER BY received_at, ${ID_ORDER}`,
      {
        ids: found.map(({ id }) => id),
        from: toClickHouseTime(first.receivedAtMs),
        to: toClickHouseTime(last.receivedAtMs),
      },
    )
  }

  async *#stream(query: string, params: Params): AsyncGenerator<(LogRow & Arrival)[]> {
    const result = await this.#send(query, params, this.#signal)
    for await (const rows of result.stream<LogRow>()) {
      yield rows.map((row) => {
        const entry = row.json<LogRow>()
        return Object.assign(entry, { receivedAtMs: toEpochMs(entry.received_at) })
      })
    }
  }

  async #query<Row>(query: string, params: Params = {}): Promise<Row[]> {
    const deadline = AbortSignal.timeout(SMALL_QUERY_DEADLINE_MS)
    try {
      return await (await this.#send(query, params, AbortSignal.any([this.#signal, deadline]))).json<Row>()
    } catch (error) {
      // The client's error for an aborted request does not show which signal aborted it.
      throw deadline.aborted ? deadline.reason : error
    }
  }

  #send(query: string, params: Params, signal: AbortSignal) {
    return this.#client.query({
      query,
      query_params: { ...this.#params, ...params },
      format: 'JSONEachRow',
      clickhouse_settings: settings,
      // Hundreds of ids are too long for a URL.
      use_multipart_params_auto: true,
      abort_signal: signal,
    })
  }
}

/** Parses a UTC time in ClickHouse's form. */
function toEpochMs(time: string): number {
  const epochMs = Date.parse(`${time.replace(' ', 'T')}Z`)
  if (Number.isNaN(epochMs)) throw new CliError(`ClickHouse returned an invalid time: ${time}`)
  return epochMs
}
