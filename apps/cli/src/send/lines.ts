import { isUtf8 } from 'node:buffer'

/** A line of a file, without its line ending. */
export interface Line {
  /** Starts at 1. */
  readonly number: number
  /** Undefined if the line exceeds the limit; its bytes were discarded. */
  readonly text: string | undefined
  /** The size in the input, with the line ending. */
  readonly bytes: number
  /** Whether the line was valid UTF-8. Invalid bytes are replaced by U+FFFD. */
  readonly wasUtf8: boolean
}

const NUL = 0
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const BYTE_ORDER_MARK = '\uFEFF'

/**
 * Splits a stream of bytes into lines that end in LF or CRLF. Buffers at most one line.
 *
 * NUL bytes before a line do not belong to it: a program that keeps its offset in a file that is emptied leaves a hole in it,
 * of any size, and so does a power failure.
 *
 * @param lineBytesMax longer lines are yielded without their text
 */
export class LineSplitter {
  readonly #lineBytesMax: number
  #pieces: Buffer[] = []
  #bytes = 0
  /** The bytes before the line. */
  #holeBytes = 0
  #lines = 0

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax
  }

  /** Yields the lines that end in this piece of the stream. */
  *push(bytes: Buffer): Generator<Line> {
    let from = 0
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, from)) {
      this.#append(bytes.subarray(from, end))
      yield this.#finishLine(1)
      from = end + 1
    }
    this.#append(bytes.subarray(from))
  }

  /** Yields the last line, if the stream does not end with a newline. */
  *end(): Generator<Line> {
    if (this.#bytes > 0) yield this.#finishLine(0)
  }

  #append(text: Buffer): void {
    let piece = text
    if (this.#bytes === 0 && text[0] === NUL) {
      const start = text.findIndex((byte) => byte !== NUL)
      piece = text.subarray(start === -1 ? text.length : start)
      this.#holeBytes += text.length - piece.length
    }
    this.#bytes += piece.length
    // One byte more than the limit: a carriage return at the end does not count.
    if (this.#bytes > this.#lineBytesMax + 1) this.#pieces = []
    else if (piece.length > 0) this.#pieces.push(piece)
  }

  #finishLine(newlineBytes: number): Line {
    const [only] = this.#pieces
    const joined = this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces)
    const bytes = joined.at(-1) === CARRIAGE_RETURN ? joined.subarray(0, -1) : joined
    const isTooLong = this.#bytes > joined.length || bytes.length > this.#lineBytesMax
    const inputBytes = this.#holeBytes + this.#bytes + newlineBytes
    this.#holeBytes = 0
    this.#pieces = []
    this.#bytes = 0
    this.#lines += 1
    const number = this.#lines
    if (isTooLong) return { number, text: undefined, bytes: inputBytes, wasUtf8: true }
    const text = bytes.toString('utf8')
    const hasByteOrderMark = number === 1 && text.startsWith(BYTE_ORDER_MARK)
    return {
      number,
      text: hasByteOrderMark ? text.slice(1) : text,
      bytes: inputBytes,
      wasUtf8: isUtf8(bytes),
    }
  }
}
