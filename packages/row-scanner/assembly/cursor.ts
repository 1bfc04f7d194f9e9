import { CARRIAGE_RETURN, NEWLINE, SPACE, TAB } from './bytes'

/** The position in the body. The body ends with a zero, which matches nothing, so that the cursor never passes it. */
export class Cursor {
  static at: i32 = 0
  /** The position of the last newline that was skipped between tokens. */
  static lineEnd: i32 = 0

  /** Moves to the next byte that is not whitespace, and returns it. */
  static next(): u8 {
    const byte = load<u8>(Cursor.at)
    // Most JSON has no whitespace.
    return byte > SPACE ? byte : Cursor.passBlanks()
  }

  /** Like `next`, but starts at the following byte. */
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
