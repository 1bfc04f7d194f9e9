/**
 * A pause of all sending, after a failure that others would probably share.
 *
 * sending → paused (until a time) → sending. A success ends the pause that the client chose, never one that the API asked for.
 */
export class Pause {
  /** The end of the pause that the client chose. */
  #ownUntilMs = 0
  /** The end of the pause that the API asked for. */
  #requestedUntilMs = 0
  #failuresInRow = 0

  get untilMs(): number {
    return Math.max(this.#ownUntilMs, this.#requestedUntilMs)
  }

  /** Whether nothing has succeeded since the last failure. */
  get isFailing(): boolean {
    return this.#failuresInRow > 0
  }

  /** How many failures there were without a success, those during a pause not counted. */
  countFailure(nowMs: number): number {
    if (nowMs >= this.untilMs) this.#failuresInRow += 1
    return Math.max(1, this.#failuresInRow)
  }

  extend(untilMs: number): void {
    this.#ownUntilMs = Math.max(this.#ownUntilMs, untilMs)
  }

  extendRequested(untilMs: number): void {
    this.#requestedUntilMs = Math.max(this.#requestedUntilMs, untilMs)
  }

  succeed(): void {
    this.#failuresInRow = 0
    this.resume()
  }

  resume(): void {
    this.#ownUntilMs = 0
  }
}
