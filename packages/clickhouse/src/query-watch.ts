import type { ClickHouseClient, ExecParams, QueryParams } from '@clickhouse/client'
import { processClock, type MonotonicClock, type Readiness } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { addAbortSignal, Readable } from 'node:stream'
import { finished } from 'node:stream/promises'

/** The times of the questions. Together they are less than 10 s, within which operators learn of a silent connection. */
export const watchLimits = {
  /** A query that neither sends nor gets anything for this long is asked about. Nearly all queries end sooner, and cost no question. */
  quietMs: 4_000,
  /** From one question to the next. A response that was in flight when the query had just ended arrives in this time. */
  intervalMs: 3_000,
  /** A question without a response for this long means that ClickHouse is silent. It reads a few rows of memory. */
  questionTimeoutMs: 3_000,
  /** A query that is not running by this many questions in a row is given up. */
  missingMax: 2,
  /**
   * As `missingMax`, for questions without a response: 13 s after its last sign. By then its worker must return its chunks, so that a worker
   * that reaches ClickHouse can insert them. The second question follows a short disturbance.
   */
  silentMax: 2,
  /** A worker whose questions get no response for this long is not alive. Longer than ClickHouse takes for a restart. */
  aliveSilenceMaxMs: 120_000,
  /**
   * A question without a response says something about ClickHouse for this long. While nothing waits for ClickHouse, none are asked, and an
   * old one must not count.
   */
  evidenceMaxMs: 20_000,
} as const

/**
 * The ids of Sluice's queries in ClickHouse. An insert has the same id in all of its attempts, in whichever process: ClickHouse rejects
 * an attempt while an earlier one is still running (error 216).
 */
export const queryIds = {
  rows: (token: string) => `sluice/rows/${token}`,
  /** The insert of a row that consumes a token. The insert with this token has another id: this one must not wait for it. */
  consumedToken: (token: string) => `sluice/token/${token}`,
  deadLetter: (token: string) => `sluice/dead-letter/${token}`,
  deadLetterRetry: (letterId: string) => `sluice/dead-letter-retry/${letterId}`,
  /** A lookup, or a query of the clock. Each has another id. */
  lookup: (id: string) => `sluice/lookup/${id}`,
  /** An insert that tries the deduplication. Each has another id. */
  deduplicationCheck: (id: string) => `sluice/deduplication-check/${id}`,
} as const

/** A query without a response was given up, because ClickHouse does not run it, or does not respond at all. It may have run, or still run. */
export class LostQueryError extends Error {
  override name = 'LostQueryError'
}

/** A query in progress. */
export interface WatchedQuery {
  /** Aborted when the query is given up. */
  readonly signal: AbortSignal
  /** To be called whenever a part of the request is sent. While it is being sent, ClickHouse may not know the query. */
  readonly progressed: () => void
}

export interface QueryWatcher {
  /** Sends a query. @throws what `send` throws, and LostQueryError */
  run<T>(queryId: string, send: (query: WatchedQuery) => Promise<T>): Promise<T>
  /** Whether ClickHouse certainly runs the query. False if this is not known. */
  isRunning(queryId: string): Promise<boolean>
}

export interface QueryWatchOptions {
  /** Opens a new connection for each question: an open one may be silent. */
  readonly client: Pick<ClickHouseClient, 'query'>
  /** Whether a question may reach another server than the query did. Then only that server knows whether it runs the query. */
  readonly isCluster: boolean
  readonly monotonicMs: () => number
  readonly sleep?: MonotonicClock['sleep']
}

/** What ClickHouse says about a query. `unknown`: it responds, but does not know. `silent`: nothing arrives. */
type Finding = 'running' | 'missing' | 'unknown' | 'silent'

/**
 * Watches queries: a slow one may take its time, and one whose connection is silent is given up within seconds. Silence alone does not show
 * the difference. So the watch asks ClickHouse, over a new connection, whether it runs the query.
 *
 * ```
 * a query       sending ──▶ quiet (nothing sent or received for 4 s) ──▶ asked ──┬─ running or unknown ─▶ quiet
 *                                                                               ├─ missing, twice ──────▶ given up
 *                                                                               └─ silent, twice ───────▶ given up
 * ClickHouse    responding ⇄ silent (a question got no response) ──▶ not alive (for two minutes, while something waited)
 * ```
 *
 * A refused connection and an error are responses too, since a restart of the worker would not help. A worker that does not wait for
 * ClickHouse is ready and alive.
 */
export class QueryWatch implements QueryWatcher {
  readonly #options: QueryWatchOptions
  /** The questions without a response since the last response. */
  #silence: { readonly sinceMs: number; readonly lastMs: number } | undefined

  constructor(options: QueryWatchOptions) {
    this.#options = options
  }

  async run<T>(queryId: string, send: (query: WatchedQuery) => Promise<T>): Promise<T> {
    const { monotonicMs } = this.#options
    const [ended, givenUp] = [new AbortController(), new AbortController()]
    let progressAtMs = monotonicMs()
    const progressed = (): void => {
      progressAtMs = monotonicMs()
    }
    const isLost = this.#watch(queryId, () => progressAtMs, ended.signal)
    void isLost.then((lost) => lost && givenUp.abort())
    try {
      const result = await send({ signal: givenUp.signal, progressed })
      this.#silence = undefined
      return result
    } catch (error) {
      if (givenUp.signal.aborted)
        throw new LostQueryError(
          'there is no response, and ClickHouse does not run it or does not respond at all',
        )
      if (!isSilence(error)) this.#silence = undefined
      throw error
    } finally {
      ended.abort()
    }
  }

