import { BACKSLASH, CLOSE_BRACE, COLON, COMMA, DOT, isDigit, LOWER_E, LOWER_U, MINUS } from './bytes'
import { OPEN_BRACE, OPEN_BRACKET, PLUS, QUOTE, ZERO } from './bytes'
import { hashOf, hasRepeated, Names } from './names'
import { Escape, ESCAPED, LONE, shortEscapeCode, stops } from './strings'
import { ARRAY, CLEAN, FALSE, KIND, LEVELS_SHIFT, NAME, Node, NODE_BYTES, NULL } from './tape'
import { NUMBER, OBJECT, REPEATED, STRING, Tape, TRUE } from './tape'
import { Text } from './text'

/** Stands for more levels than any limit. */
const DEEP: i32 = 255
/** The flags that an object or an array has if anything in it has them. */
const INHERITED: i32 = ESCAPED | LONE | REPEATED

/**
 * Checks the next value as strictly as JSON.parse, and adds its nodes to the tape.
 *
 * A value may have as many levels as it has bytes, so there is no recursion. While an object or an array is open, `next` of its node is the one
 * around it.
 *
 * @returns the place after it; 0 if it is invalid: `Text.faultAt` is then the first wrong byte
 */
export function readValue(at: i32): i32 {
  Text.blankAt = 0
  let open = 0
  let closing: u8 = 0
  while (true) {
    at = Text.skip(at)
    if (closing === CLOSE_BRACE) {
      at = readName(open, at)
      if (at === 0) return 0
    }
    let byte = load<u8>(at)
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      const address = Tape.add(byte === OPEN_BRACE ? OBJECT : ARRAY, at, 0)
      Node.of(address).next = open
      open = address
      closing = closingOf(byte)
      at = Text.skip(at + 1)
      byte = load<u8>(at)
      if (byte !== closing) continue
    } else {
      at = readScalar(byte, at)
      if (at === 0 || open === 0) return at
      if (Passed.flags !== 0) Node.of(open).head |= Passed.flags
      at = Text.skip(at)
      byte = load<u8>(at)
    }
    while (byte === closing) {
      at += 1
      open = close(open, at)
      if (open === 0) return at
      closing = closingOf(load<u8>(Node.of(open).start))
      at = Text.skip(at)
      byte = load<u8>(at)
    }
    if (byte !== COMMA) return Text.fail(at, closing === CLOSE_BRACE ? '"," or "}"' : '"," or "]"')
    at += 1
  }
}

/** The bracket that closes an open one is two bytes after it in ASCII. */
function closingOf(bracket: u8): u8 {
  return bracket + 2
}

/** Closes an object or an array. @param end the place after it @returns the one around it; 0 if there is none */
function close(address: i32, end: i32): i32 {
  const node = Node.of(address)
  const outer = node.next
  let head = node.head + (1 << LEVELS_SHIFT)
  if (head >> LEVELS_SHIFT > DEEP) head = node.head
  node.next = Tape.end
  if (node.kind === OBJECT && hasRepeated(address)) head |= REPEATED
  if (Text.blankAt < node.start && (head & REPEATED) === 0) head |= CLEAN
  node.head = head
  node.end = end
  if (outer === 0) return 0
  const around = Node.of(outer)
  const levels = max(around.head >> LEVELS_SHIFT, head >> LEVELS_SHIFT) << LEVELS_SHIFT
  around.head = (around.head & (KIND | INHERITED)) | (head & INHERITED) | levels
  return outer
}

/** Reads a name of an object, and its colon. @returns the place of its value */
function readName(object: i32, at: i32): i32 {
  if (load<u8>(at) !== QUOTE) {
    const isFirst = Tape.end === object + NODE_BYTES
    return Text.fail(at, isFirst ? 'a name in double quotes or "}"' : 'a name in double quotes')
  }
  const after = Passed.string(at)
  const flags = Passed.flags
  if (after === 0) return 0
  if (flags === 0) Tape.add(NAME | hashOf(at + 1, after - 1), at + 1, after - 1)
  else {
    const decoded = Names.decode(at + 1, after - 1)
    Tape.add(NAME | flags | hashOf(decoded, Names.end), decoded, Names.end)
    // It is written anew, so the object is not clean.
    Node.of(object).head |= flags | REPEATED
  }
  at = Text.skip(after)
  return load<u8>(at) === COLON ? Text.skip(at + 1) : Text.fail(at, '":"')
}

