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
  readonly #pending: Set<Batch>
  readonly #all: Promise<unknown>
  #accepted = 0
  #rejected = 0
  #dropped = 0
  #kept = 0

  constructor(delivery: Delivery) {
    this.#delivery = delivery
    this.#pending = new Set(delivery.unsettled())
    this.#all = Promise.all([...this.#pending].map((batch) => this.#count(batch)))
  }

  async #count(batch: Batch): Promise<void> {
    const { accepted, rejected, dropped, kept } = await batch.settled
    this.#pending.delete(batch)
    this.#accepted += accepted
    this.#rejected += rejected
    this.#dropped += dropped
    this.#kept += kept
  }

  /** Resolves when all are settled. */
  async end(): Promise<void> {
    await this.#all
  }

  /**
   * Resolves when all are settled, or after the timeout.
   *
   * @param endsOnProblem whether to resolve as soon as the API rejects all requests
   */
  async endOrTimeout(
    timeoutMs: number,
    { endsOnProblem }: { readonly endsOnProblem: boolean },
  ): Promise<void> {
    const delivery = this.#delivery
    const { promise: gaveUp, resolve: giveUp } = deferred<void>()
    const giveUpOnProblem = (): void => {
      if (endsOnProblem && delivery.problem !== undefined) giveUp()
    }
    const timer = timeoutMs === Infinity ? undefined : startTimer(giveUp, timeoutMs)
    const unsubscribe = delivery.changes.subscribe(giveUpOnProblem)
    giveUpOnProblem()
    await Promise.race([this.#all, gaveUp])
    clearTimeout(timer)
    unsubscribe()
  }

  result(): FlushResult {
    let pending = this.#kept
    for (const { count } of this.#pending) pending += count
    return {
      accepted: this.#accepted,
      rejected: this.#rejected,
      dropped: this.#dropped,
      pending,
      problem: this.#delivery.problem,
    }
  }
}
