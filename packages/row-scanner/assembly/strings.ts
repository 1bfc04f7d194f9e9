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

/** The end of the plain part of a string. */
export function plainEnd(at: i32): i32 {
  let bits = stops(at)
  while (bits === 0) {
    at += 16
    bits = stops(at)
  }
  return at + ctz(bits)
}

/**
 * Decodes an escape.
 *
 * @param at the byte after the backslash
 * @returns the character; -1 for an invalid escape or half of a surrogate pair
 */
export function escaped(at: i32): i32 {
  const escape = load<u8>(at)
  if (escape === LOWER_U) return unicodeEscaped(at + 1)
  switch (escape) {
    case QUOTE:
    case BACKSLASH:
    case SLASH:
      return escape
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

/** The length of an escape in bytes, without its backslash. @param at the byte after the backslash */
export function escapeBytes(at: i32): i32 {
  return load<u8>(at) === LOWER_U ? 5 : 1
}

/** The letter that JSON.stringify writes after a backslash for a character; 0 if the character has no short escape. */
export function shortEscape(character: i32): u8 {
  switch (character) {
    case QUOTE:
    case BACKSLASH:
      return <u8>character
    case BACKSPACE:
      return LOWER_B
    case TAB:
      return LOWER_T
    case NEWLINE:
      return LOWER_N
    case FORM_FEED:
      return LOWER_F
    case CARRIAGE_RETURN:
      return LOWER_R
    default:
      return 0
  }
}

/** Writes a character below 0x10000 that is not a surrogate, as UTF-8. @returns its end */
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
  store<u8>(to, <u8>(0xe0 | (code >> 12)))
  store<u8>(to + 1, <u8>(0x80 | ((code >> 6) & 0x3f)))
  store<u8>(to + 2, <u8>(0x80 | (code & 0x3f)))
  return to + 3
}

export function hexDigit(value: i32): u8 {
  return <u8>(value < 10 ? ZERO + value : LOWER_A - 10 + value)
}

function unicodeEscaped(at: i32): i32 {
  let code = 0
  for (let i = at; i < at + 4; i += 1) {
    const value = hexValue(load<u8>(i))
    if (value < 0) return -1
    code = (code << 4) | value
  }
  return code >= 0xd800 && code <= 0xdfff ? -1 : code
}

function hexValue(byte: u8): i32 {
  if (isDigit(byte)) return byte - ZERO
  // Lower-case letters differ from upper-case letters in this bit.
  const letter = byte | 0x20
  return letter >= LOWER_A && letter <= LOWER_F ? letter - LOWER_A + 10 : -1
}
