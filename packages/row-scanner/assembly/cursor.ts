import { CARRIAGE_RETURN, NEWLINE, SPACE, TAB } from './bytes'

/** The position in the body. The text ends with a zero, which matches nothing, so that the cursor never passes it. */
export class Cursor {
  static at: i32 = 0
  /** The whitespace that was skipped, in bytes. */
  static blanks: i32 = 0
  /** What must follow at the cursor of an invalid text: one of `faults.ts`. */
  static fault: i32 = 0

  /** Moves to the next byte that is not whitespace. @returns that byte */
  @inline
  static skip(): u8 {
    const byte = load<u8>(Cursor.at)
    return byte > SPACE ? byte : Cursor.skipBlanks()
  }

  static skipBlanks(): u8 {
    const from = Cursor.at
    let at = from
    while (true) {
      const bytes = v128.load(at)
      const isBlank = v128.or(
        v128.or(i8x16.eq(bytes, i8x16.splat(SPACE)), i8x16.eq(bytes, i8x16.splat(NEWLINE))),
        v128.or(i8x16.eq(bytes, i8x16.splat(CARRIAGE_RETURN)), i8x16.eq(bytes, i8x16.splat(TAB))),
      )
      // The highest bits are set, so that there is always one.
      const others = ~i8x16.bitmask(isBlank)
      const count = min(16, ctz(others))
      at += count
      if (count < 16) break
    }
    Cursor.blanks += at - from
    Cursor.at = at
    return load<u8>(at)
  }

  /** Marks the text as invalid. @returns a negative number */
  static fail(at: i32, fault: i32): i32 {
    Cursor.at = at
    Cursor.fault = fault
    return -1
  }

  /** Moves the cursor after four bytes if they are the expected ones, or else to the first that is not. */
  static passWord(found: u32, expected: u32, at: i32, fault: i32): bool {
    if (found === expected) {
      Cursor.at = at + 4
      return true
    }
    Cursor.fail(at + (ctz(found ^ expected) >> 3), fault)
    return false
  }
}
