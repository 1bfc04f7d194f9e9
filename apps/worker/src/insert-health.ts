import { ClickHouseError, classifyInsertError, describeError, STILL_RUNNING } from '@sluice/clickhouse'
import type { MonotonicClock } from '@sluice/runtime'
import { workerLimits } from './limits.ts'
import type { Query, WorkerEvents } from './worker-events.ts'

/**
 * Whether this worker can insert. A worker that cannot must not hold chunks that others could insert.
 *
 * | State   | Meaning                                   | Chunks                                               |
 * | ------- | ----------------------------------------- | ---------------------------------------------------- |
 * | healthy | the last insert did not fail              | fetched                                              |
 * | failing | inserts fail                              | held ones are retried; then one at a time, as a probe |
 * | gave up | no insert has succeeded for `giveUpMs`    | all returned; one at a time is fetched as a probe    |
 *
 * A success leads back to healthy. What precedes an insert counts if it fails without a response. An error that ClickHouse reports about the
 * rows changes nothing.
 */
export class InsertHealth {
  readonly #clock: Pick<MonotonicClock, 'nowMs'>
  #failingSinceMs: number | undefined
  #succeededAtMs = Number.NEGATIVE_INFINITY
  #lastError: string | undefined
  #giveUp = new AbortController()
  #nextProbeAtMs = Number.NEGATIVE_INFINITY

  /** @param events of the queries that it takes into account */
  constructor(clock: Pick<MonotonicClock, 'nowMs'>, events: Pick<WorkerEvents, 'on'>) {
    this.#clock = clock
    events.on('query ended', ({ kind, startedMs }, failure) => {
      if (failure !== undefined && isInability(kind, failure.error)) this.#failed(startedMs, failure.error)
      else if (failure === undefined && kind === 'insert') this.#succeeded()
    })
  }

  /** Aborted while the worker has given up. */
  get giveUpSignal(): AbortSignal {
    return this.#giveUp.signal
  }

  /** How many chunks may be fetched by a worker that holds this many: none, one as a probe, or any number. */
  fetchMax(heldChunks: number): number {
    if (this.#failingSinceMs === undefined) return Number.POSITIVE_INFINITY
    // Without a held chunk there is nothing whose insert could succeed.
    return heldChunks === 0 && this.#clock.nowMs() >= this.#nextProbeAtMs ? 1 : 0
  }

  /** To be called when a probe is fetched, or found nothing to fetch. */
  probing(): void {
    this.#nextProbeAtMs = this.#clock.nowMs() + workerLimits.probeIntervalMs
  }

  /** Whether an insert has succeeded since a time. */
  hasSucceededSince(ms: number): boolean {
    return this.#succeededAtMs >= ms
  }

  /** The error of the last failed insert, while the worker cannot insert. */
  get lastError(): string | undefined {
    return this.#failingSinceMs === undefined ? undefined : this.#lastError
  }

  /** Why the worker cannot insert; undefined if it can. */
  get failure(): string | undefined {
    if (this.#failingSinceMs === undefined) return undefined
    const seconds = Math.floor((this.#clock.nowMs() - this.#failingSinceMs) / 1_000)
    const effect = this.#giveUp.signal.aborted ? ', its chunks are returned' : ''
    return `no insert has succeeded for ${seconds} s${effect}: ${this.#lastError}`
  }

  #succeeded(): void {
    this.#succeededAtMs = this.#clock.nowMs()
    this.#failingSinceMs = undefined
    if (this.#giveUp.signal.aborted) this.#giveUp = new AbortController()
  }

  #failed(startedMs: number, error: unknown): void {
    // Another insert has succeeded meanwhile.
    if (startedMs < this.#succeededAtMs) return
    this.#lastError = describeError(error)
    this.#failingSinceMs ??= startedMs
    if (this.#clock.nowMs() - this.#failingSinceMs >= workerLimits.giveUpMs) this.#giveUp.abort()
  }
}

/**
 * Whether a failed query shows that the worker cannot insert. If ClickHouse rejects what precedes an insert, the first insert of a batch,
 * which needs no such query, may still succeed.
 */
function isInability(kind: Query['kind'], error: unknown): boolean {
  if (kind !== 'insert') return !(error instanceof ClickHouseError)
  const isRunning = error instanceof ClickHouseError && error.code === STILL_RUNNING
  return !isRunning && classifyInsertError(error).failure === 'transient'
}
