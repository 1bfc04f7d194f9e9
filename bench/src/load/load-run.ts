import { setTimeout as delay } from 'node:timers/promises'
import { Random } from '../entries/random.ts'
import { HttpConnection } from './http-connection.ts'
import type { ClosedLoop, LoadResult, OpenLoop, Progress } from './protocol.ts'
import type { RequestPool } from './request-pool.ts'
import { Tally } from './tally.ts'

/** How often requests that have become due are looked for; timers are no finer. */
const TICK_MS = 1
const PROGRESS_INTERVAL_MS = 200
/** How long after the window an answer is waited for: far more than any of the systems takes unless it is stuck. */
const ANSWER_DEADLINE_MS = 20_000
const ANSWER_POLL_MS = 5
/** A refused connection waits this long, as a client would, instead of asking again at full speed. */
const REFUSED_PAUSE_MS = 20
/** Requests that are due and wait for a connection, at most: seconds' worth for a system that does not keep up. */
const WAITING_MAX = 200_000
/** The arrivals' own seed: independent of what the requests hold. */
const ARRIVAL_SEED = 7

/**
 * One run of load.
 *
 * Connecting → sending (the window) → waiting for the answers that are still out → done. A connection that fails ends
 * the run at once: a system that closes connections under load is not measured.
 */
export class LoadRun {
  readonly #url: URL
  readonly #pool: RequestPool
  readonly #onProgress: (progress: Progress) => void
  readonly #failed = Promise.withResolvers<never>()
  readonly #arrivals = new Random(ARRIVAL_SEED)
  #connections: HttpConnection[] = []
  #tally = new Tally()
  /** What a connection does once it is free: set by the loop that runs. */
  #onFree: (connection: HttpConnection) => void = () => undefined

  constructor(url: URL, pool: RequestPool, onProgress: (progress: Progress) => void) {
    this.#url = url
    this.#pool = pool
    this.#onProgress = onProgress
    // It is awaited only while a run is under way; a failure after that is of no interest.
    this.#failed.promise.catch(() => undefined)
  }

  /** @throws when a connection fails */
  async run(options: ClosedLoop | OpenLoop): Promise<LoadResult> {
    this.#connections = await this.#connect(options.connections)
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

  #connect(count: number): Promise<HttpConnection[]> {
    const events = {
      onAnswer: (connection: HttpConnection, status: number, answer: Buffer) => {
        this.#tally.answered(status, connection, answer)
        if (status === 202) this.#onFree(connection)
        else setTimeout(() => this.#onFree(connection), REFUSED_PAUSE_MS)
      },
      onFailure: (error: Error) => this.#failed.reject(error),
    }
    return Promise.all(Array.from({ length: count }, () => HttpConnection.open(this.#url, events)))
  }

  #send(options: ClosedLoop | OpenLoop): Promise<void> {
    return options.loop === 'closed' ? this.#sendClosed(options) : this.#sendOpen(options)
  }

  async #sendClosed({ durationMs, entriesMax = Infinity }: ClosedLoop): Promise<void> {
    const ended = Promise.withResolvers<undefined>()
    this.#onFree = (connection) => {
      if (this.#tally.accepted >= entriesMax) return ended.resolve(undefined)
      const request = this.#pool.next()
      this.#tally.sent(request.entries)
      connection.send(request, performance.now())
    }
    for (const connection of this.#connections) this.#onFree(connection)
    const timer = new AbortController()
    await Promise.race([delay(durationMs, undefined, { signal: timer.signal }), ended.promise])
    timer.abort()
    this.#onFree = () => undefined
  }

  async #sendOpen({ durationMs, entriesPerS }: OpenLoop): Promise<void> {
    const meanGapMs = (1_000 * this.#pool.entriesPerRequest) / entriesPerS
    const free = [...this.#connections]
    const startedMs = performance.now()
    let nextDueMs = startedMs + this.#arrivals.exponential(meanGapMs)
    let waiting: number[] = []
    let taken = 0
    const dispatch = (): void => {
      while (taken < waiting.length) {
        // The one that has rested longest: the API closes those that rest too long.
        const connection = free.shift()
        if (connection === undefined) return
        const request = this.#pool.next()
        this.#tally.sent(request.entries)
        connection.send(request, waiting[taken] ?? 0)
        taken += 1
      }
      waiting = []
      taken = 0
    }
    this.#onFree = (connection) => {
      free.push(connection)
      dispatch()
    }
    while (performance.now() < startedMs + durationMs) {
      for (const nowMs = performance.now(); nextDueMs <= nowMs && waiting.length < WAITING_MAX;) {
        waiting.push(nextDueMs)
        nextDueMs += this.#arrivals.exponential(meanGapMs)
      }
      dispatch()
      await delay(TICK_MS)
    }
    this.#onFree = () => undefined
    for (const dueMs of waiting.slice(taken)) this.#tally.unsent(dueMs, this.#pool.entriesPerRequest)
  }

  async #awaitAnswers(): Promise<void> {
    const deadlineMs = performance.now() + ANSWER_DEADLINE_MS
    while (this.#connections.some(({ awaiting }) => awaiting) && performance.now() < deadlineMs) {
      await delay(ANSWER_POLL_MS)
    }
  }

  #report(): void {
    this.#onProgress({ atMs: performance.timeOrigin + performance.now(), accepted: this.#tally.accepted })
  }
}
