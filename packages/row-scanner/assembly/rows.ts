import { BACKSLASH, copy, NEWLINE, TAB } from './bytes'
import { Ids } from './ids'
import { RECEIVED_AT, ROW_START, ROWS } from './memory'
import { Escape, writeCharacter } from './strings'
import { writeTime } from './timestamps'

const LETTER_T: u8 = 0x74
const LETTER_N: u8 = 0x6e

/** The rows of a body, in ClickHouse's TabSeparated format. */
export class Rows {
  static end: i32 = ROWS
  static count: i32 = 0
  private static startBytes: i32 = 0
  private static receivedAtBytes: i32 = 0

  /** Called after JavaScript has written another prefix: the lengths of the strings at `ROW_START` and `RECEIVED_AT`. */
  static stamp(startBytes: i32, receivedAtBytes: i32): void {
    Rows.startBytes = startBytes
    Rows.receivedAtBytes = receivedAtBytes
  }

  static clear(): void {
    Rows.end = ROWS
    Rows.count = 0
  }

  /** Begins a row: all columns up to the id. */
  static begin(): void {
    Rows.end = Ids.write(copy(Rows.end, ROW_START, Rows.startBytes))
  }

  static writeReceivedAt(): void {
    store<u8>(Rows.end, TAB)
    Rows.end = copy(Rows.end + 1, RECEIVED_AT, Rows.receivedAtBytes)
  }

  /** @param us microseconds since 1970 */
  static writeTime(us: i64): void {
    store<u8>(Rows.end, TAB)
    Rows.end = writeTime(Rows.end + 1, us)
  }

  static writeNothing(): void {
    store<u8>(Rows.end, TAB)
    Rows.end += 1
  }

  /** Writes a column as it is: nothing in it has to be escaped. */
  static write(from: i32, end: i32): void {
    store<u8>(Rows.end, TAB)
    Rows.end = copy(Rows.end + 1, from, end - from)
  }

  /** Writes a string of JSON with escapes. */
  static writeDecoded(from: i32, end: i32): void {
    store<u8>(Rows.end, TAB)
    let to = Rows.end + 1
    for (let at = from; at < end;) {
      const block = v128.load(at)
      v128.store(to, block)
      const plain = plainBytes(block, end - at)
      to += plain
      at += plain
      // There is no backslash, or it is after the string.
      if (plain === 16 || at === end) continue
      Escape.read(at)
      at = Escape.end
      to = writeEscaped(to, Escape.code)
    }
    Rows.end = to
  }

  /** Writes bytes that may have to be escaped: JSON, or a string as it is. */
  static writeText(from: i32, end: i32): void {
    store<u8>(Rows.end, TAB)
    let to = Rows.end + 1
    for (let at = from; at < end;) {
      const block = v128.load(at)
      v128.store(to, block)
      const special = v128.or(
        i8x16.eq(block, i8x16.splat(BACKSLASH)),
        v128.or(i8x16.eq(block, i8x16.splat(TAB)), i8x16.eq(block, i8x16.splat(NEWLINE))),
      )
      const bits = i8x16.bitmask(special)
      const plain = min(bits === 0 ? 16 : ctz(bits), end - at)
      to += plain
      at += plain
      if (plain === 16 || at === end) continue
      to = writeEscaped(to, load<u8>(at))
      at += 1
    }
    Rows.end = to
  }

  static finish(): void {
    store<u8>(Rows.end, NEWLINE)
    Rows.end += 1
    Rows.count += 1
  }
}

/** The bytes of a block before a backslash, and before the end of the string. */
function plainBytes(block: v128, left: i32): i32 {
  const backslashes = i8x16.bitmask(i8x16.eq(block, i8x16.splat(BACKSLASH)))
  return min(backslashes === 0 ? 16 : ctz(backslashes), left)
}

function writeEscaped(to: i32, code: i32): i32 {
  if (code !== BACKSLASH && code !== TAB && code !== NEWLINE) return writeCharacter(to, code)
  store<u8>(to, BACKSLASH)
  store<u8>(to + 1, code === TAB ? LETTER_T : code === NEWLINE ? LETTER_N : BACKSLASH)
  return to + 2
}
