import {
  BACKSLASH,
  BACKSPACE,
  CARRIAGE_RETURN,
  CLOSE_BRACE,
  COLON,
  COMMA,
  copy,
  DOT,
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
  OPEN_BRACE,
  QUOTE,
  TAB,
} from '../bytes'
import { Names } from '../names'
import { backslashFrom, hexValue, writeCharacter } from '../strings'
import { TEXT } from '../tape'
import { addName, addText } from './protobuf'
import { LABELS_BYTES_MAX, Stream } from './stream'

const EQUALS: u8 = 0x3d
const UNDERSCORE: u8 = 0x5f
const BACKQUOTE: u8 = 0x60
const UPPER_U: u8 = 0x55
const LOWER_V: u8 = 0x76
const LOWER_X: u8 = 0x78
const VERTICAL_TAB: u8 = 0x0b
const BELL: u8 = 0x07
const REPLACEMENT: i32 = 0xfffd
const ASCII_MAX: i32 = 0x7f
const CODE_POINT_MAX: i32 = 0x10ffff
/** The line and paragraph separators differ in the lowest bit of their last byte. */
const SEPARATOR: u32 = 0xa880e2

/**
 * Reads the labels of a stream in Protocol Buffers: `{app="x", level="info"}`. Names may be quoted. Values are quoted as in Go, or raw between
 * backquotes.
 *
 * @returns false if the text is malformed or too long, or has too many labels
 */
export function readLabelSet(start: i32, end: i32): bool {
  if (end - start > LABELS_BYTES_MAX) return false
  let at = blanksEnd(start, end)
  if (at === end || load<u8>(at) !== OPEN_BRACE) return false
  at = blanksEnd(at + 1, end)
  while (at < end && load<u8>(at) !== CLOSE_BRACE) {
    const name = at
    at = load<u8>(name) === QUOTE ? quotedEnd(name, end) : nameEnd(name, end)
    if (at < 0) return false
    const afterName = at
    at = blanksEnd(at, end)
    if (at === end || load<u8>(at) !== EQUALS) return false
    const value = blanksEnd(at + 1, end)
    at = value < end ? quotedEnd(value, end) : -1
    if (at < 0 || !addLabel(name, afterName, value, at)) return false
    at = blanksEnd(at, end)
    if (at < end && load<u8>(at) === COMMA) at = blanksEnd(at + 1, end)
    else if (at === end || load<u8>(at) !== CLOSE_BRACE) return false
  }
  return at < end && blanksEnd(at + 1, end) === end
}

function blanksEnd(at: i32, end: i32): i32 {
  while (at < end && (load<u8>(at) === 0x20 || (load<u8>(at) >= TAB && load<u8>(at) <= CARRIAGE_RETURN)))
    at += 1
  return at
}

/** The end of a name without quotes; negative if there is none. */
function nameEnd(at: i32, end: i32): i32 {
  if (!isLetter(load<u8>(at))) return -1
  while (at < end && isOfName(load<u8>(at))) at += 1
  return at
}

function isLetter(byte: u8): bool {
  const letter = byte | 0x20
  return (letter >= LOWER_A && letter <= 0x7a) || byte === UNDERSCORE
}

function isOfName(byte: u8): bool {
  return isLetter(byte) || isDigit(byte) || byte === DOT || byte === COLON
}

/** The place after a string in quotes; negative if there is none. */
function quotedEnd(at: i32, end: i32): i32 {
  const quote = load<u8>(at)
  if (quote !== QUOTE && quote !== BACKQUOTE) return -1
  for (at += 1; at < end; at += 1) {
    const byte = load<u8>(at)
    if (byte === quote) return at + 1
    if (quote === BACKQUOTE) continue
    if (byte === NEWLINE) return -1
    if (byte !== BACKSLASH) continue
    at += 1
    if (at === end || endsLine(at)) return -1
  }
  return -1
}

function endsLine(at: i32): bool {
  const byte = load<u8>(at)
  return byte === NEWLINE || byte === CARRIAGE_RETURN || (load<u32>(at) & 0xfeffff) === SEPARATOR
}

function addLabel(name: i32, afterName: i32, value: i32, afterValue: i32): bool {
  const isQuoted = load<u8>(name) === QUOTE
  if (isQuoted) unquote(name, afterName)
  const node = isQuoted ? addName(unquoted, unquotedEnd) : addName(name, afterName)
  unquote(value, afterValue)
  addText(TEXT, unquoted, unquotedEnd)
  return Stream.addLabel(node)
}

let unquoted: i32 = 0
let unquotedEnd: i32 = 0

/** Reads a string of Go, whose formatter `%q` Promtail and Alloy use. */
function unquote(start: i32, end: i32): void {
  const isRaw = load<u8>(start) === BACKQUOTE
  unquoted = start + 1
  unquotedEnd = end - 1
  if (isRaw || backslashFrom(unquoted, unquotedEnd) >= unquotedEnd) return
  let to = Names.mark
  for (let at = unquoted; at < unquotedEnd;) {
    const plain = min(backslashFrom(at, unquotedEnd), unquotedEnd)
    to = copy(to, at, plain - at)
    at = plain
    if (at === unquotedEnd) break
    const code = readEscape(at + 1, unquotedEnd)
    if (code >= 0) to = writeCharacter(to, code)
    at = escapeEnd
  }
  unquoted = Names.mark
  unquotedEnd = to
  Names.keep(to)
}

let escapeEnd: i32 = 0

/** @param at the place after the backslash @returns the code point */
function readEscape(at: i32, end: i32): i32 {
  const kind = load<u8>(at)
  const digits = kind === LOWER_X ? 2 : kind === LOWER_U ? 4 : kind === UPPER_U ? 8 : 0
  if (digits > 0 && readDigits(at + 1, digits, end, 4))
    return codePoint(digits === 2 ? ASCII_MAX : CODE_POINT_MAX)
  if (digits === 0 && readDigits(at, 3, end, 3)) return codePoint(ASCII_MAX)
  escapeEnd = at + 1
  switch (kind) {
    case LOWER_A:
      return BELL
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
    case LOWER_V:
      return VERTICAL_TAB
    default:
      // A byte of a longer character is copied with the others.
      if (kind < 0x80) return kind
      escapeEnd = at
      return -1
  }
}

let escapeCode: u32 = 0

/** @param bits of each digit: four for hexadecimal digits, three for octal ones */
function readDigits(at: i32, digits: i32, end: i32, bits: i32): bool {
  if (at + digits > end) return false
  escapeCode = 0
  for (let i = 0; i < digits; i += 1) {
    const value = hexValue(load<u8>(at + i))
    if (value < 0 || value >= 1 << bits) return false
    escapeCode = (escapeCode << bits) | value
  }
  escapeEnd = at + digits
  return true
}

/** Escaped bytes above ASCII are parts of a string that is not UTF-8. */
function codePoint(max: i32): i32 {
  const isSurrogate = (escapeCode & 0xfffff800) === 0xd800
  return isSurrogate || escapeCode > <u32>max ? REPLACEMENT : escapeCode
}
