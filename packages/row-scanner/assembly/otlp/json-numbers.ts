// Numbers of the JSON form: integers may be numbers or strings, with an exponent or a fraction of zeros.
import { DOT, isDigit, LOWER_E, MINUS, PLUS, ZERO } from '../bytes'
import { Decoded } from '../draft'
import { Literal, literal } from '../literals'
import { setDouble } from '../scalars'
import { Node, NUMBER, STRING } from '../tape'
import { setRange } from './values'

/** An integer in a text has at most this many digits. */
const DIGITS_MAX: i32 = 20
/** Exponents are read up to this. No body has as many digits. */
const EXPONENT_MAX: i32 = 100_000_000

/** The parts of a decimal number: its digits are at places of the text, without a point. */
class Decimal {
  static isNegative: bool = false
  static start: i32 = 0
  static end: i32 = 0
  /** The value is the digits, as an integer, times ten to this power. */
  static exponent: i32 = 0

  /** Reads a number in the grammar of JSON, but with any number of zeros before it. @returns whether it is one */
  static read(from: i32, end: i32): bool {
    let at = from
    Decimal.isNegative = at < end && load<u8>(at) === MINUS
    if (Decimal.isNegative) at += 1
    Decimal.start = at
    at = digitsEnd(at, end)
    if (at === Decimal.start) return false
    Decimal.exponent = 0
    if (at < end && load<u8>(at) === DOT) {
      const fraction = at + 1
      at = digitsEnd(fraction, end)
      if (at === fraction) return false
      Decimal.exponent = fraction - at
    }
    Decimal.end = at
    if (at < end && (load<u8>(at) | 0x20) === LOWER_E) at = Decimal.readExponent(at + 1, end)
    return at === end
  }

  private static readExponent(from: i32, end: i32): i32 {
    let at = from
    const sign = at < end ? load<u8>(at) : 0
    if (sign === MINUS || sign === PLUS) at += 1
    const start = at
    let exponent = 0
    for (; at < end && isDigit(load<u8>(at)); at += 1)
      exponent = min(exponent * 10 + <i32>(load<u8>(at) - ZERO), EXPONENT_MAX)
    if (at === start) return -1
    Decimal.exponent += sign === MINUS ? -exponent : exponent
    return at
  }

  /** Leaves out zeros at both ends of the digits. */
  static trim(): void {
    while (Decimal.start < Decimal.end && isZeroOrPoint(Decimal.start)) Decimal.start += 1
    while (Decimal.start < Decimal.end && isZeroOrPoint(Decimal.end - 1)) {
      Decimal.end -= 1
      // A point is no digit. If it is the last one, the zeros before it are of the whole part.
      if (load<u8>(Decimal.end) !== DOT) Decimal.exponent += 1
    }
  }

  /** The number of digits. */
  static get count(): i32 {
    let count = 0
    for (let at = Decimal.start; at < Decimal.end; at += 1) if (load<u8>(at) !== DOT) count += 1
    return count
  }
}

function isZeroOrPoint(at: i32): bool {
  const byte = load<u8>(at)
  return byte === ZERO || byte === DOT
}

function digitsEnd(at: i32, end: i32): i32 {
  while (at < end && isDigit(load<u8>(at))) at += 1
  return at
}

/** An integer of at most 64 bits. */
export class Integer {
  static isNegative: bool = false
  static magnitude: u64 = 0

  /** @returns whether a node is an integer whose magnitude has at most 64 bits */
  static read(address: i32): bool {
    const node = Node.of(address)
    if (node.kind === NUMBER) return Decimal.read(node.start, node.end) && Integer.convert()
    if (node.kind !== STRING) return false
    Decoded.read(node)
    return (
      Integer.isPlain(Decoded.start, Decoded.end) &&
      Decimal.read(Decoded.start, Decoded.end) &&
      Integer.convert()
    )
  }

  /** Whether a text has only digits, with a minus sign or without. */
  private static isPlain(from: i32, end: i32): bool {
    const start = from < end && load<u8>(from) === MINUS ? from + 1 : from
    return end > start && end - start <= DIGITS_MAX && digitsEnd(start, end) === end
  }

