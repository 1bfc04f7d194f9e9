/** The bytes with a meaning in JSON or in ClickHouse's TabSeparated format. */
export const BACKSPACE: u8 = 0x08
export const TAB: u8 = 0x09
export const NEWLINE: u8 = 0x0a
export const FORM_FEED: u8 = 0x0c
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
export const UPPER_E: u8 = 0x45
export const UPPER_T: u8 = 0x54
export const UPPER_Z: u8 = 0x5a
export const OPEN_BRACKET: u8 = 0x5b
export const BACKSLASH: u8 = 0x5c
export const CLOSE_BRACKET: u8 = 0x5d
export const LOWER_A: u8 = 0x61
export const LOWER_B: u8 = 0x62
export const LOWER_E: u8 = 0x65
export const LOWER_F: u8 = 0x66
export const LOWER_N: u8 = 0x6e
export const LOWER_R: u8 = 0x72
export const LOWER_T: u8 = 0x74
export const LOWER_U: u8 = 0x75
export const OPEN_BRACE: u8 = 0x7b
export const CLOSE_BRACE: u8 = 0x7d

export function isDigit(byte: u8): bool {
  // Bytes below the zero wrap around to large numbers.
  return <u8>(byte - ZERO) < 10
}

/** Whether two strings of a length are the same. Up to seven bytes after them are read. */
export function isEqual(a: i32, b: i32, bytes: i32): bool {
  const end = a + bytes - 8
  for (; a <= end; a += 8, b += 8) if (load<u64>(a) !== load<u64>(b)) return false
  const left = end + 8 - a
  return left === 0 || (load<u64>(a) ^ load<u64>(b)) << (<u64>(64 - (left << 3))) === 0
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
