import { CARRIAGE_RETURN, NEWLINE } from './bytes'
import { BODY } from './memory'

/** The lines of the body. They end with LF or CRLF, optional for the last one. */
export class Line {
  static start: i32 = 0
  /** The place after its last byte, without the end of the line. A zero is there, so that a line may be a text. */
  static end: i32 = 0
  private static next: i32 = 0
  private static bodyEnd: i32 = 0

  static begin(bytes: i32): void {
    Line.next = BODY
    Line.bodyEnd = BODY + bytes
  }

  /** Finds the next line that is not empty. @returns false if there is none */
  static find(): bool {
    while (Line.next < Line.bodyEnd) {
      const start = Line.next
      const newline = newlineFrom(start, Line.bodyEnd)
      const end = newline > start && load<u8>(newline - 1) === CARRIAGE_RETURN ? newline - 1 : newline
      store<u8>(end, 0)
      Line.start = start
      Line.end = end
      Line.next = newline + 1
      if (end > start) return true
    }
    return false
  }
}

/** The place of the next newline, or `end`. */
function newlineFrom(at: i32, end: i32): i32 {
  for (; at < end; at += 16) {
    const bits = i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(NEWLINE)))
    if (bits !== 0) return min(at + ctz(bits), end)
  }
  return end
}
