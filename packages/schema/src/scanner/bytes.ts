/** The bytes that JSON and ClickHouse's TabSeparated give a meaning to. */
export const TAB = 0x09
export const NEWLINE = 0x0a
export const SPACE = 0x20
export const QUOTE = 0x22
export const COMMA = 0x2c
export const MINUS = 0x2d
export const DOT = 0x2e
export const ZERO = 0x30
export const NINE = 0x39
export const COLON = 0x3a
export const UPPER_E = 0x45
export const OPEN_BRACKET = 0x5b
export const BACKSLASH = 0x5c
export const CLOSE_BRACKET = 0x5d
export const LOWER_E = 0x65
export const LOWER_U = 0x75
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d

/** By byte: 1 where a string of JSON goes on as it is. */
export const PLAIN = byteTable((byte) => Number(byte >= SPACE && byte !== QUOTE && byte !== BACKSLASH))

/** By byte: 1 for what JSON allows between its tokens. */
export const BLANK = byteTable((byte) => Number([SPACE, TAB, NEWLINE, 0x0d].includes(byte)))

const SHORT_ESCAPES = '"\\/bfnrt'
const MEANT = '"\\/\b\f\n\r\t'

/** By the byte after a backslash: the byte that is meant; 0 for `u` and for what may not be there. */
export const UNESCAPED = byteTable((byte) =>
  MEANT.charCodeAt(SHORT_ESCAPES.indexOf(String.fromCharCode(byte))),
)

/** By byte: what JSON.stringify writes after a backslash for it; 0 where it writes no short escape. */
export const SHORT_ESCAPE = byteTable((byte) => {
  const meant = String.fromCharCode(byte)
  return meant === '/' ? 0 : SHORT_ESCAPES.charCodeAt(MEANT.indexOf(meant))
})

export const HEX_DIGITS = Buffer.from('0123456789abcdef')
/** By byte: the value of a hexadecimal digit; 255 for all others. */
const HEX_VALUE = byteTable((byte) => {
  const value = HEX_DIGITS.indexOf(String.fromCharCode(byte).toLowerCase())
  return value === -1 ? 255 : value
})

/** The character that four hexadecimal digits stand for; -1 for half of a surrogate pair, and where they are none. */
export function characterAt(bytes: Uint8Array, at: number): number {
  let code = 0
  for (let i = at; i < at + 4; i += 1) {
    const value = HEX_VALUE[bytes[i] ?? 0] ?? 255
    if (value === 255) return -1
    code = code * 16 + value
  }
  return code >= 0xd800 && code <= 0xdfff ? -1 : code
}

/** Writes a character, below 0x10000 and no surrogate, as UTF-8. @returns where it ends */
export function writeCharacter(bytes: Uint8Array, at: number, code: number): number {
  if (code < 0x80) {
    bytes[at] = code
    return at + 1
  }
  if (code < 0x800) {
    bytes[at] = 0xc0 | (code >> 6)
    bytes[at + 1] = 0x80 | (code & 0x3f)
    return at + 2
  }
  bytes[at] = 0xe0 | (code >> 12)
  bytes[at + 1] = 0x80 | ((code >> 6) & 0x3f)
  bytes[at + 2] = 0x80 | (code & 0x3f)
  return at + 3
}

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}

function byteTable(of: (byte: number) => number): Uint8Array {
  // What is not there is NaN, and NaN is 0 here.
  return Uint8Array.from({ length: 256 }, (_, byte) => of(byte))
}
