/** A longer line is cut: it is no JSON then, and its start becomes a message. 16 times the longest message. */
const LINE_CHARACTERS_MAX = 1024 * 1024

/** Splits pieces of the output into lines. A line may begin in one piece and end in another. */
export class LineSplitter {
  readonly #charactersMax: number
  #rest = ''

  constructor(charactersMax = LINE_CHARACTERS_MAX) {
    this.#charactersMax = charactersMax
  }

  /** @returns the lines that end in this piece, without empty ones */
  *push(piece: string): Generator<string> {
    let start = 0
    for (let end = piece.indexOf('\n'); end >= 0; end = piece.indexOf('\n', start)) {
      const line = this.#withRest(piece, start, end)
      this.#rest = ''
      start = end + 1
      if (line !== '') yield line
    }
    this.#rest = this.#withRest(piece, start, piece.length)
  }

  /** Skips the lines that end in this piece. @returns how many they are */
  skip(piece: string): number {
    let count = 0
    for (const _ of this.push(piece)) count += 1
    return count
  }

  /** @returns the last line, if it has no newline at its end */
  *end(): Generator<string> {
    if (this.#rest !== '') yield this.#rest
    this.#rest = ''
  }

  #withRest(piece: string, start: number, end: number): string {
    const room = this.#charactersMax - this.#rest.length
    const part = piece.slice(start, Math.min(end, start + room))
    return this.#rest === '' ? part : this.#rest + part
  }
}
