import type { ClickHouseClient } from '@sluice/clickhouse'
import { toClickHouseTime } from '@sluice/rows'
import { metadataCondition, type MetadataFilter } from './metadata-filter.ts'

/** Selects entries. A condition that is absent holds for all. Any of the levels, and any of the environments. */
export interface LogFilter {
  readonly level?: readonly string[] | undefined
  readonly service?: string | undefined
  readonly environment?: readonly string[] | undefined
  readonly search?: string | undefined
  readonly where?: readonly MetadataFilter[] | undefined
}

/** An SQL condition, with what users pass in its parameters only. `from` is included, `until` is not. */
export function logCondition(
  projectId: string,
  { level, service, environment, search, where = [] }: LogFilter,
  { from, until }: Partial<TimeRange> = {},
  /** The expression for a column. Default: its name. */
  column: (name: string) => string = (name) => name,
) {
  const added = where.map((each, index) => metadataCondition(each, `where${index}`, column('metadata_text')))
  const given = { project: projectId, level, service, environment, search, from, until }
  const condition = [
    'project_id = {project:String}',
    ...(level === undefined ? [] : [`${column('level')} IN {level:Array(String)}`]),
    ...(service === undefined ? [] : [`${column('service')} = {service:String}`]),
    ...(environment === undefined ? [] : [`${column('environment')} IN {environment:Array(String)}`]),
    ...(search === undefined
      ? []
      : [`positionCaseInsensitiveUTF8(${column('message')}, {search:String}) > 0`]),
    ...(from === undefined ? [] : [`${column('timestamp')} >= {from:DateTime64(6, 'UTC')}`]),
    ...(until === undefined ? [] : [`${column('timestamp')} < {until:DateTime64(6, 'UTC')}`]),
    ...added.map((each) => each.condition),
  ].join(' AND ')
  return { condition, params: Object.assign(given, ...added.map(({ params }) => params)) as Params }
}

/** A range of timestamps, in UTC with microseconds, in ClickHouse's form. `from` is included, `until` is not. */
export interface TimeRange {
  readonly from?: string | undefined
  readonly until: string
}

const ARRIVAL = 'id, toUnixTimestamp64Milli(received_at) AS receivedAtMs'
const COLUMNS = `${ARRIVAL}, project_id, timestamp, received_at, level, service, environment, source, message, url, pathname, stack,
  metadata_text`

/** An entry as ClickHouse returns it. Absent strings are empty. Times are UTC, in ClickHouse's form. */
export type LogRow = Readonly<
  Record<'id' | 'project_id' | 'timestamp' | 'received_at' | 'level' | 'service' | 'environment', string> &
    Record<'source' | 'message' | 'url' | 'pathname' | 'stack' | 'metadata_text', string>
>

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
  output_format_json_quote_64bit_integers: 0,
  // When the user stops reading, ClickHouse must stop searching.
  cancel_http_readonly_queries_on_client_close: 1,
} as const

type Params = Readonly<Record<string, unknown>>

/** The entries of one project that match one filter, in ClickHouse. What users pass is in the parameters of queries only. */
export class LogSource {
  readonly #client: ClickHouseClient
  readonly #conditionOf: (range?: Partial<TimeRange>) => ReturnType<typeof logCondition>
  readonly #signal: AbortSignal

  constructor(client: ClickHouseClient, projectId: string, filter: LogFilter, signal: AbortSignal) {
    this.#client = client
    this.#signal = signal
    this.#conditionOf = (range) => logCondition(projectId, filter, range)
  }

  newest(range: TimeRange, limit: number): AsyncGenerator<(LogRow & Arrival)[]> {
    // Without a deadline: the user may read the first entries for any length of time.
    return this.#stream(
      `SELECT * FROM (
        SELECT ${COLUMNS} FROM logs WHERE ${this.#conditionOf(range).condition}
        ORDER BY timestamp DESC, ${ID_ORDER} DESC LIMIT {limit:UInt32}
      ) ORDER BY timestamp, ${ID_ORDER}`,
      { limit, ...range },
    )
  }

  async hasAfter({ until }: TimeRange): Promise<boolean> {
    const { condition } = this.#conditionOf({ from: until })
    return (await this.#query(`SELECT 1 FROM logs WHERE ${condition} LIMIT 1`, { from: until })).length > 0
  }

  async hasEntries(): Promise<boolean> {
    return (await this.#query('SELECT 1 FROM logs WHERE project_id = {project:String} LIMIT 1')).length > 0
  }

  /**
   * The newest receive time of the project's rows received since `fromMs`, whatever the other conditions; 0 if there are none. A time in
   * the future, from a machine whose clock is ahead, counts as now: otherwise it would hide everything that is received until then.
   */
  async newestReceivedMs(fromMs: number): Promise<number> {
    const [row] = await this.#query<{ newest: number }>(
      `SELECT toUnixTimestamp64Milli(least(max(received_at), now64(3, 'UTC'))) AS newest FROM logs
       WHERE project_id = {project:String} AND received_at >= {from:DateTime64(3, 'UTC')}`,
      { from: toClickHouseTime(fromMs) },
    )
    return row?.newest ?? 0
  }

  /** Entries received at `fromMs` or later: the oldest or the newest `limit`, oldest first. */
  async arrivals(fromMs: number, limit: number, end: 'oldest' | 'newest'): Promise<Arrival[]> {
    const direction = end === 'oldest' ? 'ASC' : 'DESC'
    const rows = await this.#query<Arrival>(
      `SELECT ${ARRIVAL} FROM logs
       WHERE ${this.#conditionOf().condition} AND received_at >= {from:DateTime64(3, 'UTC')}
       ORDER BY received_at ${direction}, ${ID_ORDER} ${direction} LIMIT {limit:UInt32}`,
      { from: toClickHouseTime(fromMs), limit },
    )
    return end === 'newest' ? rows.toReversed() : rows
  }

  async *entries(found: readonly Arrival[]): AsyncGenerator<(LogRow & Arrival)[]> {
    const [first, last] = [found[0], found.at(-1)]
    if (first === undefined || last === undefined) return
    const [from, to] = [toClickHouseTime(first.receivedAtMs), toClickHouseTime(last.receivedAtMs)]
    yield* this.#stream(
      `SELECT ${COLUMNS} FROM logs
       WHERE project_id = {project:String} AND id IN {ids:Array(UUID)}
         AND received_at BETWEEN {from:DateTime64(3, 'UTC')} AND {to:DateTime64(3, 'UTC')}
       ORDER BY received_at, ${ID_ORDER}`,
      { ids: found.map(({ id }) => id), from, to },
    )
  }

  async *#stream(query: string, params: Params): AsyncGenerator<(LogRow & Arrival)[]> {
    const result = await this.#send(query, params, this.#signal)
    for await (const rows of result.stream<LogRow & Arrival>()) yield rows.map((row) => row.json())
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
      query_params: { ...this.#conditionOf().params, ...params },
      format: 'JSONEachRow',
      clickhouse_settings: settings,
      // Hundreds of ids are too long for a URL.
      use_multipart_params_auto: true,
      abort_signal: signal,
    })
  }
}
