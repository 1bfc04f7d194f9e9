import { randomUUID } from 'node:crypto'

/** How many ids one millisecond has room for, in the 12 bits that RFC 9562 leaves for it. */
const IDS_PER_MS = 4_096

const HEX_DIGITS = Buffer.from('0123456789abcdef')
/** A UUID as text. */
export const ID_BYTES = 36
/** Where the counter's three digits are in it. */
const COUNTER_AT = 15

/**
 * A source of UUIDv7s that sort, as text, in the order in which they were made: milliseconds, a counter, 62 random bits
 * (RFC 9562, section 6.2, method 1). When a millisecond has no room left, or the clock goes back, the ids run ahead of it.
 *
 * The random bits are drawn once a millisecond: that tells processes apart as well, and ids that differ in three digits
 * take next to no room once compressed.
 */
export class IdSource {
  readonly #now: () => number
  readonly #latest = Buffer.alloc(ID_BYTES)
  #lastMs = 0
  #counter = 0

  /** @param now the clock, in ms since 1970 */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Makes an id. */
  next(): string {
    this.#advance()
    return this.#latest.toString('latin1')
  }

  /** Makes an id, and writes its `ID_BYTES` into a memory. */
  write(memory: Uint8Array, at: number): void {
    this.#advance()
    const latest = this.#latest
    for (let i = 0; i < ID_BYTES; i += 1) memory[at + i] = latest[i] ?? 0
  }

  #advance(): void {
    const nowMs = this.#now()
    this.#counter += 1
    if (nowMs > this.#lastMs || this.#counter === IDS_PER_MS) {
      this.#lastMs = Math.max(nowMs, this.#lastMs + 1)
      this.#counter = 0
      const hex = this.#lastMs.toString(16).padStart(12, '0')
      // The last 17 characters of a random UUID are its variant and 62 random bits.
      this.#latest.write(`${hex.slice(0, 8)}-${hex.slice(8)}-7000-${randomUUID().slice(19)}`, 'latin1')
    }
    const latest = this.#latest
    latest[COUNTER_AT] = HEX_DIGITS[this.#counter >> 8] ?? 0
    latest[COUNTER_AT + 1] = HEX_DIGITS[(this.#counter >> 4) & 15] ?? 0
    latest[COUNTER_AT + 2] = HEX_DIGITS[this.#counter & 15] ?? 0
  }
}

/** When an id of an `IdSource` was made, in ms since 1970: its first 48 bits (RFC 9562, section 5.7). */
export function idTimeMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
