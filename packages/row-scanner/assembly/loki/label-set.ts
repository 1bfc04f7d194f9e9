import { BACKSLASH, CLOSE_BRACE, COLON, COMMA, copy, DOT, isDigit, LOWER_A, LOWER_U } from '../bytes'
import { NEWLINE, OPEN_BRACE, QUOTE } from '../bytes'
import { Literal, literal } from '../literals'
import { hashOf, Names } from '../names'
import { ESCAPED, hexValue, writeCharacter } from '../strings'
import { NAME, Node, Tape, TEXT } from '../tape'
import { Members } from '../loggers/members'
import { isBlank } from '../loggers/words'

const EQUALS: u8 = 0x3d
const UNDERSCORE: u8 = 0x5f
const BACKQUOTE: u8 = 0x60
const UPPER_U: u8 = 0x55
const LOWER_X: u8 = 0x78
const LOWER_Z: u8 = 0x7a
const REPLACEMENT: i32 = 0xfffd
const ASCII_MAX: u32 = 0x7f
const CODE_POINT_MAX: u32 = 0x10ffff

let at: i32 = 0
let end: i32 = 0

/**
 * Adds the labels of a stream in Protocol Buffers, `{app="x", level="info"}`. Names may be quoted. Values are quoted as in Go, or raw between
 * backquotes.
 *
 * @returns false if the text is malformed
 */
export function readLabelSet(text: Node, labels: Members): bool {
  at = text.start
  end = text.end
  if (!skip(OPEN_BRACE)) return false
  while (!skip(CLOSE_BRACE)) {
    const name = Tape.end
    if (!readLabel() || !(skip(COMMA) || byteAtCursor() === CLOSE_BRACE)) return false
    if (!labels.put(name)) Tape.end = name
  }
  byteAtCursor()
  labels.numberRepeated()
  return at === end
}

function readLabel(): bool {
  const isQuoted = byteAtCursor() === QUOTE
  if (!(isQuoted ? readQuoted() : readName())) return false
  Tape.add(NAME | ESCAPED | hashOf(start, textEnd), start, textEnd)
  if (!skip(EQUALS)) return false
  byteAtCursor()
  if (!readQuoted()) return false
  Tape.add(TEXT, start, textEnd)
  return true
}

/** Moves to the next byte that is not blank. @returns that byte; 0 at the end */
function byteAtCursor(): u8 {
  while (at < end && isBlank(load<u8>(at))) at += 1
  return at < end ? load<u8>(at) : 0
}

/** Moves after a byte, if it is the next one. */
function skip(byte: u8): bool {
  if (byteAtCursor() !== byte) return false
  at += 1
  return true
}

/** The place of the string that was read last. */
let start: i32 = 0
let textEnd: i32 = 0

/** Reads a name without quotes. */
function readName(): bool {
  start = at
  while (at < end && isOfName(load<u8>(at))) at += 1
  textEnd = at
  return at > start && !isDigit(load<u8>(start)) && load<u8>(start) !== DOT && load<u8>(start) !== COLON
}

function isOfName(byte: u8): bool {
  const letter = byte | 0x20
  const isLetter = letter >= LOWER_A && letter <= LOWER_Z
  return isLetter || isDigit(byte) || byte === UNDERSCORE || byte === DOT || byte === COLON
}

/** Reads a string of Go, whose formatter `%q` Promtail and Alloy use. @returns false if it is none */
function readQuoted(): bool {
  const quote = at < end ? load<u8>(at) : 0
  if (quote !== QUOTE && quote !== BACKQUOTE) return false
  at += 1
  start = at
  let plain = at
  let to = Names.mark
  for (; at < end && load<u8>(at) !== quote; at += 1) {
    if (quote === BACKQUOTE) continue
    if (load<u8>(at) === NEWLINE) return false
    if (load<u8>(at) !== BACKSLASH) continue
    to = copy(to, plain, at - plain)
    at += 1
    if (at >= end) return false
    // A longer character stands for itself.
    plain = at
    if (load<u8>(at) >= 0x80) continue
    to = writeCharacter(to, readEscape())
    plain = at + 1
  }
  textEnd = at
  at += 1
  if (plain === start) return textEnd < end
  start = Names.mark
  textEnd = copy(to, plain, textEnd - plain)
  Names.keep(textEnd)
  return at <= end
}

const LETTERS: i32 = literal('abfnrtv')
/** What the letters stand for, the first one in the lowest byte. */
const CODES: u64 = 0x0b090d0a0c0807

/** @returns the code point. The cursor is at the last byte of the escape */
function readEscape(): i32 {
  const kind = load<u8>(at)
  const digits = kind === LOWER_X ? 2 : kind === LOWER_U ? 4 : kind === UPPER_U ? 8 : 0
  if (digits > 0 && readDigits(at + 1, digits, 4)) return codePoint(digits === 2 ? ASCII_MAX : CODE_POINT_MAX)
  if (readDigits(at, 3, 3)) return codePoint(ASCII_MAX)
  const letters = Literal.of(LETTERS)
  for (let i = letters.bytes - 1; i >= 0; i -= 1)
    if (load<u8>(letters.start + i) === kind) return <u8>(CODES >> (<u64>i * 8))
  return kind
}

let escapeCode: u32 = 0

/** @param bits of each digit: four for hexadecimal digits, three for octal ones */
function readDigits(from: i32, digits: i32, bits: i32): bool {
  if (from + digits > end) return false
  escapeCode = 0
  for (let i = 0; i < digits; i += 1) {
    const value = hexValue(load<u8>(from + i))
    if (value < 0 || value >= 1 << bits) return false
    escapeCode = (escapeCode << bits) | value
  }
  at = from + digits - 1
  return true
}

/** Escaped bytes above ASCII are parts of a string that is not UTF-8. */
function codePoint(max: u32): i32 {
  const isSurrogate = (escapeCode & 0xfffff800) === 0xd800
  return isSurrogate || escapeCode > max ? REPLACEMENT : escapeCode
}
