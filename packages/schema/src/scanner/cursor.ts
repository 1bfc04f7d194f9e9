import { BLANK, SPACE } from './bytes.ts'

/** A place in a text of JSON, which lies at the start of a memory and ends with a zero: nothing beyond it
 * is taken for a match. */
export class Cursor {
  readonly memory: Buffer
  at = 0

  constructor(memory: Buffer) {
    this.memory = memory
  }

  /** Goes on to the next byte that is not blank, and returns it. */
  next(): number {
    const byte = this.memory[this.at] ?? 0
    // Most JSON has no blanks.
    return byte > SPACE ? byte : this.#passBlanks()
  }

  #passBlanks(): number {
    const { memory } = this
    while (BLANK[memory[this.at] ?? 0] === 1) this.at += 1
    return memory[this.at] ?? 0
  }

  /** As `next`, from the byte after this one. */
  skip(): number {
    this.at += 1
    return this.next()
  }

  /** Whether these bytes are at a place. */
  has(bytes: Uint8Array, at: number): boolean {
    const { memory } = this
    for (let i = 0; i < bytes.length; i += 1) if (memory[at + i] !== bytes[i]) return false
    return true
  }
}
