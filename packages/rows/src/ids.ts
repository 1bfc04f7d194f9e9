import { randomUUID } from 'node:crypto'

/** The number of ids per millisecond: RFC 9562 leaves 12 bits for a counter. */
export const IDS_PER_MS = 4_096

/** The position of the counter's three digits in a UUID. */
const COUNTER_AT = 15

/**
 * Makes UUIDv7s whose strings sort in the order of their creation: milliseconds, a counter, 62 random bits (RFC 9562, section 6.2,
 * method 1). If a millisecond has no ids left, or the clock goes back, the ids run ahead of the clock. The random bits are drawn once per
 * millisecond: ids that differ only in three digits take almost no space after compression.
 */
export class IdSource {
  readonly #now: () => number
  /** The first id of the millisecond. */
  #first = ''
  #lastMs = 0
  #counter = 0

  /** @param now the clock, in ms since 1970 */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Makes an id. */
  next(): string {
    const nowMs = this.#now()
    this.#counter += 1
    if (nowMs > this.#lastMs || this.#counter === IDS_PER_MS) {
      this.#lastMs = Math.max(nowMs, this.#lastMs + 1)
      this.#counter = 0
      const hex = this.#lastMs.toString(16).padStart(12, '0')
      // The last 17 characters of a random UUID are its variant and 62 random bits.
      this.#first = `${hex.slice(0, 8)}-${hex.slice(8)}-7000-${randomUUID().slice(19)}`
    }
    return withCounter(this.#first, this.#counter)
  }

  /** Reserves all ids of a millisecond. Returns the first of them: `withCounter` makes the others. */
  reserve(): string {
    this.#counter = IDS_PER_MS - 1
    const id = this.next()
    this.#counter = IDS_PER_MS - 1
    return id
  }
}

/** An id of a millisecond. @param first the one that was reserved */
export function withCounter(first: string, counter: number): string {
  return first.slice(0, COUNTER_AT) + counter.toString(16).padStart(3, '0') + first.slice(COUNTER_AT + 3)
}

/** The creation time of an id from `IdSource`, in ms since 1970: its first 48 bits (RFC 9562, section 5.7). */
export function idTimeMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
