import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  DOT,
  isDigit,
  LOWER_E,
  LOWER_U,
  MINUS,
  OPEN_BRACE,
  OPEN_BRACKET,
  PLUS,
  QUOTE,
  ZERO,
} from './bytes'
import { Cursor } from './cursor'
import * as faults from './faults'
import { BRACKETS } from './memory'
import { hashOf, hasRepeated, Names } from './names'
import { Escape, ESCAPED, LONE, shortEscapeCode, stops } from './strings'
import {
  ARRAY,
  CLEAN,
  FALSE,
  LEVELS_SHIFT,
  NAME,
  Node,
  NULL,
  NUMBER,
  OBJECT,
  REPEATED,
  STRING,
  Tape,
  TRUE,
} from './tape'

/** Values at more levels are checked without nodes: no source has more levels for 16 levels of metadata. OTLP has up to four for each. */
const LEVELS_MAX: i32 = 80

/** Stands for more levels than any limit. */
const DEEP: i32 = 255
/** The levels of a value that is not JSON. */
const INVALID: i32 = -1

/**
 * Checks the value at the cursor as strictly as JSON.parse, adds its nodes to the tape, and moves the cursor after it. An invalid value
 * leaves the cursor at the first wrong byte.
 *
 * @param byte the byte at the cursor
 * @param level the number of objects and arrays around the value
 * @returns the levels of the value: 0 if it is neither an object nor an array; negative if it is invalid
 */
export function readValue(byte: u8, level: i32): i32 {
  if (byte === QUOTE) return readString()
  if (byte === OPEN_BRACE) return level < LEVELS_MAX ? readObject(level + 1) : passDeep()
  if (byte === OPEN_BRACKET) return level < LEVELS_MAX ? readArray(level + 1) : passDeep()
  if (byte === MINUS || isDigit(byte)) return readNumber()
  return readWord(byte)
}

function readString(): i32 {
  const start = Cursor.at + 1
  const flags = passString()
  if (flags < 0) return INVALID
  Tape.add(STRING | flags, start, Cursor.at - 1)
  return 0
}

/** Moves the cursor after the string. @returns its flags; negative if it is invalid */
function passString(): i32 {
  let next = Cursor.at + 1
  let flags = 0
  while (true) {
    const block = next
    next += 16
    for (let bits = stops(block); bits !== 0; bits &= -4 << ctz(bits)) {
      const at = block + ctz(bits)
      const byte = load<u8>(at)
      if (byte === QUOTE) {
        Cursor.at = at + 1
        return flags
      }
      if (byte !== BACKSLASH) return Cursor.fail(at, faults.STRING)
      flags |= ESCAPED
      next = max(next, at + 2)
      if (shortEscapeCode(load<u8>(at + 1)) >= 0) continue
      if (!Escape.read(at))
        return Cursor.fail(Escape.end, load<u8>(at + 1) === LOWER_U ? faults.HEXADECIMAL : faults.ESCAPE)
      if (Escape.isLone) flags |= LONE
      next = Escape.end
      break
    }
  }
}

function readNumber(): i32 {
  const start = Cursor.at
  if (passNumber() === INVALID) return INVALID
  Tape.add(NUMBER, start, Cursor.at)
  return 0
}

