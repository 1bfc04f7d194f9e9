/** An entry that was found, without its content. */
export interface Arrival {
  readonly id: string
  readonly receivedAtMs: number
}

/**
 * Remembers which entries were printed: following prints each entry once, however late it is stored.
 *
 * Entries are not stored in the order in which they were received. Several API processes receive them, workers insert
 * them in batches, and a batch may have to wait. Each poll therefore starts at the *floor*, some time before the newest
 * known receive time, and the ids found since then are remembered. Polls never go below the floor. Ids below it need
 * not be remembered, and no entry is printed twice.
 *
 * The newest receive time is taken from the data, not from the clock. After an outage of an hour, the entries of that
 * hour still arrive roughly in the order in which they were received, and the floor waits for them.
 */
export class FollowWindow {
  readonly #overlapMs: number
  readonly #seenMax: number
  /** Receive times by id, in the order in which they were added, which is roughly the order of the times. */
  readonly #seen = new Map<string, number>()
  #newestMs = 0
  #floorMs = 0

  /**
   * @param overlapMs how much later than its neighbours an entry may be stored
   * @param seenMax maximum number of remembered ids; when there are more, the floor rises
   */
  constructor({ overlapMs, seenMax }: { overlapMs: number; seenMax: number }) {
    this.#overlapMs = overlapMs
    this.#seenMax = seenMax
  }

  /** Polls search for entries received at this time or later. */
  get floorMs(): number {
    return this.#floorMs
  }

  /** The newest known receive time. */
  get newestMs(): number {
    return this.#newestMs
  }

  /** The number of remembered ids. */
  get size(): number {
    return this.#seen.size
  }

  /** The number of remembered ids that were received at this time or later. */
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
    this.raiseFloorAbove(oldest[1])
  }

  /** Excludes everything received up to this time from further polls. */
  raiseFloorAbove(receivedAtMs: number): void {
    this.#floorMs = Math.max(this.#floorMs, receivedAtMs + 1)
  }

  /** Call when every entry received up to `newestMs` and stored by now has been added. */
  advance(newestMs: number): void {
    this.#newestMs = Math.max(this.#newestMs, newestMs)
    this.#floorMs = Math.max(this.#floorMs, this.#newestMs - this.#overlapMs)
    for (const [id, receivedAtMs] of this.#seen) {
      if (receivedAtMs >= this.#floorMs) break
      this.#seen.delete(id)
    }
  }
}
