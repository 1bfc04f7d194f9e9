/** The limits of the pace at which one process adds chunks to one queue. */
export const paceLimits = {
  /**
   * Adds per second to one queue that need no pacing. A chunk takes 150 to 350 µs of Redis' single thread until it is completed,
   * so this is a quarter to half of that thread. One process alone adds up to about 1,200, because each add waits for the disk.
   */
  budgetPerS: 1_500,
  /** A client must not notice it. It is reached when about 100 busy processes add to one queue. */
  intervalMaxMs: 50,
} as const

/**
 * How strongly the interval follows the rate. With 12, N busy processes add the budget times the 13th root of N: 24 processes add
 * 1,900 chunks per second. With a lower exponent they add more. With a higher one the intervals overreact to small changes of the
 * rate, and the rate would have to be a mean over a longer time.
 */
const EXPONENT = 12

/** A timer takes at least 1 ms. A shorter wait is not worth it. */
const WAIT_MIN_MS = 0.5

/**
 * The time from the start of one add to the start of the next, ms. It depends only on the rate of all processes. They have
 * therefore equal shares, and no process needs to know the number of the others.
 *
 * Far below the budget the interval is practically zero. At the budget a single process could use the whole budget. Above it,
 * the interval grows steeply.
 *
 * @param addsPerS the rate at which all processes add to one queue
 */
export function addIntervalMs(addsPerS: number): number {
  const { budgetPerS, intervalMaxMs } = paceLimits
  return Math.min(intervalMaxMs, (1_000 / budgetPerS) * (addsPerS / budgetPerS) ** EXPONENT)
}

/** Decides when a writer may start its next add. */
export class AddPace {
  readonly #queue: { readonly addsPerS: number }
  readonly #monotonicMs: () => number
  #startedMs = Number.NEGATIVE_INFINITY

  /** @param queue measures the rate at which all processes add */
  constructor(queue: { readonly addsPerS: number }, monotonicMs: () => number) {
    this.#queue = queue
    this.#monotonicMs = monotonicMs
  }

  /** The next add starts now. */
  start(): void {
    this.#startedMs = this.#monotonicMs()
  }

  /**
   * How long the next add must wait, ms. 0 if it need not.
   *
   * @param intervalMinMs the least time from the start of the last add, whatever the rate is
   */
  waitMs(intervalMinMs = 0): number {
    const intervalMs = Math.max(intervalMinMs, addIntervalMs(this.#queue.addsPerS))
    const waitMs = this.#startedMs + intervalMs - this.#monotonicMs()
    return waitMs < WAIT_MIN_MS ? 0 : waitMs
  }
}
