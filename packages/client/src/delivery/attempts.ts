import type { HookCaller } from '../hook-caller.ts'
import type { Settings } from '../options.ts'
import type { Platform } from '../platform.ts'
import type { Answer, Failure, Misconfiguration } from './answers.ts'
import type { Batch, ClockTimes } from './batch.ts'
import type { Endings } from './endings.ts'
import type { OperatorProblem } from './operator-problem.ts'
import type { Persistence } from './persistence.ts'
import { postBatch } from './post.ts'
import type { RetrySchedule } from './retry-schedule.ts'
import { splitBatch } from './split-batch.ts'
import type { Spooling } from './spooling.ts'
import type { Stop } from './stop.ts'
import { unlessStopped } from './unless-stopped.ts'
import type { WaitingBatches } from './waiting-batches.ts'

export interface AttemptParts {
  readonly settings: Settings
  readonly platform: Platform
  readonly hooks: HookCaller
  readonly schedule: RetrySchedule
  readonly problem: OperatorProblem
  readonly spooling: Spooling | undefined
  readonly waiting: WaitingBatches
  readonly endings: Endings
  readonly stop: Stop
  /** Of the moment. */
  readonly persistence: () => Persistence
}

/** Makes attempts to send batches. After each, the batch is settled or waits for another one. */
export class Attempts {
  readonly #parts: AttemptParts
  #hasReceivedResponse = false
  #failed = 0

  constructor(parts: AttemptParts) {
    this.#parts = parts
  }

  get failed(): number {
    return this.#failed
  }

  /** Never rejects. */
  async make(batch: Batch): Promise<void> {
    const { spooling, schedule, endings, waiting, stop } = this.#parts
    const wasLoaded = batch.isLoaded
    const readiness = spooling === undefined ? 'ready' : await this.#unlessStopped(spooling.prepare(batch))
    if (!wasLoaded && batch.isLoaded) waiting.memory.add(batch)
    if (readiness === 'stopped' || stop.hasHappened) return endings.giveUp(batch)
    if (readiness === 'lost') return endings.settle(batch, (end) => end.dropped(batch, 'unreadable'))
    if (readiness === 'unreadable') {
      schedule.waitForDisk(batch)
      this.#delay(batch)
      return
    }
    if (schedule.isTooLate(batch))
      return endings.settle(batch, (end) => end.dropped(batch, 'outcome-unknown'))
    await this.#post(batch)
  }

  async #post(batch: Batch): Promise<void> {
    const { platform, settings, stop } = this.#parts
    const startedAt = { monotonicMs: platform.monotonicMs(), wallMs: platform.wallMs() }
    batch.firstAttemptAtMs ??= startedAt.monotonicMs
    const { answer, hasResponse } = await postBatch(batch, settings, stop, platform.wallMs)
    this.#hasReceivedResponse ||= hasResponse
    await this.#handle(batch, answer, startedAt)
  }

  async #handle(batch: Batch, answer: Answer, startedAt: ClockTimes): Promise<void> {
    if (answer.kind === 'failed' || answer.kind === 'misconfigured') {
      batch.failedAttempts += 1
      this.#failed += 1
      await this.#noteOutcome(batch, answer.mayBeStored, startedAt)
      if (answer.kind === 'failed') this.#retry(batch, answer)
      else this.#waitForOperator(batch, answer)
      return
    }
    const { schedule, problem, endings } = this.#parts
    schedule.succeed()
    problem.succeed()
    if (answer.kind === 'processed') {
      const { accepted, rejections } = answer
      endings.settle(batch, (end) => end.processed(batch, accepted, rejections))
    } else if (answer.kind === 'too-large' && canSplit(batch)) {
      await this.#split(batch)
    } else {
      const { error } = answer
      endings.settle(batch, (end) => end.rejected(batch, error))
    }
  }

  /** Keeps in mind, and in the spool, whether the attempt may have succeeded. */
  async #noteOutcome(batch: Batch, mayBeStored: boolean, startedAt: ClockTimes): Promise<void> {
    const { spooling } = this.#parts
    if (mayBeStored) batch.uncertainSince ??= startedAt
    else if (spooling !== undefined) await this.#unlessStopped(spooling.clearAttempt(batch))
  }

  #retry(batch: Batch, failure: Failure): void {
    const { schedule, endings, hooks } = this.#parts
    const delayMs = schedule.fail(batch, failure.retryAfterMs)
    if (typeof delayMs !== 'number' && this.#parts.persistence() === 'retry')
      return endings.settle(batch, (end) => end.dropped(batch, delayMs, failure))
    if (!this.#delay(batch, failure) || typeof delayMs !== 'number') return
    hooks.onRetry({
      reason: failure.reason,
      status: failure.status,
      cause: failure.cause,
      attempt: batch.failedAttempts,
      delayMs,
      entries: batch.count,
      hasReceivedResponse: this.#hasReceivedResponse,
    })
  }

  #waitForOperator(batch: Batch, answer: Misconfiguration): void {
    const { schedule, endings, problem } = this.#parts
    const scope = problem.occur(batch, answer)
    if (scope === 'terminal') {
      const message = `${answer.message}, ${batch.problems} times, while other requests succeeded`
      const error = { path: '', code: `http_${answer.status}`, message }
      return endings.settle(batch, (end) => end.rejected(batch, error))
    }
    const end = schedule.waitForOperator(batch, scope === 'batch')
    // Before the batch is settled: the problem explains its end.
    if (scope === 'all') problem.report(answer)
    const last = { reason: answer.message, cause: undefined }
    if (end !== undefined && this.#parts.persistence() === 'retry')
      endings.settle(batch, (settlements) => settlements.dropped(batch, end, last))
    else this.#delay(batch, last)
  }

  /** @returns false if the batch is given up instead */
  #delay(batch: Batch, last?: { readonly reason: string; readonly cause: unknown }): boolean {
    const { persistence, endings, waiting } = this.#parts
    const isRetried = persistence() === 'retry'
    if (isRetried) waiting.delay(batch)
    else endings.giveUp(batch, last)
    return isRetried
  }

  async #split(batch: Batch): Promise<void> {
    const { spooling, waiting } = this.#parts
    const parts = splitBatch(batch, (key) => spooling?.create(key))
    for (const { record } of parts) {
      if (record !== undefined && spooling !== undefined) await this.#unlessStopped(spooling.written(record))
    }
    if (parts.every(({ record }) => record?.isWritten === true)) void spooling?.remove(batch)
    else void this.#removeAfterParts(batch)
    for (const part of parts) waiting.delay(part)
  }

  /** Of parts that are not in the spool, the whole stays there: the next process splits it again. */
  async #removeAfterParts(batch: Batch): Promise<void> {
    const { kept, dropped } = await batch.settled
    if (kept + dropped === 0) await this.#parts.spooling?.remove(batch)
  }

  /** A disk that hangs must not delay the end of a close. */
  #unlessStopped<Result>(promise: Promise<Result>): Promise<Result | 'stopped'> {
    return unlessStopped(promise, this.#parts.stop)
  }
}

/** A request of the caller must not be split: its parts would have other keys. */
function canSplit({ count, onSettlement }: Batch): boolean {
  return count > 1 && onSettlement === undefined
}
