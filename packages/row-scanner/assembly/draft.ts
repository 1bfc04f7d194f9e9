import { clearBytes, isEqual } from './bytes'
import * as columns from './columns'
import { COLUMNS_MAX, VALUES } from './memory'
import { Metadata } from './metadata'
import { Names } from './names'
import { FIRST_COLUMN, Rows } from './rows'
import { ESCAPED } from './strings'
import { Node, TEXT } from './tape'

/** The contract has the years from 1970 up to 2261. */
const END_NS: u64 = 9_214_646_400_000_000_000
export const NS_PER_US: u64 = 1_000

/** The row that is being made of an entry or a record. Its metadata is in `Metadata`. */
export class Draft {
  /** Whether it has a time of its own, and that time in microseconds since 1970. Otherwise it gets the time of receipt. */
  static hasTime: bool = false
  static timeUs: i64 = 0

  static clear(): void {
    clearBytes(VALUES, COLUMNS_MAX * 4)
    Draft.hasTime = false
  }

  /** @param ns since 1970; 0 for no time @returns whether it is a time of the contract. Otherwise there is none */
  static setTime(ns: u64): bool {
    Draft.hasTime = ns !== 0 && ns < END_NS
    Draft.timeUs = ns / NS_PER_US
    return Draft.hasTime
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

/** Whether two values are the same, as texts: clients send values of a record once more as strings. */
export function isSameText(a: Node, b: Node): bool {
  if (a.isContainer || b.isContainer) return false
  Decoded.read(a)
  const start = Decoded.start
  const bytes = Decoded.end - start
  Decoded.read(b)
  return Decoded.end - Decoded.start === bytes && isEqual(start, Decoded.start, bytes)
}