function readScalar(byte: u8, at: i32): i32 {
  if (byte === QUOTE) {
    const after = Passed.string(at)
    if (after !== 0) Tape.add(STRING | Passed.flags, at + 1, after - 1)
    return after
  }
  Passed.flags = 0
  if (byte === MINUS || isDigit(byte)) return readNumber(at)
  if (byte === LOWER_N) return readWord(at, NULL, 0, WORD_NULL, 'null')
  if (byte === LOWER_T) return readWord(at, TRUE, 0, WORD_TRUE, 'true')
  if (byte === LOWER_F) return readWord(at, FALSE, 1, WORD_ALSE, 'false')
  return Text.fail(at, 'a value')
}

const HEXADECIMAL: string = 'four hexadecimal digits after \\u'
const ESCAPE: string = 'one of "\\/bfnrtu after the backslash'

/** The string that was passed last. */
class Passed {
  static flags: i32 = 0

  /** @returns the place after a string */
  @inline
  static string(start: i32): i32 {
    // Most are short, and have no escapes.
    const bits = stops(start + 1)
    const end = start + 1 + ctz(bits)
    if (bits === 0 || load<u8>(end) !== QUOTE) return Passed.longString(start)
    Passed.flags = 0
    return end + 1
  }

  private static longString(start: i32): i32 {
    let next = start + 1
    let flags = 0
    while (true) {
      const block = next
      next += 16
      for (let bits = stops(block); bits !== 0; bits &= -4 << ctz(bits)) {
        const at = block + ctz(bits)
        const byte = load<u8>(at)
        if (byte === QUOTE) {
          Passed.flags = flags
          return at + 1
        }
        if (byte !== BACKSLASH)
          return Text.fail(at, 'the rest of a string, whose control characters must be escaped')
        flags |= ESCAPED
        next = max(next, at + 2)
        if (shortEscapeCode(load<u8>(at + 1)) >= 0) continue
        if (!Escape.read(at))
          return Text.fail(Escape.end, load<u8>(at + 1) === LOWER_U ? HEXADECIMAL : ESCAPE)
        if (Escape.isLone) flags |= LONE
        next = Escape.end
        break
      }
    }
  }
}

function readNumber(start: i32): i32 {
  let at = start
  if (load<u8>(at) === MINUS) at += 1
  const isZero = load<u8>(at) === ZERO
  const whole = at
  at = isZero ? at + 1 : digitsEnd(at)
  if (at === whole) return Text.fail(at, 'a digit after the minus sign')
  if (load<u8>(at) === DOT) {
    const fraction = at + 1
    at = digitsEnd(fraction)
    if (at === fraction) return Text.fail(at, 'a digit after the decimal point')
  }
  if ((load<u8>(at) | 0x20) === LOWER_E) {
    at += 1
    const sign = load<u8>(at)
    if (sign === MINUS || sign === PLUS) at += 1
    const exponent = at
    at = digitsEnd(exponent)
    if (at === exponent) return Text.fail(at, 'a digit in the exponent')
  }
  if (isZero && isDigit(load<u8>(at)))
    return Text.fail(at, 'the end of a number, which must not have leading zeros')
  Tape.add(NUMBER, start, at)
  return at
}

function digitsEnd(at: i32): i32 {
  while (true) {
    const digits = i8x16.sub(v128.load(at), i8x16.splat(ZERO))
    // The highest bits are set, so that there is always one.
    const others = ~i8x16.bitmask(i8x16.lt_u(digits, i8x16.splat(10)))
    at += min(16, ctz(others))
    if ((others & 0xffff) !== 0) return at
  }
}

/** The literals of JSON: their first four bytes, or their last four, as one little-endian number. */
const WORD_NULL: u32 = 0x6c6c756e
const WORD_TRUE: u32 = 0x65757274
const WORD_ALSE: u32 = 0x65736c61
const LOWER_F: u8 = 0x66
const LOWER_N: u8 = 0x6e
const LOWER_T: u8 = 0x74

/** @param skipped the bytes before four others that are expected */
function readWord(start: i32, kind: i32, skipped: i32, expected: u32, word: string): i32 {
  const at = start + skipped
  const wrong = load<u32>(at) ^ expected
  if (wrong !== 0) return Text.fail(at + (ctz(wrong) >> 3), word)
  Tape.add(kind, start, at + 4)
  return at + 4
}
