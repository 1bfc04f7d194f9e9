/** A chunk in hand, taken from the queue. */
export interface HeldChunk {
  /** The id of its job. */
  readonly id: string
  readonly rows: number
  /** Bytes of its rows, before compression. */
  readonly bytes: number
  /** zstd. */
  readonly frame: Buffer
}

export interface CollectorLimits {
  readonly rowsMax: number
  readonly bytesMax: number
  readonly waitMs: number
}

/**
 * Collects chunks into batches. Knows no clock, no timer and no network: time comes in as arguments.
 *
 * Empty → collecting (the first chunk came) → due (the rows or bytes are full, the first chunk waited long enough, or
 * the collector was told to flush) → taken, by whoever inserts; what did not fit stays and is collecting.
 */
export class Collector {
  readonly #limits: CollectorLimits
  #chunks: { chunk: HeldChunk; sinceMs: number }[] = []
  #rows = 0
  #bytes = 0
  #flushing = false

  constructor(limits: CollectorLimits) {
    this.#limits = limits
  }

  add(chunk: HeldChunk, nowMs: number): void {
    this.#chunks.push({ chunk, sinceMs: nowMs })
    this.#rows += chunk.rows
    this.#bytes += chunk.bytes
  }

  /** From now on whatever is there is due at once. */
  flush(): void {
    this.#flushing = true
  }

  /** When `take` has something to give if nothing else comes: a time, or undefined while nothing is collected. */
  get dueAtMs(): number | undefined {
    const [first] = this.#chunks
    if (first === undefined) return undefined
    return this.#flushing || this.#isFull ? first.sinceMs : first.sinceMs + this.#limits.waitMs
  }

  /** The batch that is due, if one is: the oldest chunks, as many as the limits allow and at least one. */
  take(nowMs: number): HeldChunk[] | undefined {
    const { dueAtMs } = this
    if (dueAtMs === undefined || dueAtMs > nowMs) return undefined
    let rows = 0
    let bytes = 0
    let count = 0
    for (const { chunk } of this.#chunks) {
      if (
        count > 0 &&
        (rows + chunk.rows > this.#limits.rowsMax || bytes + chunk.bytes > this.#limits.bytesMax)
      )
        break
      rows += chunk.rows
      bytes += chunk.bytes
      count += 1
    }
    this.#rows -= rows
    this.#bytes -= bytes
    return this.#chunks.splice(0, count).map(({ chunk }) => chunk)
  }

  get #isFull(): boolean {
    return this.#rows >= this.#limits.rowsMax || this.#bytes >= this.#limits.bytesMax
  }
}
