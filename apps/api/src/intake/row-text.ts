import { type Owned, ownedRows, type Rows } from '@sluice/row-scanner'

/** Rows are encoded in parts of this many characters: one text of all rows of a large request would take longer than a slice. */
const PART_CHARACTERS = 262_144

/** Gathers the rows of a request. */
export class RowText {
  count = 0
  /** Of all rows: at most the number of bytes. */
  characters = 0
  #text = ''
  /** The number of rows in `#text`. */
  #textCount = 0
  readonly #parts: Rows<Owned>[] = []

  add(row: string): void {
    this.count += 1
    this.characters += row.length
    this.#text += row
    this.#textCount += 1
    if (this.#text.length > PART_CHARACTERS) this.#encode()
  }

  addRows(rows: Rows<Owned>): void {
    this.#encode()
    this.count += rows.count
    this.characters += rows.byteLength
    this.#parts.push(rows)
  }

  /** All rows. */
  take(): Rows<Owned> {
    this.#encode()
    const [first] = this.#parts
    if (first !== undefined && this.#parts.length === 1) return first
    const bytes = Buffer.allocUnsafeSlow(this.#parts.reduce((sum, { byteLength }) => sum + byteLength, 0))
    let at = 0
    for (const part of this.#parts) {
      part.copyTo(bytes, at)
      at += part.byteLength
    }
    return ownedRows(this.count, bytes)
  }

  #encode(): void {
    if (this.#textCount === 0) return
    this.#parts.push(ownedRows(this.#textCount, Buffer.from(this.#text)))
    this.#text = ''
    this.#textCount = 0
  }
}
