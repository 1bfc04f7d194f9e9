import { CARRIAGE_RETURN, NEWLINE, SPACE, TAB } from './bytes'

/** A place in the body, which ends with a zero: nothing beyond it is taken for a match. */
export class Cursor {
  static at: i32 = 0
  /** Where the last line end was that was passed between tokens. */
  static lineEnd: i32 = 0

  /** Goes on to the next byte that is not blank, and returns it. */
  static next(): u8 {
    const byte = load<u8>(Cursor.at)
    // Most JSON has no blanks.
    return byte > SPACE ? byte : Cursor.passBlanks()
  }

  /** As `next`, from the byte after this one. */
  static skip(): u8 {
    Cursor.at += 1
    return Cursor.next()
  }

  private static passBlanks(): u8 {
    let at = Cursor.at
    let byte = load<u8>(at)
    while (byte === SPACE || byte === NEWLINE || byte === TAB || byte === CARRIAGE_RETURN) {
      if (byte === NEWLINE) Cursor.lineEnd = at
      at += 1
      byte = load<u8>(at)
    }
    Cursor.at = at
    return byte
  }
}
