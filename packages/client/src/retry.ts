import type { Batch } from './batch.ts'
import { type DropReason, SluiceError } from './hooks.ts'
import type { Settings } from './options.ts'
import { HOUR_MS, type Platform } from './platform.ts'
import type { Preference } from './queue.ts'
import type { Failure } from './responses.ts'

/** The longest first wait. It doubles with each failure. */
const BACKOFF_MS_MIN = 500
/** A server that is back is noticed within this time. */
const BACKOFF_MS_MAX = 30_000
/** A longer `Retry-After` is followed by another request after this time. */
const RETRY_AFTER_MS_MAX = HOUR_MS

/** While the API rejects all requests, one is made in this time: a project may be enabled again. */
const MISCONFIGURED_RETRY_MS = 60_000
/** The first repetition of a request, if others have succeeded. If all are rejected from now on, the application soon learns it. */
const FIRST_MISCONFIGURED_RETRY_MS = 1_000
/** A request with this many such responses while others succeed is itself at fault: a firewall rejects its content, for example. */
const PROBLEMS_MAX = 3

/** Short waits come first after a failure: the fourth probe is a few seconds later. */
const PROBES_BEFORE_UNTRIED = 4

/**
 * Decides when failed batches are sent again, when nothing is sent at all, and which batch probes an API that fails.
 *
 *                    failure                    the API rejects all requests
 *     sending ─────────────────▶ failing    sending ───────────────────────▶ misconfigured
 *        ▲ a success                │          ▲ a success                        │
 *        └──────────────────────────┘          └──────────────────────────────────┘
 *
 * While it fails or is misconfigured, nothing is sent until a pause is over, then one request at a time is: the probe. A success ends the pause
 * that the client chose, never a pause that the API asked for.
 */
export class RetryPolicy {
  readonly #settings: Settings
  readonly #platform: Platform
  /** The ends of the pauses that the client chose, and that the API asked for. */
  #chosenPauseEndMs = 0
  #requestedPauseEndMs = 0
  /** Failures without a success, those during a pause not counted. */
  #failuresInRow = 0
  #successes = 0
  /** How many requests had succeeded at the last problem of the configuration. */
  #successesAtProblem = 0
  /** Why the API rejects all requests, until it accepts one. */
  problem: SluiceError | undefined
  problemResponses = 0

  constructor(settings: Settings, platform: Platform) {
    this.#settings = settings
    this.#platform = platform
  }

