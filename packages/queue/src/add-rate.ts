/**
 * Answers that are closer together are not compared, since the counter grows in steps, and the event loop delays answers by some
 * milliseconds.
 */
const SAMPLE_MS = 50
/**
 * The rate is a mean over this time. It is much longer than the time in which a process follows a new rate, which is one sample and
 * one interval between adds. Otherwise all processes together would slow down and speed up in turns.
 */
const MEAN_MS = 1_000
/**
 * A higher rate counts as this one. It is more than Redis can add: only another counter, after a failover, or an answer that was
 * read late shows such a rate.
 */
const ADDS_PER_S_MAX = 10_000

/**
 * The rate at which all processes together add chunks to a queue, measured by one of them. Redis counts the adds, and this process
 * reads the counter with each answer to its own adds. It measures the rate again when it adds, however rarely that is.
 */
export class AddRate {
  #last: { readonly count: number; readonly atMs: number } | undefined
  /** The time that the mean covers. */
  #coveredMs = 0
  #perS = 0

  /** Adds per second. 0 before the second answer. */
  get perS(): number {
    return this.#perS
  }

  /**
   * @param count how many adds Redis has counted
   * @param atMs when this was answered, by the monotonic clock of the process: no change of Redis' clock matters
   */
  record(count: number, atMs: number): void {
    const last = this.#last
    if (last !== undefined && count >= last.count) {
      const elapsedMs = atMs - last.atMs
      if (elapsedMs < SAMPLE_MS) return
      this.#coveredMs = Math.min(this.#coveredMs + elapsedMs, MEAN_MS)
      const perS = Math.min(((count - last.count) * 1_000) / elapsedMs, ADDS_PER_S_MAX)
      this.#perS += (perS - this.#perS) * Math.min(1, elapsedMs / this.#coveredMs)
    }
    // A smaller count is that of another counter: Redis was emptied, or another server has taken over.
    this.#last = { count, atMs }
  }
}
