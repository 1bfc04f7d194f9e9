import { setTimeout } from 'node:timers/promises'
import type { ClickHouseMonitor } from './clickhouse-monitor.ts'
import type { RunningQueries } from './running-queries.ts'

/** The times of the questions. Together they are less than 10 s, within which operators learn of a silent connection. */
export const watchLimits = {
  /** A query that neither sends nor gets anything for this long is asked about. Nearly all queries end sooner, and cost no question. */
  quietMs: 4_000,
  /** From one question to the next. An answer that was in flight when the query had just ended arrives in this time. */
  intervalMs: 3_000,
  /** A question without an answer for this long means that ClickHouse is silent. It reads a few rows of memory. */
  questionTimeoutMs: 3_000,
  /** A query that is not running by this many questions in a row is given up. */
  missingMax: 2,
  /**
   * A query is given up after this many questions in a row without an answer, which is 13 s after its last sign. By then its worker must
   * return its chunks, so that a worker that reaches ClickHouse can insert them. The second question follows a short disturbance.
   */
  silentMax: 2,
} as const

/** A query without an answer was given up, because ClickHouse does not run it, or does not answer at all. It may have run, or still run. */
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

/** Sends queries without watching them. */
export const unwatched: QueryWatcher = {
  run: (_queryId, send) => send({ signal: new AbortController().signal, progressed: () => undefined }),
  isRunning: async () => false,
}

export interface QueryWatchOptions {
  readonly runningQueries: Pick<RunningQueries, 'has'>
  readonly monitor: Pick<ClickHouseMonitor, 'answered' | 'silent' | 'lost' | 'found'>
  readonly monotonicMs: () => number
  /** Resolves after `ms`, or when the signal is aborted. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>
}

/**
 * Watches queries: a slow one may take its time, and one whose connection is silent is given up within seconds.
 *
 * A connection may be open while nothing arrives on it, because a load balancer lost its state or a route is gone. Silence alone does not
 * show this: a slow insert is silent too. Therefore the watch asks ClickHouse, over a new connection, whether it runs the query.
 *
 * Sending → (the request is sent, and nothing follows for a while) quiet → asked: running → quiet again; not running, twice → given up;
 * no answer → the monitor reports that ClickHouse is silent, and it is asked again; no answer, twice → given up.
 */
export class QueryWatch implements QueryWatcher {
  readonly #options: QueryWatchOptions

  constructor(options: QueryWatchOptions) {
    this.#options = options
  }

  async run<T>(queryId: string, send: (query: WatchedQuery) => Promise<T>): Promise<T> {
    const { monitor, monotonicMs } = this.#options
    const [ended, givenUp] = [new AbortController(), new AbortController()]
    let progressAtMs = monotonicMs()
    const progressed = (): void => {
      progressAtMs = monotonicMs()
    }
    void this.#watch(
      queryId,
      () => progressAtMs,
      ended.signal,
      () => givenUp.abort(),
    )
    try {
      const result = await send({ signal: givenUp.signal, progressed })
      monitor.answered()
      return result
    } catch (error) {
      if (givenUp.signal.aborted)
        throw new LostQueryError(
          'there is no answer, and ClickHouse does not run it or does not answer at all',
        )
      if (!isSilence(error)) monitor.answered()
      throw error
    } finally {
      ended.abort()
      monitor.found(queryId)
    }
  }

  async isRunning(queryId: string): Promise<boolean> {
    return (await this.#ask(queryId, new AbortController().signal)) === true
  }

  /** Never rejects. */
  async #watch(
    queryId: string,
    progressAtMs: () => number,
    ended: AbortSignal,
    giveUp: () => void,
  ): Promise<void> {
    const { monitor, monotonicMs, sleep = sleepUnlessAborted } = this.#options
    let missing = 0
    let silent = 0
    for (let waitMs: number = watchLimits.quietMs; ;) {
      await sleep(waitMs, ended)
      if (ended.aborted) return
      const quietMs = monotonicMs() - progressAtMs()
      if (quietMs < watchLimits.quietMs) {
        waitMs = watchLimits.quietMs - quietMs
        missing = 0
        silent = 0
        monitor.found(queryId)
        continue
      }
      const isRunning = await this.#ask(queryId, ended)
      if (ended.aborted) return
      silent = isRunning === 'silent' ? silent + 1 : 0
      if (isRunning === true) {
        missing = 0
        monitor.found(queryId)
      } else if (isRunning === false) {
        missing += 1
        monitor.lost(queryId)
      }
      if (missing === watchLimits.missingMax || silent === watchLimits.silentMax) return giveUp()
      waitMs = watchLimits.intervalMs
    }
  }

  /** Undefined if ClickHouse does not say it. Never rejects. */
  async #ask(queryId: string, signal: AbortSignal): Promise<boolean | 'silent' | undefined> {
    const { runningQueries, monitor } = this.#options
    try {
      const isRunning = await runningQueries.has(queryId, signal)
      monitor.answered()
      return isRunning
    } catch (error) {
      if (signal.aborted) return undefined
      if (isSilence(error)) {
        monitor.silent()
        return 'silent'
      }
      monitor.answered()
      return undefined
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

async function sleepUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => undefined)
}
