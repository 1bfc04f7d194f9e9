import { clearBytes } from './bytes'
import * as columns from './columns'
import { COLUMNS_MAX, VALUES } from './memory'
import { Metadata } from './metadata'
import { Names } from './names'
import { FIRST_COLUMN, Rows } from './rows'
import { ESCAPED } from './strings'
import { Node, TEXT } from './tape'

/** The row that is being made of an entry or a record. Its metadata is in `Metadata`. */
export class Draft {
  /** Whether it has a time of its own, and that time in microseconds since 1970. Otherwise it gets the time of receipt. */
  static hasTime: bool = false
  static timeUs: i64 = 0

  static clear(): void {
    clearBytes(VALUES, COLUMNS_MAX * 4)
    Draft.hasTime = false
  }

  /** The node of the string of a column; 0 if it has none. */
  static valueOf(column: i32): i32 {
    return load<i32>(VALUES + (column << 2))
  }

  /** @param address the node of a string; 0 for none */
  static set(column: i32, address: i32): void {
    store<i32>(VALUES + (column << 2), address)
  }

  /** Writes the row. */
  static finish(): void {
    Rows.begin(Draft.hasTime ? Draft.timeUs : Rows.receivedAtUs)
    for (let column = columns.timestamp + 1; column < columns.metadata; column += 1)
      writeColumn(FIRST_COLUMN + column, Draft.valueOf(column))
    Rows.write(FIRST_COLUMN + columns.metadata, Metadata.start, Metadata.bytes)
    Rows.finish()
  }
}

function writeColumn(column: i32, address: i32): void {
  if (address === 0) return Rows.writeNothing(column)
  const value = Node.of(address)
  if (value.kind !== TEXT && value.has(ESCAPED)) Rows.writeDecoded(column, value.start, value.end)
  else Rows.write(column, value.start, value.bytes)
}

/** A string, decoded. */
export class Decoded {
  static start: i32 = 0
  static end: i32 = 0

  static read(value: Node): void {
    const isEscaped = value.has(ESCAPED)
    Decoded.start = isEscaped ? Names.decode(value.start, value.end) : value.start
    Decoded.end = isEscaped ? Names.end : value.end
  }

  /** The same, until another string is decoded. */
  static peek(value: Node): void {
    const mark = Names.mark
    Decoded.read(value)
    Names.rewind(mark)
  }
}
