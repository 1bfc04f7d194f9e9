/** A longer line is cut: it is no JSON then, and its start becomes a message. 16 times the longest message. */
const LINE_CHARACTERS_MAX = 1024 * 1024

/** Splits pieces of text into lines. A line may begin in one piece and end in another. */
export class LineSplitter {
  readonly #charactersMax: number
  #rest = ''

  constructor(charactersMax = LINE_CHARACTERS_MAX) {
    this.#charactersMax = charactersMax
  }

  /** @returns the lines that end in this piece, without empty ones */
  *push(text: string): Generator<string> {
    let start = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      const line = this.#withRest(text, start, end)
      this.#rest = ''
      start = end + 1
      if (line !== '') yield line
    }
    this.#rest = this.#withRest(text, start, text.length)
  }

  /** Skips the lines that end in this piece. @returns how many they are */
  skip(text: string): number {
    let count = 0
    for (const _ of this.push(text)) count += 1
    return count
  }

  /** @returns the last line, if it has no newline at its end */
  *end(): Generator<string> {
    if (this.#rest !== '') yield this.#rest
    this.#rest = ''
  }

  #withRest(text: string, start: number, end: number): string {
    const room = this.#charactersMax - this.#rest.length
    const piece = text.slice(start, Math.min(end, start + room))
    return this.#rest === '' ? piece : this.#rest + piece
  }
}
