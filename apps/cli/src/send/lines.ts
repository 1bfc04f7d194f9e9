import { isUtf8 } from 'node:buffer'

/** A line of a file, without its end. */
export interface Line {
  /** From 1. */
  readonly number: number
  /** Undefined when the line is longer than allowed; it was not kept. */
  readonly text: string | undefined
  /** Whether it was UTF-8. What was not is replaced by U+FFFD. */
  readonly wasUtf8: boolean
}

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const BYTE_ORDER_MARK = '\uFEFF'

/**
 * Cuts a stream of bytes into lines that end in LF or CRLF. Keeps at most the bytes of one line.
 *
 * @param lineBytesMax of longer lines, only that they were there is told
 */
export class LineSplitter {
  readonly #lineBytesMax: number
  #pieces: Buffer[] = []
  #bytes = 0
  #lines = 0

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax
  }

  /** The lines that end in this chunk. */
  *push(chunk: Buffer): Generator<Line> {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, end))
      yield this.#take()
      from = end + 1
    }
    this.#keep(chunk.subarray(from))
  }

  /** The last line, if the stream does not end in a newline. */
  *end(): Generator<Line> {
    if (this.#bytes > 0) yield this.#take()
  }

  #keep(piece: Buffer): void {
    this.#bytes += piece.length
    // One more for a carriage return, which does not count.
    if (this.#bytes > this.#lineBytesMax + 1) this.#pieces = []
    else if (piece.length > 0) this.#pieces.push(piece)
  }

  #take(): Line {
    const [only] = this.#pieces
    const joined = this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces)
    const bytes = joined.at(-1) === CARRIAGE_RETURN ? joined.subarray(0, -1) : joined
    const isTooLong = this.#bytes > joined.length || bytes.length > this.#lineBytesMax
    this.#pieces = []
    this.#bytes = 0
    this.#lines += 1
    const number = this.#lines
    if (isTooLong) return { number, text: undefined, wasUtf8: true }
    const text = bytes.toString('utf8')
    const isMarked = number === 1 && text.startsWith(BYTE_ORDER_MARK)
    return { number, text: isMarked ? text.slice(1) : text, wasUtf8: isUtf8(bytes) }
  }
}