function passNumber(): i32 {
  let at = Cursor.at
  if (load<u8>(at) === MINUS) at += 1
  const isZero = load<u8>(at) === ZERO
  const whole = at
  at = isZero ? at + 1 : digitsEnd(at)
  if (at === whole) return Cursor.fail(at, faults.DIGIT)
  if (load<u8>(at) === DOT) {
    const fraction = at + 1
    at = digitsEnd(fraction)
    if (at === fraction) return Cursor.fail(at, faults.FRACTION)
  }
  if ((load<u8>(at) | 0x20) === LOWER_E) {
    at += 1
    const sign = load<u8>(at)
    if (sign === MINUS || sign === PLUS) at += 1
    const exponent = at
    at = digitsEnd(exponent)
    if (at === exponent) return Cursor.fail(at, faults.EXPONENT)
  }
  if (isZero && isDigit(load<u8>(at))) return Cursor.fail(at, faults.NUMBER_END)
  Cursor.at = at
  return 0
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

function readWord(byte: u8): i32 {
  const start = Cursor.at
  const kind = passWord(byte)
  if (kind < 0) return INVALID
  Tape.add(kind, start, Cursor.at)
  return 0
}

function passWord(byte: u8): i32 {
  const at = Cursor.at
  if (byte === LOWER_N)
    return Cursor.passWord(load<u32>(at), WORD_NULL, at, faults.WORD_NULL) ? NULL : INVALID
  if (byte === LOWER_T)
    return Cursor.passWord(load<u32>(at), WORD_TRUE, at, faults.WORD_TRUE) ? TRUE : INVALID
  if (byte === LOWER_F)
    return Cursor.passWord(load<u32>(at + 1), WORD_ALSE, at + 1, faults.WORD_FALSE) ? FALSE : INVALID
  return Cursor.fail(at, faults.VALUE)
}

/** Reads the object at the cursor. @param level its own */
export function readObject(level: i32): i32 {
  const address = Tape.end
  const blanks = Cursor.blanks
  Tape.add(OBJECT, Cursor.at, 0)
  Cursor.at += 1
  let levels = 0
  let flags = 0
  let count = 0
  let byte = Cursor.skip()
  if (byte !== CLOSE_BRACE) {
    while (true) {
      if (byte !== QUOTE) return Cursor.fail(Cursor.at, count === 0 ? faults.NAME_OR_END : faults.NAME)
      const flagsOfName = readName()
      if (flagsOfName < 0) return INVALID
      // Names with escapes are written anew, so the object is not clean.
      flags |= (flagsOfName & ESCAPED) !== 0 ? flagsOfName | REPEATED : flagsOfName
      count += 1
      if (Cursor.skip() !== COLON) return Cursor.fail(Cursor.at, faults.COLON)
      Cursor.at += 1
      const value = Node.of(Tape.end)
      const below = readValue(Cursor.skip(), level)
      if (below < 0) return INVALID
      levels = max(levels, below)
      flags |= value.head
      byte = Cursor.skip()
      if (byte === CLOSE_BRACE) break
      if (byte !== COMMA) return Cursor.fail(Cursor.at, faults.COMMA_OR_BRACE)
      Cursor.at += 1
      byte = Cursor.skip()
    }
  }
  Cursor.at += 1
  return close(
    address,
    OBJECT,
    flags,
    levels + 1,
    Cursor.blanks === blanks,
    count > 1 && hasRepeated(address, count),
  )
}

/** The flags that an object or an array has if anything in it has them. */
const INHERITED: i32 = ESCAPED | LONE | REPEATED

function close(address: i32, kind: i32, flags: i32, levels: i32, isCompact: bool, isRepeated: bool): i32 {
  const node = Node.of(address)
  const inherited = (flags & INHERITED) | (isRepeated ? REPEATED : 0)
  const isClean = isCompact && (inherited & REPEATED) === 0
  node.head = kind | inherited | (isClean ? CLEAN : 0) | (min(levels, DEEP) << LEVELS_SHIFT)
  node.end = Cursor.at
  node.next = Tape.end
  return levels
}

/** Reads the name at the cursor. @returns its flags; negative if it is invalid */
function readName(): i32 {
  const start = Cursor.at + 1
  const flags = passString()
  if (flags < 0) return INVALID
  const end = Cursor.at - 1
  if ((flags & ESCAPED) === 0) Tape.add(NAME | hashOf(start, end), start, end)
  else {
    const decoded = Names.decode(start, end)
    Tape.add(NAME | flags | hashOf(decoded, Names.end), decoded, Names.end)
  }
  return flags
}

function readArray(level: i32): i32 {
  const address = Tape.end
  const blanks = Cursor.blanks
  Tape.add(ARRAY, Cursor.at, 0)
  Cursor.at += 1
  let levels = 0
  let flags = 0
  let byte = Cursor.skip()
  if (byte !== CLOSE_BRACKET) {
    while (true) {
      const value = Node.of(Tape.end)
      const below = readValue(byte, level)
      if (below < 0) return INVALID
      levels = max(levels, below)
      flags |= value.head
      byte = Cursor.skip()
      if (byte === CLOSE_BRACKET) break
      if (byte !== COMMA) return Cursor.fail(Cursor.at, faults.COMMA_OR_BRACKET)
      Cursor.at += 1
      byte = Cursor.skip()
    }
  }
  Cursor.at += 1
  return close(address, ARRAY, flags, levels + 1, Cursor.blanks === blanks, false)
}

/**
 * Checks an object or an array that is nested too deeply, without recursion and without nodes for what is in it. The kinds of the open ones
 * are on a stack of bits.
 */
function passDeep(): i32 {
  const start = Cursor.at
  let depth = 0
  let byte = load<u8>(start)
  while (true) {
    // A value begins here.
    let isOpened = false
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      setBit(depth, byte === OPEN_BRACE)
      depth += 1
      Cursor.at += 1
      byte = Cursor.skip()
      isOpened = byte !== CLOSE_BRACE && byte !== CLOSE_BRACKET
    } else if (passScalar(byte) < 0) return INVALID
    else byte = Cursor.skip()
    if (isOpened) {
      if (hasBit(depth - 1)) {
        if (passName(byte, faults.NAME_OR_END) < 0) return INVALID
      }
      byte = Cursor.skip()
      continue
    }
    // A value has ended, or an empty object or array is open.
    while (depth > 0 && byte === (hasBit(depth - 1) ? CLOSE_BRACE : CLOSE_BRACKET)) {
      depth -= 1
      Cursor.at += 1
      if (depth === 0) break
      byte = Cursor.skip()
    }
    if (depth === 0) break
    const isObject = hasBit(depth - 1)
    if (byte !== COMMA)
      return Cursor.fail(Cursor.at, isObject ? faults.COMMA_OR_BRACE : faults.COMMA_OR_BRACKET)
    Cursor.at += 1
    byte = Cursor.skip()
    if (isObject) {
      if (passName(byte, faults.NAME) < 0) return INVALID
      byte = Cursor.skip()
    }
  }
  Tape.add(ARRAY | (DEEP << LEVELS_SHIFT), start, Cursor.at)
  return DEEP
}

/** Moves the cursor after the name and its colon. */
function passName(byte: u8, fault: i32): i32 {
  if (byte !== QUOTE) return Cursor.fail(Cursor.at, fault)
  if (passString() < 0) return INVALID
  if (Cursor.skip() !== COLON) return Cursor.fail(Cursor.at, faults.COLON)
  Cursor.at += 1
  return 0
}

function passScalar(byte: u8): i32 {
  if (byte === QUOTE) return passString()
  return byte === MINUS || isDigit(byte) ? passNumber() : passWord(byte)
}

function setBit(depth: i32, isSet: bool): void {
  const at = BRACKETS + (depth >> 3)
  const bit = (<u8>1) << (<u8>(depth & 7))
  store<u8>(at, isSet ? load<u8>(at) | bit : load<u8>(at) & ~bit)
}

function hasBit(depth: i32): bool {
  return ((load<u8>(BRACKETS + (depth >> 3)) >> <u8>(depth & 7)) & 1) !== 0
}