  async isRunning(queryId: string): Promise<boolean> {
    return (await this.#ask(queryId, new AbortController().signal)) === 'running'
  }

  get readiness(): Readiness {
    if (this.#currentSilence === undefined) return { ready: true, reasons: [] }
    return { ready: false, reasons: ['ClickHouse does not answer on new connections'] }
  }

  /** False if ClickHouse has responded to nothing for two minutes, while the worker waited for it. */
  get isAlive(): boolean {
    const silence = this.#currentSilence
    return silence === undefined || silence.lastMs - silence.sinceMs <= watchLimits.aliveSilenceMaxMs
  }

  get #currentSilence(): { readonly sinceMs: number; readonly lastMs: number } | undefined {
    const silence = this.#silence
    if (silence === undefined) return undefined
    return this.#options.monotonicMs() - silence.lastMs > watchLimits.evidenceMaxMs ? undefined : silence
  }

  /** @returns whether the query is to be given up; false when it has ended. Never rejects */
  async #watch(queryId: string, progressAtMs: () => number, ended: AbortSignal): Promise<boolean> {
    const { monotonicMs, sleep = (ms, signal) => processClock.sleep(ms, signal) } = this.#options
    let inARow = { missing: 0, silent: 0 }
    for (let waitMs: number = watchLimits.quietMs; ;) {
      await sleep(waitMs, ended)
      if (ended.aborted) return false
      const quietMs = monotonicMs() - progressAtMs()
      if (quietMs < watchLimits.quietMs) {
        waitMs = watchLimits.quietMs - quietMs
        inARow = { missing: 0, silent: 0 }
        continue
      }
      const finding = await this.#ask(queryId, ended)
      if (ended.aborted) return false
      inARow.silent = finding === 'silent' ? inARow.silent + 1 : 0
      if (finding === 'running') inARow.missing = 0
      if (finding === 'missing') inARow.missing += 1
      if (inARow.missing === watchLimits.missingMax || inARow.silent === watchLimits.silentMax) return true
      waitMs = watchLimits.intervalMs
    }
  }

  /** Never rejects. */
  async #ask(queryId: string, signal: AbortSignal): Promise<Finding> {
    const { client, isCluster } = this.#options
    try {
      const result = await client.query({
        query: 'SELECT 1 FROM system.processes WHERE query_id = {queryId: String} LIMIT 1',
        query_params: { queryId },
        format: 'JSONEachRow',
        abort_signal: signal,
      })
      const rows = await result.json()
      this.#silence = undefined
      if (isCluster) return 'unknown'
      return rows.length > 0 ? 'running' : 'missing'
    } catch (error) {
      if (signal.aborted) return 'unknown'
      if (!isSilence(error)) {
        this.#silence = undefined
        return 'unknown'
      }
      const nowMs = this.#options.monotonicMs()
      this.#silence = { sinceMs: this.#currentSilence?.sinceMs ?? nowMs, lastMs: nowMs }
      return 'silent'
    }
  }
}

/** The client's error when nothing arrived in time. It has no code and no class. */
const CLIENT_TIMEOUT = 'Timeout error.'

/** Whether an error means that nothing arrived at all. Others show that something is there. */
function isSilence(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return error.message === CLIENT_TIMEOUT || ('code' in error && error.code === 'ETIMEDOUT')
}

/** Sends a watched query, and reads its rows. @throws the errors of the client, and LostQueryError */
export async function lookUp<Row>(
  client: Pick<ClickHouseClient, 'query'>,
  watch: Pick<QueryWatcher, 'run'>,
  parameters: Pick<QueryParams, 'query' | 'query_params' | 'clickhouse_settings'>,
  queryId = queryIds.lookup(randomUUID()),
): Promise<Row[]> {
  return watch.run(queryId, async ({ signal }) => {
    const result = await client.query({
      ...parameters,
      format: 'JSONEachRow',
      query_id: queryId,
      abort_signal: signal,
    })
    // The client heeds the signal until the response begins. A connection may fall silent after that.
    signal.addEventListener('abort', () => result.close(), { once: true })
    return result.json<Row>()
  })
}

/**
 * Sends a watched insert. Resolves when ClickHouse has acknowledged it.
 *
 * @param pieces the body. `onPiece` may be called when a piece is needed: those before it are sent, which is progress
 * @throws errors for `classifyInsertError`
 */
export async function insertStream(
  client: Pick<ClickHouseClient, 'exec'>,
  watch: QueryWatcher,
  queryId: string,
  params: Pick<ExecParams, 'query' | 'clickhouse_settings' | 'http_headers'>,
  pieces: (onPiece: () => void) => Iterable<Buffer>,
): Promise<void> {
  await watch.run(queryId, async ({ signal, progressed }) => {
    const { stream } = await client.exec({
      ...params,
      values: Readable.from(pieces(progressed), { objectMode: false }),
      query_id: queryId,
      abort_signal: signal,
    })
    // The response of an insert is empty. Its end releases the connection, which may fall silent before: others would wait for it.
    await finished(addAbortSignal(signal, stream).resume())
  })
}
