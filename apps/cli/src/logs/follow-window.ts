/** An entry that was found, without its contents. */
export interface Arrival {
  readonly id: string
  readonly receivedAtMs: number
}

/**
 * Remembers which entries were shown, so that following shows each once, however late it comes.
 *
 * Entries are not stored in the order of their receipt: several API processes receive them, workers insert them in
 * batches, and one batch may have to wait. So each look starts a while before the newest receipt that is known, at the
 * *floor*, and the ids found since then are remembered. What was received before the floor is never looked at again, so
 * nothing below it needs to be remembered, and nothing is shown twice.
 *
 * The newest receipt is one of the data, not the clock's: after an hour's outage the entries of that hour still come in
 * about the order of their receipt, and the floor waits for them.
 */
export class FollowWindow {
  readonly #overlapMs: number
  readonly #seenMax: number
  /** In the order in which they were added, which is about that of their receipt. */
  readonly #seen = new Map<string, number>()
  #newestMs = 0
  #floorMs = 0

  /**
   * @param overlapMs how much later than its neighbours an entry may be stored
   * @param seenMax how many ids are remembered; when there are more, the floor rises
   */
  constructor({ overlapMs, seenMax }: { overlapMs: number; seenMax: number }) {
    this.#overlapMs = overlapMs
    this.#seenMax = seenMax
  }

  /** Entries received from this time on are looked at. */
  get floorMs(): number {
    return this.#floorMs
  }

  /** The newest receipt that is known. */
  get newestMs(): number {
    return this.#newestMs
  }

  /** How many ids are remembered. */
  get size(): number {
    return this.#seen.size
  }

  /** How many of the ids that are remembered were received since then. */
  countSince(fromMs: number): number {
    let count = 0
    for (const receivedAtMs of this.#seen.values()) if (receivedAtMs >= fromMs) count += 1
    return count
  }

  has(id: string): boolean {
    return this.#seen.has(id)
  }

  add({ id, receivedAtMs }: Arrival): void {
    if (receivedAtMs < this.#floorMs) return
    this.#seen.set(id, receivedAtMs)
    if (this.#seen.size <= this.#seenMax) return
    const [oldest] = this.#seen
    if (oldest === undefined) return
    this.#seen.delete(oldest[0])
    this.raise(oldest[1])
  }

  /** Gives up what was received until this time: it is not looked at again. */
  raise(receivedAtMs: number): void {
    this.#floorMs = Math.max(this.#floorMs, receivedAtMs + 1)
  }

  /** All that was received until `newestMs` and is stored by now has been added. */
  advance(newestMs: number): void {
    this.#newestMs = Math.max(this.#newestMs, newestMs)
    this.#floorMs = Math.max(this.#floorMs, this.#newestMs - this.#overlapMs)
    for (const [id, receivedAtMs] of this.#seen) {
      if (receivedAtMs >= this.#floorMs) break
      this.#seen.delete(id)
    }
  }
}
