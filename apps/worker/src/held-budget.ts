/**
 * A limit that several shards share. Half of it is divided equally, so that each shard has a part that no other can use: a shard whose
 * Redis is unavailable keeps what it has. The other half is for whichever shard needs it.
 */
export class HeldBudget {
  readonly #total: number
  readonly #held: number[] = []

  constructor(total: number) {
    this.#total = total
  }

  /** Adds a shard. */
  share(): HeldShare {
    const shard = this.#held.push(0) - 1
    return {
      set: (held) => void (this.#held[shard] = held),
      room: () => this.#room(shard),
    }
  }

  #room(shard: number): number {
    const reserved = this.#total / 2 / this.#held.length
    const shared = this.#held.reduce((left, held) => left - Math.max(0, held - reserved), this.#total / 2)
    return Math.floor(Math.max(0, reserved - (this.#held[shard] ?? 0)) + Math.max(0, shared))
  }
}

/** A shard's part of a budget. */
export interface HeldShare {
  /** Sets how much the shard holds. */
  set(held: number): void
  /** How much more it may hold. */
  room(): number
}
