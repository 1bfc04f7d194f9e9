import { CARRIAGE_RETURN, NEWLINE, SPACE, TAB } from './bytes'
import { readValue } from './json'
import { TAPE } from './memory'
import { Names } from './names'
import { Tape } from './tape'

/** The text that was read last. It ends with a zero, which matches nothing, so that nobody reads on after it. */
export class Text {
  static start: i32 = 0
  static end: i32 = 0
  /** The last whitespace that was skipped. */
  static blankAt: i32 = 0
  /** If it is not JSON: where, and what must follow there. */
  static faultAt: i32 = 0
  static expected: string = ''

  /** @returns 0, in place of the place after what was read */
  static fail(at: i32, expected: string): i32 {
    Text.faultAt = at
    Text.expected = expected
    return 0
  }

  /** The place of the next byte that is not whitespace. */
  @inline
  static skip(at: i32): i32 {
    return load<u8>(at) > SPACE ? at : skipBlanks(at)
  }
}

function skipBlanks(from: i32): i32 {
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
  // There is none at the end of a text, or at a wrong byte.
  if (at > from) Text.blankAt = from
  return at
}

/** Reads the next value of a text, after whitespace. Its nodes begin at `TAPE`. A zero follows the text. @returns the place after it; 0 if it is invalid */
export function readNext(start: i32, end: i32): i32 {
  Text.start = start
  Text.end = end
  Tape.end = TAPE
  Names.clear()
  return readValue(start)
}

/** Reads a text that must be one value, after the nodes and names that there are. @returns its node; 0 if it is none */
export function readInner(start: i32, end: i32): i32 {
  const value = Tape.end
  const after = load<u8>(end)
  store<u8>(end, 0)
  const at = readValue(start)
  const isText = at !== 0 && Text.skip(at) === end
  store<u8>(end, after)
  return isText ? value : 0
}

/** Reads a text that must be one value. A zero follows it. */
export function readText(start: i32, end: i32): bool {
  const at = readNext(start, end)
  if (at === 0) return false
  const after = Text.skip(at)
  if (after !== end) Text.fail(after, 'the end of the text')
  return after === end
}
