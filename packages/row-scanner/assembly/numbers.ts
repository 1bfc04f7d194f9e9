// Numbers of the JSON form of Protocol Buffers: as numbers or as strings, integers also with an exponent or a fraction of zeros.
import { DOT, isDigit, LOWER_E, MINUS, PLUS, ZERO } from './bytes'
import { Decoded } from './draft'
import { Literal, literal, literals } from './literals'
import { LITERAL_BYTES } from './memory'
import { isInfinite } from './scalars'
import { Node, NUMBER, STRING } from './tape'

/** Exponents are read up to this. No body has as many digits. */
const EXPONENT_MAX: i32 = 100_000_000
/** Any digit may follow a smaller number. */
const TENTH: u64 = u64.MAX_VALUE / 10

/** A decimal number: its first digits as an integer, times ten to the exponent. */
export class Decimal {
  static value: u64 = 0
  private static isNegative: bool = false
  private static exponent: i32 = 0
  /** Whether digits were dropped, and whether one of them was not a zero. */
  private static isFull: bool = false
  private static isRounded: bool = false

  /** Reads an integer. @returns false for another value. `value` has the 64 bits of the integer */
  static readInteger(node: Node, isSigned: bool, largest: u64): bool {
    if (!Decimal.read(node)) return false
    let value = Decimal.value
    let exponent = Decimal.exponent
    if (value === 0) return true
    for (; exponent < 0 && value % 10 === 0; exponent += 1) value /= 10
    for (; exponent > 0 && value <= TENTH; exponent -= 1) value *= 10
    if (exponent !== 0 || Decimal.isRounded) return false
    Decimal.value = Decimal.isNegative ? -value : value
    return Decimal.isNegative ? isSigned && value <= largest + 1 : value <= largest
  }

  /** Reads a number in the grammar of JSON, but with any number of zeros before it. @returns whether it is one */
  static read(node: Node): bool {
    if (node.kind !== NUMBER && node.kind !== STRING) return false
    Decoded.read(node)
    const end = Decoded.end
    Decimal.value = 0
    Decimal.exponent = 0
    Decimal.isFull = false
    Decimal.isRounded = false
    Decimal.isNegative = byteAt(Decoded.start, end) === MINUS
    const whole = Decoded.start + <i32>Decimal.isNegative
    let at = Decimal.readDigits(whole, end, 0)
    if (at === whole) return false
    if (byteAt(at, end) === DOT) {
      const fraction = at + 1
      at = Decimal.readDigits(fraction, end, 1)
      if (at === fraction) return false
    }
    if ((byteAt(at, end) | 0x20) === LOWER_E) at = Decimal.readExponent(at + 1, end)
    return at === end
  }

  private static readDigits(at: i32, end: i32, decimals: i32): i32 {
    let value = Decimal.value
    let exponent = Decimal.exponent
    for (; isDigit(byteAt(at, end)); at += 1) {
      const digit = <u64>(load<u8>(at) - ZERO)
      exponent -= decimals
      if (!Decimal.isFull && (value < TENTH || (value === TENTH && digit <= u64.MAX_VALUE % 10)))
        value = value * 10 + digit
      else {
        Decimal.isFull = true
        exponent += 1
        if (digit !== 0) Decimal.isRounded = true
      }
    }
    Decimal.value = value
    Decimal.exponent = exponent
    return at
  }

  private static readExponent(at: i32, end: i32): i32 {
    const sign = byteAt(at, end)
    if (sign === MINUS || sign === PLUS) at += 1
    const start = at
    let exponent = 0
    for (; isDigit(byteAt(at, end)); at += 1)
      exponent = min(exponent * 10 + <i32>(load<u8>(at) - ZERO), EXPONENT_MAX)
    Decimal.exponent += sign === MINUS ? -exponent : exponent
    return at === start ? -1 : at
  }

  /** Whether it is small enough for a double. */
  static get isFinite(): bool {
    let value = Decimal.value
    let power = Decimal.exponent + DIGITS - 1
    if (value === 0) return true
    for (; value < DIGITS_MIN; power -= 1) value *= 10
    for (; value / 10 >= DIGITS_MIN; power += 1) value /= 10
    return power < POWER_MAX || (power === POWER_MAX && value < TOO_LARGE)
  }
}

/** The first digits of the least number that is too large for a double, and its power of ten. */
const TOO_LARGE: u64 = 1_797_693_134_862_315_807
const POWER_MAX: i32 = 308
/** The number of those digits, and the least integer that has as many. */
const DIGITS: i32 = 19
const DIGITS_MIN: u64 = 1_000_000_000_000_000_000

/** The byte at a place, or 0 at the end. */
function byteAt(at: i32, end: i32): u8 {
  return at < end ? load<u8>(at) : 0
}

export function isDouble(node: Node): bool {
  if (Decimal.read(node)) return Decimal.isFinite
  return node.kind === STRING && isInfinite(Decoded.start, Decoded.end)
}

const PREFIX: i32 = literal('SEVERITY_NUMBER_')
const FIRST: i32 = literals('TRACE DEBUG INFO WARN ERROR FATAL')
const LAST: i32 = literal('UNSPECIFIED')
const STEPS: i32 = 4

/**
 * Reads the name of a severity to the value of `Decimal`. OTLP requires numbers. Encoders of Protocol Buffers in general write names:
 * `SEVERITY_NUMBER_WARN`, and `…_WARN2` to `…_WARN4`.
 */
export function readSeverity(node: Node): bool {
  if (node.kind !== STRING) return false
  Decoded.read(node)
  const start = Decoded.start + Literal.of(PREFIX).bytes
  if (!Literal.of(PREFIX).isAt(Decoded.start)) return false
  const step = <i32>(load<u8>(Decoded.end - 1) - ZERO)
  const hasStep = step > 1 && step <= STEPS
  let severity = hasStep ? step : 1
  let name = FIRST
  while (name < LAST && !Literal.of(name).isText(start, Decoded.end - <i32>hasStep)) {
    name += LITERAL_BYTES
    severity += STEPS
  }
  Decimal.value = name === LAST ? 0 : severity
  return name < LAST || Literal.of(LAST).isText(start, Decoded.end)
}
