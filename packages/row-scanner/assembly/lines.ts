import { CARRIAGE_RETURN, NEWLINE } from './bytes'

/** The next line of a text. Lines end with LF or CRLF, optional for the last one. */
export class Line {
  static start: i32 = 0
  /** The place after its last byte, without the end of the line. */
  static end: i32 = 0
  /** The start of the line after it. */
  static next: i32 = 0

  /** Finds the next line that is not empty. @returns false if there is none */
  static find(at: i32, end: i32): bool {
    while (at < end) {
      const newline = newlineFrom(at, end)
      Line.start = at
      Line.end = newline > at && load<u8>(newline - 1) === CARRIAGE_RETURN ? newline - 1 : newline
      Line.next = newline + 1
      if (Line.end > at) return true
      at = Line.next
    }
    return false
  }
}

/** The place of the next newline, or `end`. */
export function newlineFrom(at: i32, end: i32): i32 {
  for (; at < end; at += 16) {
    const bits = i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(NEWLINE)))
    if (bits !== 0) return min(at + ctz(bits), end)
  }
  return end
}
