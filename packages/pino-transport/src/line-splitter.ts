/** A longer line is cut: it is no JSON then, and its start becomes a message. 16 times the longest message. */
const LINE_CHARACTERS_MAX = 1024 * 1024

/** Splits pieces of the output into lines. A line may begin in one piece and end in another. */
export class LineSplitter {
  #rest = ''

  /** @returns the lines that end in this piece, without empty ones */
  push(piece: string): string[] {
    const lines = `${this.#rest}${piece}`.split('\n').map((line) => line.slice(0, LINE_CHARACTERS_MAX))
    this.#rest = lines.pop() ?? ''
    return lines.filter((line) => line !== '')
  }

  /** @returns the last line, if it has no newline at its end */
  end(): string[] {
    return this.push('\n')
  }
}
