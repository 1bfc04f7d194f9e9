import { copy } from './bytes'
import * as columns from './columns'
import { renewId } from './host'
import { idsPerMs } from './limits'
import { COLUMN_ENDS, COLUMN_ROOM, COLUMNS, ID, PROJECT, ROWS, STAMP } from './memory'
import { decode } from './strings'

/** The columns before the timestamp, which is the first one that comes from an entry. */
const PROJECT_ID: i32 = 0
const RECEIVED_AT: i32 = 1
const EXPIRES_ON: i32 = 2
const ROW_ID: i32 = 3
export const FIRST_COLUMN: i32 = 4

const US_PER_MS: i64 = 1_000
const COUNT: i32 = columns.count

/**
 * The rows of a body: the values of each column, in ClickHouse's Native format, in an area of its own. `pack` makes a block of them at
 * `ROWS`, as `Block` of @sluice/rows describes.
 */
export class Rows {
  /** The end of the last block. */
  static end: i32 = ROWS
  /** The number of rows in all blocks and in the columns. */
  static count: i32 = 0
  /** The bytes and the rows in the columns. */
  static bytes: i32 = 0
  static open: i32 = 0

  static clear(): void {
    Rows.end = ROWS
    Rows.count = 0
    Rows.clearColumns()
  }

  private static clearColumns(): void {
    Rows.bytes = 0
    Rows.open = 0
    for (let column = 0; column < COUNT; column += 1) setEnd(column, COLUMNS + column * COLUMN_ROOM)
  }

  /** Begins a row: the columns up to the timestamp. @param us microseconds since 1970 */
  static begin(us: i64): void {
    Rows.write(PROJECT_ID, PROJECT, load<i32>(STAMP, 12))
    const receivedAt = endOf(RECEIVED_AT)
    store<i64>(receivedAt, load<i64>(STAMP))
    setEnd(RECEIVED_AT, receivedAt + 8)
    const expiresOn = endOf(EXPIRES_ON)
    store<u16>(expiresOn, load<u16>(STAMP, 8))
    setEnd(EXPIRES_ON, expiresOn + 2)
    setEnd(ROW_ID, writeId(endOf(ROW_ID)))
    const timestamp = endOf(FIRST_COLUMN)
    store<i64>(timestamp, us)
    setEnd(FIRST_COLUMN, timestamp + 8)
    Rows.bytes += 34
  }

  /** The time of receipt in microseconds since 1970. */
  static get receivedAtUs(): i64 {
    return load<i64>(STAMP) * US_PER_MS
  }

  static writeNothing(column: i32): void {
    const to = endOf(column)
    store<u8>(to, 0)
    setEnd(column, to + 1)
    Rows.bytes += 1
  }

  /** Writes a string as it is. */
  static write(column: i32, from: i32, bytes: i32): void {
    const to = endOf(column)
    const end = copy(writeLength(to, bytes), from, bytes)
    setEnd(column, end)
    Rows.bytes += end - to
  }

  /** Writes a string of JSON with escapes. */
  static writeDecoded(column: i32, from: i32, end: i32): void {
    const to = endOf(column)
    // It is not longer than it was.
    const start = writeLength(to, end - from)
    const bytes = decode(from, end, start) - start
    const textStart = writeLength(to, bytes)
    if (textStart !== start) memory.copy(textStart, start, bytes)
    setEnd(column, textStart + bytes)
    Rows.bytes += textStart + bytes - to
  }

  static finish(): void {
    Rows.count += 1
    Rows.open += 1
  }

  /** Makes a block of the rows in the columns, if there are any. */
  static pack(): void {
    if (Rows.open === 0) return
    let to = writeLength(Rows.end, Rows.open)
    for (let column = 0; column < COUNT; column += 1)
      to = writeLength(to, endOf(column) - (COLUMNS + column * COLUMN_ROOM))
    for (let column = 0; column < COUNT; column += 1) {
      const start = COLUMNS + column * COLUMN_ROOM
      to = copy(to, start, endOf(column) - start)
    }
    Rows.end = to
    Rows.clearColumns()
  }
}

function endOf(column: i32): i32 {
  return load<i32>(COLUMN_ENDS + (column << 2))
}

function setEnd(column: i32, end: i32): void {
  store<i32>(COLUMN_ENDS + (column << 2), end)
}

/** Writes a varint. @returns its end */
function writeLength(to: i32, length: i32): i32 {
  while (length > 0x7f) {
    store<u8>(to, <u8>(length | 0x80))
    length >>= 7
    to += 1
  }
  store<u8>(to, <u8>length)
  return to + 1
}

/** Writes the next id: ascending, and all of one millisecond until that has no more. @returns its end */
function writeId(to: i32): i32 {
  if (load<i32>(ID, 16) === idsPerMs) renewId()
  const used = load<i32>(ID, 16)
  // They differ in the last twelve bits of their first number.
  store<u64>(to, load<u64>(ID) + <u64>used)
  store<u64>(to + 8, load<u64>(ID + 8))
  store<i32>(ID, used + 1, 16)
  return to + 16
}
