import { BACKSLASH, firstOf, isDigit, LOWER_A, LOWER_U, QUOTE, SPACE, ZERO } from './bytes'

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
    const code = shortEscapeCode(letter)
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

  static get isLone(): bool {
    return (Escape.code & 0xfffff800) === 0xd800
  }
}

/** The letters after a backslash and the bytes that they stand for, the first one in the lowest byte. */
export const ESCAPE_LETTERS: u64 = 0x74726e66622f5c22
export const ESCAPED_BYTES: u64 = 0x090d0a0c082f5c22

/** The byte in `to` at the place that a byte has in `from`; negative if it is not there. */
export function translate(byte: u8, from: u64, to: u64): i32 {
  const place = ctz(i8x16.bitmask(i8x16.eq(i64x2.splat(from), i8x16.splat(byte))))
  return place < 8 ? <i32>(to >> ((<u64>place) << 3)) & 0xff : -1
}

/** What a letter after a backslash stands for; negative if it is none of `"\/bfnrt`. */
export function shortEscapeCode(letter: u8): i32 {
  return translate(letter, ESCAPE_LETTERS, ESCAPED_BYTES)
}

/** The code of four hexadecimal digits; negative if they are not. */
function hexCode(at: i32): i32 {
  const bytes = v128.load32_splat(at)
  const digits = i8x16.sub(bytes, i8x16.splat(ZERO))
  const letters = i8x16.sub(v128.or(bytes, i8x16.splat(0x20)), i8x16.splat(LOWER_A))
  const isDigits = i8x16.lt_u(digits, i8x16.splat(10))
  if (!i8x16.all_true(v128.or(isDigits, i8x16.lt_u(letters, i8x16.splat(6))))) return -1
  const values = v128.bitselect(digits, i8x16.add(letters, i8x16.splat(10)), isDigits)
  const code = bswap(i32x4.extract_lane(values, 0))
  const pairs = (code | (code >> 4)) & 0x00ff00ff
  return (pairs | (pairs >> 8)) & 0xffff
}

function wrongHex(at: i32): i32 {
  while (hexValue(load<u8>(at)) >= 0) at += 1
  return at
}

export function hexValue(byte: u8): i32 {
  if (isDigit(byte)) return byte - ZERO
  // Lower-case letters differ from upper-case letters in this bit.
  const letter = byte | 0x20
  return letter >= LOWER_A && letter < LOWER_A + 6 ? letter - LOWER_A + 10 : -1
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

/** What takes the place of half of a surrogate pair, which has no UTF-8 form. */
export const REPLACEMENT: i32 = 0xfffd

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
      const code = shortEscapeCode(load<u8>(backslash + 1))
      if (code < 0) {
        Escape.read(backslash)
        at = Escape.end
        next = at
        to = writeCharacter(to, Escape.isLone ? REPLACEMENT : Escape.code)
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

/** The place after so many code points of UTF-8, or its end. @param isEscaped whether it is a string in valid JSON */
export function afterCharacters(from: i32, end: i32, count: i32, isEscaped: bool): i32 {
  let at = from
  while (at < end) {
    const byte = load<u8>(at)
    // All bytes of a character but the first begin with these bits.
    if ((byte & 0xc0) !== 0x80) {
      if (count === 0) return at
      count -= 1
    }
    if (isEscaped && byte === BACKSLASH) {
      Escape.read(at)
      at = Escape.end
    } else at += 1
  }
  return at
}

/** The number of code points of UTF-8. */
export function textCharacters(from: i32, end: i32): i32 {
  let count = 0
  for (let at = from; at < end; at += 16) {
    // As signed numbers, the bytes that continue a character are the smallest.
    const firsts = i8x16.ge_s(v128.load(at), i8x16.splat(-64))
    count += popcnt(i8x16.bitmask(v128.and(firsts, firstOf(min(end - at, 16)))))
  }
  return count
}
