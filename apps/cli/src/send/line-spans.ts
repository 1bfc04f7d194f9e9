/**
 * The last lines of the entries that are made of several, by their first lines. The sender only knows the first.
 *
 * Bounded: the entries in flight are a few hundred, and older ones are forgotten.
 */
export class LineSpans {
  readonly #lastLines = new Map<number, number>()

  add(firstLine: number, lastLine: number): void {
    if (firstLine === lastLine) return
    this.#lastLines.set(firstLine, lastLine)
    if (this.#lastLines.size <= SPANS_MAX) return
    for (const oldest of this.#lastLines.keys()) {
      this.#lastLines.delete(oldest)
      break
    }
  }

  lastLineOf(firstLine: number): number {
    return this.#lastLines.get(firstLine) ?? firstLine
  }
}

/** Many times the entries that can be in flight. */
const SPANS_MAX = 16_384
