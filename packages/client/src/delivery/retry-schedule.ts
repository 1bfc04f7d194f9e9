import type { DropReason } from '../hooks.ts'
import type { Platform } from '../platform.ts'
import { delayMs } from './backoff.ts'
import type { Batch, ClockTimes } from './batch.ts'
import { Pause } from './pause.ts'
import { ProbeTurns } from './probe-turns.ts'

export interface RetryLimits {
  readonly retryForMs: number
  readonly idempotencyWindowMs: number
  readonly requestTimeoutMs: number
}

/** While the API rejects all requests, one is made in this time: a project may be enabled again. */
const MISCONFIGURED_RETRY_MS = 60_000

/** The first repetition of a request, if others have succeeded. If all are rejected from now on, the application soon learns it. */
const FIRST_MISCONFIGURED_RETRY_MS = 1_000

/** A disk that cannot be read now may work later: too many open files, for example. */
const DISK_RETRY_MS = 30_000

/** When failed batches are sent again, and when nothing is sent at all. */
export class RetrySchedule {
  readonly #limits: RetryLimits
  readonly #platform: Platform
  readonly #pause = new Pause()
  /** Of the requests that are sent while all fail. */
  readonly probeTurns = new ProbeTurns()

  constructor(limits: RetryLimits, platform: Platform) {
    this.#limits = limits
    this.#platform = platform
  }

  /** Until when nothing is sent. */
  get pausedUntilMs(): number {
    return this.#pause.untilMs
  }

  /** Whether no request has succeeded since one failed. */
  get isFailing(): boolean {
    return this.#pause.isFailing
  }

  succeed(): void {
    this.#pause.succeed()
    this.probeTurns.reset()
  }

  /**
   * Schedules the next attempt for a batch.
   *
   * @returns how long it waits, or why there is no further attempt
   */
  fail(batch: Batch, retryAfterMs: number | undefined): number | DropReason {
    const { random, monotonicMs } = this.#platform
    const nowMs = monotonicMs()
    const untilMs = nowMs + delayMs(this.#pause.countFailure(nowMs), retryAfterMs, random())
    if (retryAfterMs === undefined) this.#pause.extend(untilMs)
    else this.#pause.extendRequested(untilMs)
    // The batch waits longer than the others if it alone fails again and again.
    const waitMs = delayMs(batch.failedAttempts, retryAfterMs, random())
    batch.retryAtMs = Math.max(nowMs + waitMs, this.#pause.untilMs)
    return this.#endOfRetries(batch) ?? batch.retryAtMs - nowMs
  }

  /**
   * Schedules the next attempt for a batch that was answered with a problem of the configuration.
   *
   * @param isAlone whether other requests succeed: they do not wait
   * @returns why there is no further attempt, if there is none
   */
  waitForOperator(batch: Batch, isAlone: boolean): DropReason | undefined {
    const waitMs = isAlone && batch.problems === 1 ? FIRST_MISCONFIGURED_RETRY_MS : MISCONFIGURED_RETRY_MS
    const untilMs = this.#platform.monotonicMs() + waitMs
    if (!isAlone) this.#pause.extend(untilMs)
    batch.retryAtMs = Math.max(untilMs, this.#pause.untilMs)
    return this.#endOfRetries(batch)
  }

  /** Schedules another attempt to read a batch from the spool. */
  waitForDisk(batch: Batch): void {
    batch.retryAtMs = this.#platform.monotonicMs() + DISK_RETRY_MS
  }

  /** Ends a pause, except one that the API asked for. */
  resume(): void {
    this.#pause.resume()
  }

  /** Whether a further attempt could store entries twice: the API may have forgotten the idempotency key of an earlier one. */
  isTooLate({ uncertainSince, retryAtMs }: Batch): boolean {
    if (uncertainSince === undefined) return false
    const { idempotencyWindowMs, requestTimeoutMs } = this.#limits
    const waitMs = Math.max(0, retryAtMs - this.#platform.monotonicMs())
    // The attempt must arrive within the window. A sixth of it is for clocks that differ, and for the proxies in between.
    return this.#ageMs(uncertainSince) + waitMs > (idempotencyWindowMs * 5) / 6 - requestTimeoutMs
  }

  #ageMs({ monotonicMs, wallMs }: ClockTimes): number {
    return Math.max(this.#platform.monotonicMs() - monotonicMs, this.#platform.wallMs() - wallMs)
  }

  #endOfRetries(batch: Batch): DropReason | undefined {
    const { retryAtMs, firstAttemptAtMs = 0 } = batch
    if (retryAtMs > firstAttemptAtMs + this.#limits.retryForMs) return 'retries'
    return this.isTooLate(batch) ? 'outcome-unknown' : undefined
  }
}
