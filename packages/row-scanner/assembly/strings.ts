import {
  BACKSLASH,
  BACKSPACE,
  CARRIAGE_RETURN,
  FORM_FEED,
  isDigit,
  LOWER_A,
  LOWER_B,
  LOWER_F,
  LOWER_N,
  LOWER_R,
  LOWER_T,
  LOWER_U,
  NEWLINE,
  QUOTE,
  SLASH,
  SPACE,
  TAB,
  ZERO,
} from './bytes'

/** Flags of a string, in the head of its node. */
export const ESCAPED: i32 = 0x10
/** It has half of a surrogate pair, as an escape. */
export const LONE: i32 = 0x20

/** A mask with a bit for each of sixteen bytes: 1 if it ends the plain part of a string (quote, backslash, control character). */
export function stops(at: i32): i32 {
  const bytes = v128.load(at)
  return i8x16.bitmask(
    v128.or(
      v128.or(i8x16.eq(bytes, i8x16.splat(QUOTE)), i8x16.eq(bytes, i8x16.splat(BACKSLASH))),
      i8x16.lt_u(bytes, i8x16.splat(SPACE)),
    ),
  )
}

/** The place of the first backslash; or a place at or after `end`. */
export function backslashFrom(at: i32, end: i32): i32 {
  for (; at < end; at += 16) {
    const bits = i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(BACKSLASH)))
    if (bits !== 0) return at + ctz(bits)
  }
  return end
}

/** A valid escape, decoded. */
export class Escape {
  /** A code point; half of a surrogate pair if the other half does not follow. */
  static code: i32 = 0
  /** The place after it. */
  static end: i32 = 0

  /** @param at the backslash @returns false for an invalid escape; `end` is then the place of the first wrong byte */
  static read(at: i32): bool {
    const letter = load<u8>(at + 1)
    Escape.end = at + 2
    if (letter === LOWER_U) return Escape.readUnicode(at)
    const code = Escape.short(letter)
    Escape.code = code
    if (code >= 0) return true
    Escape.end = at + 1
    return false
  }

  private static readUnicode(at: i32): bool {
    const code = hexCode(at + 2)
    if (code < 0) {
      Escape.end = wrongHex(at + 2)
      return false
    }
    Escape.code = code
    Escape.end = at + 6
    if ((code & 0xfc00) !== 0xd800 || load<u8>(at + 6) !== BACKSLASH || load<u8>(at + 7) !== LOWER_U)
      return true
    const low = hexCode(at + 8)
    if ((low & 0xfffffc00) !== 0xdc00) return true
    Escape.code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff)
    Escape.end = at + 12
    return true
  }

  /** What a letter after a backslash stands for; negative if it is none of `"\/bfnrt`. */
  @inline
  static short(letter: u8): i32 {
    switch (letter) {
      case QUOTE:
      case BACKSLASH:
      case SLASH:
        return letter
      case LOWER_B:
        return BACKSPACE
      case LOWER_F:
        return FORM_FEED
      case LOWER_N:
        return NEWLINE
      case LOWER_R:
        return CARRIAGE_RETURN
      case LOWER_T:
        return TAB
      default:
        return -1
    }
  }

  static get isLone(): bool {
    return (Escape.code & 0xfffff800) === 0xd800
  }
}

/** The code of four hexadecimal digits; negative if they are not. */
function hexCode(at: i32): i32 {
  const a = hexValue(load<u8>(at))
  const b = hexValue(load<u8>(at + 1))
  const c = hexValue(load<u8>(at + 2))
  const d = hexValue(load<u8>(at + 3))
  return (a | b | c | d) < 0 ? -1 : (a << 12) | (b << 8) | (c << 4) | d
}

function wrongHex(at: i32): i32 {
  while (hexValue(load<u8>(at)) >= 0) at += 1
  return at
}

export function hexValue(byte: u8): i32 {
  if (isDigit(byte)) return byte - ZERO
  // Lower-case letters differ from upper-case letters in this bit.
  const letter = byte | 0x20
  return letter >= LOWER_A && letter <= LOWER_F ? letter - LOWER_A + 10 : -1
}

