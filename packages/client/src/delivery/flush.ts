import type { SluiceError } from '../sluice-error.ts'
import { deferred } from '../deferred.ts'
import { startTimer } from '../timers.ts'
import type { Batch } from './batch.ts'
import type { Delivery } from './delivery.ts'

export interface FlushOptions {
  /** Default of `flush`: without an end. Default of `close`: 10 s. */
  readonly timeoutMs?: number | undefined
}

/**
 * What became of the entries that were in the queue. Entries that were logged later and travel in the same request are counted too.
 */
export interface FlushResult {
  readonly accepted: number
  readonly rejected: number
  readonly dropped: number
  /** Still in the queue. After `close`, in the spool for the next process. */
  readonly pending: number
  /** Why the API rejects all requests. */
  readonly problem: SluiceError | undefined
}

/** Counts what becomes of the batches that are not settled now. */
export class SettledCounts {
  readonly #delivery: Delivery
  readonly #batches: readonly Batch[]
  /** How many of the first batches are known to be settled. */
  #settled = 0

  constructor(delivery: Delivery) {
    this.#delivery = delivery
    this.#batches = delivery.unsettled()
  }

  /** Resolves when all are settled. */
  end(): Promise<void> {
    return this.endOrTimeout(Infinity, { endsOnProblem: 'never' })
  }

  /**
   * Resolves when all are settled, or after the timeout.
   *
   * @param endsOnProblem whether to resolve as soon as the API rejects all requests: as far as it is known already, or only if it answers so
   *   from now on
   */
  async endOrTimeout(
    timeoutMs: number,
    { endsOnProblem }: { readonly endsOnProblem: 'known' | 'new' | 'never' },
  ): Promise<void> {
    const delivery = this.#delivery
    const { promise: ended, resolve: end } = deferred<void>()
    const occurrencesMin = { known: 0, new: delivery.problemOccurrences + 1, never: Infinity }[endsOnProblem]
    const check = (): void => {
      const hasProblem = delivery.problem !== undefined && delivery.problemOccurrences >= occurrencesMin
      if (hasProblem || this.#areAllSettled()) end()
    }
    const timer = timeoutMs === Infinity ? undefined : startTimer(end, timeoutMs)
    // Not with the promises of the batches: what waits for a promise stays in memory until it is settled, and an outage may be long.
    const unsubscribe = delivery.changes.subscribe(check)
    check()
    await ended
    clearTimeout(timer)
    unsubscribe()
  }

  #areAllSettled(): boolean {
    const rest = (): Batch | undefined => this.#batches[this.#settled]
    for (let batch = rest(); batch !== undefined && isSettled(batch); batch = rest()) this.#settled += 1
    return this.#settled === this.#batches.length
  }

  result(): FlushResult {
    const sums = { accepted: 0, rejected: 0, dropped: 0, pending: 0 }
    for (const batch of this.#batches) addResult(sums, batch)
    return { ...sums, problem: this.#delivery.problem }
  }
}

/** A batch that was split is settled with its parts. */
function isSettled({ result, parts }: Batch): boolean {
  return result !== undefined || (parts.length > 0 && parts.every(isSettled))
}

type Sums = { -readonly [Name in Exclude<keyof FlushResult, 'problem'>]: number }

function addResult(sums: Sums, { result, parts, count }: Batch): void {
  // Of a batch that was split, one half may be settled.
  if (result === undefined && parts.length > 0) for (const part of parts) addResult(sums, part)
  else if (result === undefined) sums.pending += count
  else {
    sums.accepted += result.accepted
    sums.rejected += result.rejected
    sums.dropped += result.dropped
    sums.pending += result.kept
  }
}