  get pausedUntilMs(): number {
    return Math.max(this.#chosenPauseEndMs, this.#requestedPauseEndMs)
  }

  /** While nothing succeeds, each request could be stored without a response, and could not be repeated after the window. */
  get isProbing(): boolean {
    return this.problem !== undefined || this.#failuresInRow > 0
  }

  /**
   * Losing the response of a request again that may already be stored costs nothing. But such requests may be at fault themselves, so after
   * 4, 8, 16 … failures an untried one is sent. In a long outage, each could cost a request.
   */
  get preference(): Preference {
    // What was rejected before may be at fault itself.
    if (this.problem !== undefined) return 'untried'
    const failures = this.#failuresInRow
    if (failures === 0) return 'failed'
    return failures >= PROBES_BEFORE_UNTRIED && Number.isInteger(Math.log2(failures))
      ? 'untried'
      : 'uncertain'
  }

  succeed(): void {
    this.#successes += 1
    this.problem = undefined
    this.#failuresInRow = 0
    this.#chosenPauseEndMs = 0
  }

  /**
   * Schedules the next attempt of a batch after a failure.
   *
   * @returns why there is no further attempt. `at-fault`: the batch is rejected again and again, while others succeed
   */
  fail(batch: Batch, failure: Failure, nowMs: number): DropReason | 'at-fault' | undefined {
    if (failure.isTransient) this.#backOff(batch, failure, nowMs)
    else this.#waitForOperator(batch, failure, nowMs)
    if (batch.problems >= PROBLEMS_MAX) return 'at-fault'
    const { retryAtMs, firstAttemptAtMs = 0 } = batch
    if (retryAtMs > firstAttemptAtMs + this.#settings.retryForMs) return 'retries'
    return this.isTooLate(batch) ? 'outcome-unknown' : undefined
  }

  #backOff(batch: Batch, { retryAfterMs }: Failure, nowMs: number): void {
    const { random } = this.#platform
    if (nowMs >= this.pausedUntilMs) this.#failuresInRow += 1
    const pauseEndMs = nowMs + backoffMs(Math.max(1, this.#failuresInRow), retryAfterMs, random())
    if (retryAfterMs === undefined) this.#chosenPauseEndMs = Math.max(this.#chosenPauseEndMs, pauseEndMs)
    else this.#requestedPauseEndMs = Math.max(this.#requestedPauseEndMs, pauseEndMs)
    // The batch waits longer than the others if it alone fails again and again.
    const waitMs = backoffMs(batch.failedAttempts, retryAfterMs, random())
    batch.retryAtMs = Math.max(nowMs + waitMs, this.pausedUntilMs)
  }

  /**
   * After a batch was rejected although nothing is wrong with it. Decides whether all requests are rejected. They are not if others have
   * succeeded since its last attempt. Nor if the response is not from the API, and a request has succeeded since the last such response: the
   * responses to other requests will show it.
   */
  #waitForOperator(batch: Batch, { isFromApi, status, reason }: Failure, nowMs: number): void {
    this.problemResponses += 1
    const isSending = this.#successes > this.#successesAtProblem
    const haveOthersSucceeded = batch.problems > 0 && this.#successes > batch.successesAtProblem
    if (batch.problems === 0 || haveOthersSucceeded) batch.problems += 1
    batch.successesAtProblem = this.#successes
    this.#successesAtProblem = this.#successes
    if (batch.problems >= PROBLEMS_MAX) return
    const isAlone = haveOthersSucceeded || (isSending && isFromApi === false)
    const waitMs = isAlone && batch.problems === 1 ? FIRST_MISCONFIGURED_RETRY_MS : MISCONFIGURED_RETRY_MS
    if (!isAlone) {
      this.#chosenPauseEndMs = Math.max(this.#chosenPauseEndMs, nowMs + waitMs)
      const message = `${this.#settings.url} rejects all requests: ${reason}`
      this.problem ??= new SluiceError('configuration', message, { status, reason })
    }
    batch.retryAtMs = Math.max(nowMs + waitMs, this.pausedUntilMs)
  }

  /** Begins with the shortest wait again, except for a pause that the API asked for: the client closes, and the API may be back. */
  tryAgain(delayed: Iterable<Batch>): void {
    this.#chosenPauseEndMs = 0
    this.#failuresInRow = Math.min(this.#failuresInRow, 1)
    for (const batch of delayed) {
      batch.failedAttempts = Math.min(batch.failedAttempts, 1)
      batch.retryAtMs = 0
    }
  }

  /** Whether a further attempt could store entries twice: the API may have forgotten the idempotency key of an earlier one. */
  isTooLate({ uncertainSince, retryAtMs }: Batch): boolean {
    if (uncertainSince === undefined) return false
    const { idempotencyWindowMs, requestTimeoutMs } = this.#settings
    const nowMs = this.#platform.monotonicMs()
    const ageMs = Math.max(
      nowMs - uncertainSince.monotonicMs,
      this.#platform.wallMs() - uncertainSince.wallMs,
    )
    // The attempt must arrive within the window. A sixth of it is for clocks that differ, and for the proxies in between.
    return ageMs + Math.max(0, retryAtMs - nowMs) > (idempotencyWindowMs * 5) / 6 - requestTimeoutMs
  }
}

/**
 * The wait after a failure: random, so that clients that failed together do not retry together ("full jitter"), and at least what the
 * response asks for.
 *
 * @param failures 1 or more
 * @param random 0 ≤ random < 1
 */
function backoffMs(failures: number, retryAfterMs: number | undefined, random: number): number {
  const jitterMs = random * Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** Math.min(failures - 1, 30))
  return Math.round(Math.max(jitterMs, Math.min(retryAfterMs ?? 0, RETRY_AFTER_MS_MAX)))
}
