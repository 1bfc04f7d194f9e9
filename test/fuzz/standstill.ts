const INTERVAL_MS = 250
/** A turn of the fuzzer takes some milliseconds, a long one of a busy machine some hundred. */
const STANDSTILL_MS = 3_000

/**
 * Notices when this process did not run: a machine that was suspended, or another's measurement that had everything
 * stopped. What was late around then says nothing about the API.
 */
export class StandstillWatch {
  /** How long each lasted, ms. */
  readonly standstillsMs: number[] = []
  #seenAtMs = performance.now()
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#timer = setInterval(() => this.#look(), INTERVAL_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const nowMs = performance.now()
    const lateMs = nowMs - this.#seenAtMs - INTERVAL_MS
    if (lateMs > STANDSTILL_MS) this.standstillsMs.push(Math.round(lateMs))
    this.#seenAtMs = nowMs
  }
}