export function hexDigit(value: u8): u8 {
  return value < 10 ? ZERO + value : LOWER_A - 10 + value
}

/** Writes a code point as UTF-8. @returns its end */
export function writeCharacter(to: i32, code: i32): i32 {
  if (code < 0x80) {
    store<u8>(to, <u8>code)
    return to + 1
  }
  if (code < 0x800) {
    store<u8>(to, <u8>(0xc0 | (code >> 6)))
    store<u8>(to + 1, <u8>(0x80 | (code & 0x3f)))
    return to + 2
  }
  if (code < 0x10000) {
    store<u8>(to, <u8>(0xe0 | (code >> 12)))
    store<u8>(to + 1, <u8>(0x80 | ((code >> 6) & 0x3f)))
    store<u8>(to + 2, <u8>(0x80 | (code & 0x3f)))
    return to + 3
  }
  store<u8>(to, <u8>(0xf0 | (code >> 18)))
  store<u8>(to + 1, <u8>(0x80 | ((code >> 12) & 0x3f)))
  store<u8>(to + 2, <u8>(0x80 | ((code >> 6) & 0x3f)))
  store<u8>(to + 3, <u8>(0x80 | (code & 0x3f)))
  return to + 4
}

/** Decodes a string in valid JSON. @returns the end of the decoded string */
export function decode(from: i32, end: i32, to: i32): i32 {
  for (let at = from; at < end;) {
    const block = at
    const bytes = v128.load(at)
    v128.store(to, bytes)
    let next = min(at + 16, end)
    let bits = i8x16.bitmask(i8x16.eq(bytes, i8x16.splat(BACKSLASH)))
    for (; bits !== 0 && block + ctz(bits) < end; bits &= -4 << ctz(bits)) {
      const backslash = block + ctz(bits)
      to += backslash - at
      const code = Escape.short(load<u8>(backslash + 1))
      if (code < 0) {
        Escape.read(backslash)
        at = Escape.end
        next = at
        to = writeCharacter(to, Escape.code)
        break
      }
      store<u8>(to, <u8>code)
      to += 1
      at = backslash + 2
      v128.store(to, v128.load(at))
    }
    to += max(next - at, 0)
    at = max(next, at)
  }
  return to
}

/** The number of code points of a string in valid JSON, escaped or not. */
export function characters(from: i32, end: i32): i32 {
  let count = 0
  for (let at = from; at < end;) {
    const byte = load<u8>(at)
    if (byte === BACKSLASH) {
      Escape.read(at)
      at = Escape.end
      count += 1
    } else {
      // All bytes of a character but the first begin with these bits.
      if ((byte & 0xc0) !== 0x80) count += 1
      at += 1
    }
  }
  return count
}

/** The number of code points of UTF-8. */
export function textCharacters(from: i32, end: i32): i32 {
  let count = 0
  let at = from
  for (; at + 16 <= end; at += 16) {
    // As signed numbers, the bytes that continue a character are the smallest.
    count += popcnt(i8x16.bitmask(i8x16.ge_s(v128.load(at), i8x16.splat(-64))))
  }
  for (; at < end; at += 1) if ((load<u8>(at) & 0xc0) !== 0x80) count += 1
  return count
}

/** The number of lines that end between two places. */
function newlines(from: i32, end: i32): i32 {
  let count = 0
  for (let at = from; at < end; at += 16) {
    const bits = i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(NEWLINE)))
    count += popcnt(end - at < 16 ? bits & ((1 << (end - at)) - 1) : bits)
  }
  return count
}

/** The line of a place in a text, counted from 1. */
export function lineOf(start: i32, at: i32): i32 {
  return 1 + newlines(start, at)
}

/** The column of a place, counted from 1. Columns are characters. */
export function columnOf(start: i32, at: i32): i32 {
  let from = at
  while (from > start && load<u8>(from - 1) !== NEWLINE) from -= 1
  return 1 + textCharacters(from, at)
}
