/** The bytes with a meaning in JSON or in ClickHouse's TabSeparated format. */
export const TAB: u8 = 0x09
export const NEWLINE: u8 = 0x0a
export const CARRIAGE_RETURN: u8 = 0x0d
export const SPACE: u8 = 0x20
export const QUOTE: u8 = 0x22
export const PLUS: u8 = 0x2b
export const COMMA: u8 = 0x2c
export const MINUS: u8 = 0x2d
export const DOT: u8 = 0x2e
export const SLASH: u8 = 0x2f
export const ZERO: u8 = 0x30
export const COLON: u8 = 0x3a
export const UPPER_T: u8 = 0x54
export const UPPER_Z: u8 = 0x5a
export const OPEN_BRACKET: u8 = 0x5b
export const BACKSLASH: u8 = 0x5c
export const CLOSE_BRACKET: u8 = 0x5d
export const LOWER_A: u8 = 0x61
export const LOWER_E: u8 = 0x65
export const LOWER_U: u8 = 0x75
export const OPEN_BRACE: u8 = 0x7b
export const CLOSE_BRACE: u8 = 0x7d

export function isDigit(byte: u8): bool {
  // Bytes below the zero wrap around to large numbers.
  return <u8>(byte - ZERO) < 10
}

/** A mask of the first of sixteen bytes. @param count at most 16 */
export function firstOf(count: i32): v128 {
  return i8x16.lt_u(i64x2(0x0706050403020100, 0x0f0e0d0c0b0a0908), i8x16.splat(<i8>count))
}

/** Whether two strings of a length are the same. Up to fifteen bytes after them are read. */
export function isEqual(a: i32, b: i32, bytes: i32): bool {
  for (; bytes > 16; bytes -= 16, a += 16, b += 16)
    if (v128.any_true(v128.xor(v128.load(a), v128.load(b)))) return false
  return !v128.any_true(v128.and(v128.xor(v128.load(a), v128.load(b)), firstOf(bytes)))
}

/** Sets bytes to zero, and up to fifteen more: `memory.fill` is slower for a few. */
export function clearBytes(at: i32, length: i32): void {
  for (let i = 0; i < length; i += 16) v128.store(at + i, i8x16.splat(0))
}

/** Above this length, `memory.copy` is faster. */
const LONG_BYTES: i32 = 512

/** Copies bytes, and up to fifteen more: source and target need room for them. @returns the end of the copy */
export function copy(to: i32, from: i32, length: i32): i32 {
  if (length > LONG_BYTES) {
    memory.copy(to, from, length)
  } else {
    for (let i = 0; i < length; i += 16) v128.store(to + i, v128.load(from + i))
  }
  return to + length
}
