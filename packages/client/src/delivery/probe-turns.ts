/** Short waits come first after a failure: the fourth probe is a few seconds later. */
const INTERVAL_MIN = 4
/** Several minutes, with the longest waits between two probes. */
const INTERVAL_MAX = 32

/**
 * Which kind of request finds out whether the API works again. One that may be stored already costs nothing more if its answer is lost too. But
 * such requests may be at fault themselves, all of them. So after some probes, the turn is that of a request that was not tried yet.
 *
 * The number of probes from one such turn to the next doubles: in a long outage, each of them could cost a request.
 */
export class ProbeTurns {
  #interval = INTERVAL_MIN
  #left = INTERVAL_MIN

  get isOfUntried(): boolean {
    return this.#left === 1
  }

  /** Ends the turn. */
  next(): void {
    this.#left -= 1
    if (this.#left > 0) return
    this.#interval = Math.min(2 * this.#interval, INTERVAL_MAX)
    this.#left = this.#interval
  }

  /** A request has succeeded. */
  reset(): void {
    this.#interval = INTERVAL_MIN
    this.#left = INTERVAL_MIN
  }
}
