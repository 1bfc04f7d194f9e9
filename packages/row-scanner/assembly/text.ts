import { Cursor } from './cursor'
import * as faults from './faults'
import { readValue } from './json'
import { TAPE } from './memory'
import { Names } from './names'
import { Tape } from './tape'

/** Where the text is that was read last. */
export class Text {
  static start: i32 = 0
  static end: i32 = 0
}

/** Reads the next value of a text, after whitespace. Its nodes begin at `TAPE`. A zero follows the text. */
export function readNext(start: i32, end: i32): bool {
  Text.start = start
  Text.end = end
  Tape.end = TAPE
  Names.clear()
  Cursor.at = start
  return readValue(Cursor.skip(), 0) >= 0
}

/** Reads a text that must be one value, after the nodes and names that there are. @returns its node; 0 if it is none */
export function readInner(start: i32, end: i32): i32 {
  const value = Tape.end
  const after = load<u8>(end)
  store<u8>(end, 0)
  Cursor.at = start
  const isValue = readValue(Cursor.skip(), 0) >= 0
  Cursor.skip()
  store<u8>(end, after)
  return isValue && Cursor.at === end ? value : 0
}

/** Reads a text that must be one value. A zero follows it. */
export function readText(start: i32, end: i32): bool {
  if (!readNext(start, end)) return false
  Cursor.skip()
  if (Cursor.at !== end) Cursor.fail(Cursor.at, faults.END)
  return Cursor.at === end
}
