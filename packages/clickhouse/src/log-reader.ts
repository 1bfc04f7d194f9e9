import type { ClickHouseClient } from '@clickhouse/client'
import { publicReason } from './dead-letters.ts'
import { ClickHouseError } from './insert-errors.ts'
import { deadLettersTable, logsInsertSettings, logsTable } from './tables.ts'

/** What one query may cost ClickHouse. */
export interface ReadLimits {
  readonly timeMs: number
  readonly rowsMax: number
  readonly bytesMax: number
  readonly memoryBytesMax: number
}

export type ReadLimit = 'rows' | 'bytes' | 'time' | 'memory'

/** A query would exceed a limit, or has. */
export class ReadLimitError extends Error {
  override name = 'ReadLimitError'
  readonly limit: ReadLimit

  constructor(limit: ReadLimit, cause: unknown) {
    super(`the query exceeds its limit of ${limit}`, { cause })
    this.limit = limit
  }
}

/** ClickHouse does not answer, or its connection broke. */
export class ReadUnavailableError extends Error {
  override name = 'ReadUnavailableError'
}

/** ClickHouse's codes of these limits: TOO_MANY_ROWS, TOO_MANY_BYTES, TIMEOUT_EXCEEDED, MEMORY_LIMIT_EXCEEDED, and of groups and results. */
const limitsByCode: Readonly<Record<string, ReadLimit>> = {
  158: 'rows',
  159: 'time',
  160: 'time',
  241: 'memory',
  307: 'bytes',
  396: 'bytes',
}

/** A query of entries. All values of users are in the parameters. */
export interface LogQuery {
  /** @param from `FROM logs WHERE …`, to which conditions may be added with AND. Each query reads the table only by it */
  readonly sql: (from: string) => string
  /** A condition that rejects most entries. ClickHouse evaluates it first, and reads other columns only where it holds. */
  readonly first?: string
  readonly parameters?: Readonly<Record<string, unknown>>
}

export interface ReadOptions {
  /** Ends the query, also in ClickHouse. */
  readonly signal: AbortSignal
  /** Limits that are lower than usual. */
  readonly limits?: Partial<ReadLimits>
  /** Others pause while inserts run. */
  readonly isUrgent?: boolean
}

/** What an operator sees of dead letters, of all projects: never a row. */
const deadLettersSource = `FROM (SELECT id, project_id, failed_at, code, ${publicReason} AS reason FROM ${deadLettersTable})`

/**
 * How long a search pauses at most with each block that it reads, while an insert runs. With ClickHouse's second, a search does not end where
 * inserts always run. With 100 ms, ingestion keeps 88 % of its rate next to a search, and 92 % with this.
 */
const INSERT_WAIT_MS = '300'
/** Node rounds, and ClickHouse takes 0 as no limit. */
const TIME_MIN_MS = 1

/**
 * Reads for users. This is the only place that makes such queries: each of them changes nothing, has limits, and ends when its connection is
 * closed. A query of entries concerns one project.
 */
export class LogReader {
  readonly #client: Pick<ClickHouseClient, 'query'>
  readonly #limits: ReadLimits

  /** @param client with a request timeout that is longer than `limits.timeMs` */
  constructor(client: Pick<ClickHouseClient, 'query'>, limits: ReadLimits) {
    this.#client = client
    this.#limits = limits
  }

  /** @throws ReadLimitError, ReadUnavailableError, ClickHouseError, and the reason of the signal */
  stream<Row>(projectId: string, query: LogQuery, options: ReadOptions): AsyncGenerator<Row[]> {
    const { sql, first = 'true', parameters } = query
    const from = `FROM ${logsTable} PREWHERE (${first}) AND project_id = {project:String}`
    return this.#send(sql(from), { ...parameters, project: projectId }, options)
  }

  /** @param sql without values of users @throws as `stream` */
  async deadLetters<Row>(sql: (from: string) => string, options: ReadOptions): Promise<Row[]> {
    return (await Array.fromAsync(this.#send<Row>(sql(deadLettersSource), {}, options))).flat()
  }

  async *#send<Row>(
    query: string,
    parameters: Readonly<Record<string, unknown>>,
    { signal, limits, isUrgent = false }: ReadOptions,
  ): AsyncGenerator<Row[]> {
    const { timeMs, rowsMax, bytesMax, memoryBytesMax } = { ...this.#limits, ...limits }
    signal.throwIfAborted()
    try {
      const result = await this.#client.query({
        query,
        query_params: parameters,
        format: 'JSONEachRow',
        // A query of a user may be too long for a URL.
        use_multipart_params_auto: true,
        abort_signal: signal,
        clickhouse_settings: {
          // 1 would not allow the settings below. ClickHouse ends only such queries when their connection is closed.
          readonly: '2',
          cancel_http_readonly_queries_on_client_close: 1,
          wait_end_of_query: 0,
          priority: isUrgent ? logsInsertSettings.priority : '2',
          low_priority_query_wait_time_ms: INSERT_WAIT_MS,
          max_execution_time: Math.max(TIME_MIN_MS, timeMs) / 1_000,
          timeout_overflow_mode: 'throw',
          max_rows_to_read: String(rowsMax),
          max_bytes_to_read: String(bytesMax),
          read_overflow_mode: 'throw',
          max_memory_usage: String(memoryBytesMax),
          date_time_output_format: 'iso',
          output_format_json_quote_64bit_integers: 0,
        },
      })
      // The client heeds the signal until the response begins.
      const close = (): void => result.close()
      signal.addEventListener('abort', close, { once: true })
      try {
        for await (const rows of result.stream<Row>()) yield rows.map((row) => row.json())
      } finally {
        signal.removeEventListener('abort', close)
        result.close()
      }
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof ClickHouseError))
        throw new ReadUnavailableError('ClickHouse does not answer', { cause: error })
      const limit = limitsByCode[error.code]
      throw limit === undefined ? error : new ReadLimitError(limit, error)
    }
    signal.throwIfAborted()
  }

  /** All rows of a query with a small result. @throws as `stream` */
  async rows<Row>(projectId: string, query: LogQuery, options: ReadOptions): Promise<Row[]> {
    const all: Row[] = []
    for await (const rows of this.stream<Row>(projectId, query, options)) all.push(...rows)
    return all
  }
}
