import { BACKSLASH, CLOSE_BRACE, COMMA, LOWER_U, OPEN_BRACE, QUOTE, SPACE } from '../bytes'
import { isBlank } from '../loggers/words'
import { Members } from '../loggers/members'
import { hashOf, Names } from '../names'
import { ESCAPED, hexValue, REPLACEMENT, translate, writeCharacter } from '../strings'
import { NAME, Node, Tape, TEXT } from '../tape'

const EQUALS: u8 = 0x3d
const BACKQUOTE: u8 = 0x60
const UPPER_U: u8 = 0x55
const LOWER_X: u8 = 0x78

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
    if (!addName() || !skip(EQUALS)) return false
    byteAtCursor()
    if (!addQuoted() || !(skip(COMMA) || byteAtCursor() === CLOSE_BRACE)) return false
    if (!labels.add(name)) Tape.end = name
  }
  byteAtCursor()
  return at === end
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

/** Adds the node of a name, which may have all bytes up to a blank or the sign. */
function addName(): bool {
  const name = Node.of(Tape.end)
  if (byteAtCursor() === QUOTE) {
    if (!addQuoted()) return false
  } else {
    const start = at
    while (at < end && load<u8>(at) > SPACE && load<u8>(at) !== EQUALS) at += 1
    if (at === start) return false
    Tape.add(NAME, start, at)
  }
  name.head = NAME | ESCAPED | hashOf(name.start, name.end)
  return true
}

/** Adds the node of a string of Go, whose formatter `%q` Promtail and Alloy use. @returns false if it is none */
function addQuoted(): bool {
  const quote = at < end ? load<u8>(at) : 0
  if (quote !== QUOTE && quote !== BACKQUOTE) return false
  at += 1
  const start = at
  let isEscaped = false
  for (; at < end && load<u8>(at) !== quote; at += 1) {
    if (quote === BACKQUOTE || load<u8>(at) !== BACKSLASH) continue
    isEscaped = true
    at += 1
  }
  if (at >= end) return false
  Tape.add(TEXT, isEscaped ? Names.mark : start, isEscaped ? decode(start, at) : at)
  at += 1
  return true
}

/** The letters after a backslash and what they stand for, the first one in the lowest byte. Other characters stand for themselves. */
const LETTERS: u64 = 0x76_74_72_6e_66_62_61
const CODES: u64 = 0x0b_09_0d_0a_0c_08_07

/** @returns the end of the decoded string, which is kept */
function decode(from: i32, end: i32): i32 {
  let to = Names.mark
  while (from < end) {
    let byte = load<u8>(from)
    from += 1
    if (byte === BACKSLASH) {
      byte = load<u8>(from)
      const digits = byte === LOWER_X ? 2 : byte === LOWER_U ? 4 : byte === UPPER_U ? 8 : 0
      const code = digits === 0 ? readDigits(from, 3, 3) : readDigits(from + 1, digits, 4)
      from = code < 0 ? from + 1 : digitsEnd
      if (code >= 0) {
        to = writeCharacter(to, code)
        continue
      }
      const letter = translate(byte, LETTERS, CODES)
      if (letter > 0) byte = <u8>letter
    }
    store<u8>(to, byte)
    to += 1
  }
  Names.keep(to)
  return to
}

let digitsEnd: i32 = 0

/** @param bits of each digit: four for hexadecimal digits, three for octal ones @returns the code point; negative if there are not so many digits */
function readDigits(from: i32, digits: i32, bits: i32): i32 {
  digitsEnd = from + digits
  let code: u32 = 0
  for (; from < digitsEnd; from += 1) {
    const value = hexValue(load<u8>(from))
    if (value < 0 || value >= 1 << bits) return -1
    code = (code << bits) | value
  }
  // Escaped bytes above ASCII are parts of a string that is not UTF-8.
  const max: u32 = digits < 4 ? 0x7f : 0x10ffff
  return code > max || (code & 0xfffff800) === 0xd800 ? REPLACEMENT : code
}