  private static convert(): bool {
    Decimal.trim()
    Integer.magnitude = 0
    Integer.isNegative = false
    if (Decimal.start === Decimal.end) return true
    const exponent = Decimal.exponent
    if (exponent < 0 || exponent > DIGITS_MAX || Decimal.count + exponent > DIGITS_MAX) return false
    let value: u64 = 0
    for (let at = Decimal.start; at < Decimal.end; at += 1) {
      const byte = load<u8>(at)
      if (byte === DOT) continue
      if (!canAppend(value, byte - ZERO)) return false
      value = value * 10 + (byte - ZERO)
    }
    for (let i = 0; i < exponent; i += 1) {
      if (!canAppend(value, 0)) return false
      value *= 10
    }
    Integer.magnitude = value
    Integer.isNegative = Decimal.isNegative
    return true
  }

  /** Whether it is at most this number, and not negative. */
  static isUnsigned(largest: u64): bool {
    return !Integer.isNegative && Integer.magnitude <= largest
  }

  /** Whether it is a signed integer whose largest value is this number. */
  static isSigned(largest: u64): bool {
    return Integer.magnitude <= (Integer.isNegative ? largest + 1 : largest)
  }

  static get signed(): i64 {
    return Integer.isNegative ? -(<i64>Integer.magnitude) : <i64>Integer.magnitude
  }
}

/** Whether ten times the value and a digit have 64 bits. */
function canAppend(value: u64, digit: u8): bool {
  const largest = u64.MAX_VALUE
  return value < largest / 10 || (value === largest / 10 && <u64>digit <= largest % 10)
}

const NAN: i32 = literal('NaN')
const INFINITY: i32 = literal('Infinity')
const MINUS_INFINITY: i32 = literal('-Infinity')
/** The first digits of the least number that is too large for a double. */
const TOO_LARGE: i32 = literal('17976931348623158079')
/** Such numbers are at least ten to this power. */
const POWER_MAX: i32 = 308

/** Reads a double into a node. Numbers keep their text. @returns whether it is one */
export function readDouble(address: i32, value: i32): bool {
  const node = Node.of(value)
  if (node.kind === NUMBER) {
    setRange(address, NUMBER, node.start, node.end)
    return isFiniteNumber(node.start, node.end)
  }
  if (node.kind !== STRING) return false
  Decoded.read(node)
  const start = Decoded.start
  const end = Decoded.end
  if (isWord(NAN, start, end)) setDouble(address, NaN)
  else if (isWord(INFINITY, start, end)) setDouble(address, Infinity)
  else if (isWord(MINUS_INFINITY, start, end)) setDouble(address, -Infinity)
  else if (!isFiniteNumber(start, end)) return false
  else setNumber(address, start, end)
  return true
}

/** Sets a number, which may have any number of zeros before it. */
function setNumber(address: i32, start: i32, end: i32): void {
  // JSON has no zeros before a number.
  const isNegative = load<u8>(start) === MINUS
  if (isNegative) start += 1
  while (start + 1 < end && load<u8>(start) === ZERO && isDigit(load<u8>(start + 1))) start += 1
  if (isNegative) {
    start -= 1
    store<u8>(start, MINUS)
  }
  setRange(address, NUMBER, start, end)
}

function isWord(word: i32, start: i32, end: i32): bool {
  return Literal.of(word).bytes === end - start && Literal.of(word).isAt(start)
}

/** Whether a text is a number that a double can have. */
function isFiniteNumber(start: i32, end: i32): bool {
  if (!Decimal.read(start, end)) return false
  return Decimal.end - Decimal.start + Decimal.exponent < POWER_MAX || isBelowLargest()
}

function isBelowLargest(): bool {
  Decimal.trim()
  const power = Decimal.count + Decimal.exponent - 1
  if (power !== POWER_MAX) return power < POWER_MAX
  let at = Decimal.start
  const count = Literal.of(TOO_LARGE).bytes
  for (let i = 0; i < count; i += 1) {
    if (at < Decimal.end && load<u8>(at) === DOT) at += 1
    const digit = at < Decimal.end ? load<u8>(at) : ZERO
    const limit = load<u8>(Literal.of(TOO_LARGE).start + i)
    if (digit !== limit) return digit < limit
    at += 1
  }
  return false
}
