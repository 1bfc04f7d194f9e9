/** Rows are encoded in parts of this many characters: one text of all rows of a large request would take longer than a slice. */
const PART_CHARACTERS = 262_144

/** Gathers the rows of a request. */
export class RowText {
  count = 0
  /** Of all rows, in UTF-16: at most the number of bytes. */
  characters = 0
  #text = ''
  readonly #parts: Buffer[] = []

  add(row: string): void {
    this.count += 1
    this.characters += row.length
    this.#text += row
    if (this.#text.length > PART_CHARACTERS) this.#encode()
  }

  /** All rows, in UTF-8. */
  take(): Buffer {
    this.#encode()
    const [first] = this.#parts
    return first !== undefined && this.#parts.length === 1 ? first : Buffer.concat(this.#parts)
  }

  #encode(): void {
    this.#parts.push(Buffer.from(this.#text))
    this.#text = ''
  }
}
