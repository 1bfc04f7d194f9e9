/**
 * A pause of all sending, after a failure that others would probably share.
 *
 * sending → paused (until a time) → sending. A success ends a pause, except one that the API asked for.
 */
export class Pause {
  #untilMs = 0
  #isRequested = false
  #failuresInRow = 0

  get untilMs(): number {
    return this.#untilMs
  }

  /** How many failures there were without a success, those during a pause not counted. */
  countFailure(nowMs: number): number {
    if (nowMs >= this.#untilMs) this.#failuresInRow += 1
    return Math.max(1, this.#failuresInRow)
  }

  extend(untilMs: number, isRequested: boolean): void {
    if (untilMs <= this.#untilMs) return
    this.#untilMs = untilMs
    this.#isRequested = isRequested
  }

  succeed(): void {
    this.#failuresInRow = 0
    if (!this.#isRequested) this.#untilMs = 0
  }
}
