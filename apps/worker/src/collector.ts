import type { HeldChunk } from '@sluice/queue'

export interface CollectorLimits {
  readonly chunksMax: number
  readonly rowsMax: number
  readonly bytesMax: number
  readonly waitMs: number
}

/**
 * Collects chunks into batches. Empty → collecting (the first chunk arrived) → due (chunks, rows or bytes are full, the first chunk waited long
 * enough, or `flush` was called) → taken by the caller. Chunks that did not fit stay, and are collecting.
 */
export class Collector {
  readonly #limits: CollectorLimits
  #chunks: { chunk: HeldChunk; sinceMs: number; isApart: boolean }[] = []
  #isApartNext = false
  #flushing = false

  constructor(limits: CollectorLimits) {
    this.#limits = limits
  }

  /** @param isApart whether the batch of this chunk may only contain such chunks */
  add(chunk: HeldChunk, nowMs: number, isApart = false): void {
    this.#chunks.push({ chunk, sinceMs: nowMs, isApart })
  }

  /** From now on, collected chunks are due at once. */
  flush(): void {
    this.#flushing = true
  }

  /** The time at which `take` returns a batch if no more chunks arrive. Undefined while nothing is collected. */
  get dueAtMs(): number | undefined {
    const [first] = this.#chunks
    if (first === undefined) return undefined
    return this.#flushing || this.#fitting.isFull ? first.sinceMs : first.sinceMs + this.#limits.waitMs
  }

  /**
   * Removes and returns the batch that is due, if any: the oldest chunks, as many as the limits allow and at least one. If only some of
   * them are apart, those or the others, in turn. The rest is due at once.
   */
  take(nowMs: number): HeldChunk[] | undefined {
    const { dueAtMs } = this
    if (dueAtMs === undefined || dueAtMs > nowMs) return undefined
    const oldest = this.#chunks.splice(0, this.#fitting.count)
    const isMixed = oldest.some(({ isApart }) => isApart !== oldest[0]?.isApart)
    const taken = isMixed ? oldest.filter(({ isApart }) => isApart === this.#isApartNext) : oldest
    if (isMixed) this.#chunks.unshift(...oldest.filter(({ isApart }) => isApart !== this.#isApartNext))
    this.#isApartNext = isMixed && !this.#isApartNext
    return taken.map(({ chunk }) => chunk)
  }

  /** Removes and returns everything that is collected. */
  takeAll(): HeldChunk[] {
    return this.#chunks.splice(0).map(({ chunk }) => chunk)
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0
  }

  /** How many of the oldest chunks are the next batch, and whether it has no room for another one. */
  get #fitting(): { readonly count: number; readonly isFull: boolean } {
    const { chunksMax, rowsMax, bytesMax } = this.#limits
    let [count, rows, bytes] = [0, 0, 0]
    for (const { chunk } of this.#chunks) {
      rows += chunk.rows
      bytes += chunk.bytes
      const isTooMuch = count === chunksMax || rows > rowsMax || bytes > bytesMax
      if (isTooMuch && count > 0) return { count, isFull: true }
      count += 1
    }
    return { count, isFull: count >= chunksMax || rows >= rowsMax || bytes >= bytesMax }
  }
}

export type HeldBudget = ReturnType<typeof heldBudget>

/**
 * A limit that several shards share. Half of it is divided equally, so that each shard has a part that no other can use: a shard whose
 * Redis is unavailable keeps what it has. The other half is for whichever shard needs it.
 */
export function heldBudget(total: number) {
  const heldBy: number[] = []

  function room(shard: number): number {
    const reserved = total / 2 / heldBy.length
    const shared = heldBy.reduce((left, held) => left - Math.max(0, held - reserved), total / 2)
    return Math.floor(Math.max(0, reserved - (heldBy[shard] ?? 0)) + Math.max(0, shared))
  }

  return {
    /** Adds a shard. It sets how much it holds, and learns how much more it may hold. */
    share(): HeldShare {
      const shard = heldBy.push(0) - 1
      return { set: (held) => void (heldBy[shard] = held), room: () => room(shard) }
    },
  }
}

export interface HeldShare {
  set(held: number): void
  room(): number
}
