import { setTimeout as delay } from 'node:timers/promises'
import { seededRandom } from '@sluice/harness/random'
import { exponential } from '../entries/distributions.ts'
import { HttpConnection } from './http-connection.ts'
import type { ClosedLoop, LoadResult, OpenLoop, Progress } from './protocol.ts'
import type { RequestPool } from './request-pool.ts'
import { isAccepted, Tally } from './tally.ts'

/** How often requests that have become due are sent. Timers have no finer resolution. */
const TICK_MS = 1
const PROGRESS_INTERVAL_MS = 200
/** How long outstanding responses are awaited after the window: far longer than any system takes unless it is stuck. */
const ANSWER_DEADLINE_MS = 20_000
const ANSWER_POLL_MS = 5
/** After a rejection a connection pauses this long, as a client would, instead of retrying at full speed. */
const REJECTED_PAUSE_MS = 20
/** Limit of due requests that wait for a connection: several seconds of load, if the system does not keep up. */
const WAITING_MAX = 200_000
/** The seed of the arrival times, independent of the contents of the requests. */
const ARRIVAL_SEED = 7

/**
 * One run of load.
 *
 * Sending (the window) → waiting for outstanding responses → done. The run fails as soon as one connection
 * fails: a system that closes connections under load is not measured.
 */
export class LoadRun {
  readonly #url: URL
  readonly #pool: RequestPool
  readonly #onProgress: (progress: Progress) => void
  readonly #failed = Promise.withResolvers<never>()
  readonly #random = seededRandom(ARRIVAL_SEED)
  #connections: HttpConnection[] = []
  #tally = new Tally()
  /** Called when a connection is free. Set by the running loop. */
  #onFree: (connection: HttpConnection) => void = () => undefined

  constructor(url: URL, pool: RequestPool, onProgress: (progress: Progress) => void) {
    this.#url = url
    this.#pool = pool
    this.#onProgress = onProgress
    // Awaited only during a run. A later failure is irrelevant and must not become an unhandled rejection.
    this.#failed.promise.catch(() => undefined)
  }

  /** @throws when a connection fails */
  async run(options: ClosedLoop | OpenLoop): Promise<LoadResult> {
    this.#connections = this.#connect(options.connections)
    const progress = setInterval(() => this.#report(), PROGRESS_INTERVAL_MS)
    try {
      this.#tally = new Tally()
      await Promise.race([this.#send(options), this.#failed.promise])
      this.#tally.endWindow()
      await Promise.race([this.#awaitAnswers(), this.#failed.promise])
      for (const { awaiting, dueMs } of this.#connections) if (awaiting) this.#tally.unanswered(dueMs)
      this.#report()
      return this.#tally.result()
    } finally {
      clearInterval(progress)
      for (const connection of this.#connections) connection.close()
    }
  }

  #connect(count: number): HttpConnection[] {
    const events = {
      onResponse: (connection: HttpConnection, status: number, response: Buffer) => {
        this.#tally.answered(status, connection, response)
        if (isAccepted(status)) this.#onFree(connection)
        else setTimeout(() => this.#onFree(connection), REJECTED_PAUSE_MS)
      },
      onFailure: (error: Error) => this.#failed.reject(error),
    }
    return Array.from({ length: count }, () => new HttpConnection(this.#url, events))
  }

  #send(options: ClosedLoop | OpenLoop): Promise<void> {
    return options.loop === 'closed' ? this.#sendClosed(options) : this.#sendOpen(options)
  }

  async #sendClosed({ durationMs }: ClosedLoop): Promise<void> {
    this.#onFree = (connection) => {
      const request = this.#pool.next()
      this.#tally.sent(request.entries)
      connection.send(request, performance.now())
    }
    for (const connection of this.#connections) this.#onFree(connection)
    await delay(durationMs)
    this.#onFree = () => undefined
  }

  async #sendOpen({ durationMs, entriesPerS }: OpenLoop): Promise<void> {
    const meanGapMs = (1_000 * this.#pool.entriesPerRequest) / entriesPerS
    const free = [...this.#connections]
    const startedMs = performance.now()
    let nextDueMs = startedMs + exponential(this.#random, meanGapMs)
    let waiting: number[] = []
    let sent = 0
    const dispatch = (): void => {
      while (sent < waiting.length) {
        // The connection that was idle longest, because the API closes idle connections.
        const connection = free.shift()
        if (connection === undefined) return
        const request = this.#pool.next()
        this.#tally.sent(request.entries)
        connection.send(request, waiting[sent] ?? 0)
        sent += 1
      }
      waiting = []
      sent = 0
    }
    this.#onFree = (connection) => {
      free.push(connection)
      dispatch()
    }
    while (performance.now() < startedMs + durationMs) {
      for (const nowMs = performance.now(); nextDueMs <= nowMs && waiting.length < WAITING_MAX;) {
        waiting.push(nextDueMs)
        nextDueMs += exponential(this.#random, meanGapMs)
      }
      dispatch()
      await delay(TICK_MS)
    }
    this.#onFree = () => undefined
    for (const dueMs of waiting.slice(sent)) this.#tally.unsent(dueMs, this.#pool.entriesPerRequest)
  }

  async #awaitAnswers(): Promise<void> {
    const deadlineMs = performance.now() + ANSWER_DEADLINE_MS
    while (this.#connections.some(({ awaiting }) => awaiting) && performance.now() < deadlineMs) {
      await delay(ANSWER_POLL_MS)
    }
  }

  #report(): void {
    const { accepted, slowestMs } = this.#tally
    this.#onProgress({ atMs: performance.timeOrigin + performance.now(), accepted, slowestMs })
  }
}
