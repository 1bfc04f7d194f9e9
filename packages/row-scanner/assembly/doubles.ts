import { DOT, LOWER_E, MINUS, PLUS, ZERO } from './bytes'
import { writeInteger } from './integers'
import { POWERS } from './memory'

/** The exponent of the first power at `POWERS`: `powersOfTen` in `src/powers.ts`. */
const FIRST_POWER: i32 = -292
const POWER_BYTES: i32 = 16
const SIGNIFICAND_BITS: i32 = 52
const HIDDEN_BIT: u64 = 1 << 52
const EXPONENT_BIAS: i32 = 1_075

/** The decimal number with the fewest digits that is nearest to a double: `digits` · 10^`exponent`. */
let digits: u64 = 0
let exponent: i32 = 0

/**
 * Writes a finite double like JSON.stringify.
 *
 * @returns its end
 */
export function writeDouble(to: i32, value: f64): i32 {
  if (value === 0) {
    store<u8>(to, ZERO)
    return to + 1
  }
  if (value < 0) {
    store<u8>(to, MINUS)
    to += 1
  }
  findShortest(reinterpret<u64>(value))
  while (digits % 10 === 0) {
    digits /= 10
    exponent += 1
  }
  return writeDecimal(to)
}

/** Writes `digits` and `exponent` by the rules of ECMAScript. */
function writeDecimal(to: i32): i32 {
  const end = writeInteger(to, digits)
  const count = end - to
  /** The place of the point, counted from the first digit. */
  const point = count + exponent
  if (point > 21 || point <= -6) return writeExponent(to, end, point - 1)
  if (point >= count) return zeros(end, point - count)
  if (point > 0) {
    memory.copy(to + point + 1, to + point, count - point)
    store<u8>(to + point, DOT)
    return end + 1
  }
  const first = to + 2 - point
  memory.copy(first, to, count)
  zeros(to, 2 - point)
  store<u8>(to + 1, DOT)
  return first + count
}

function writeExponent(to: i32, end: i32, power: i32): i32 {
  if (end - to > 1) {
    memory.copy(to + 2, to + 1, end - to - 1)
    store<u8>(to + 1, DOT)
    end += 1
  }
  store<u8>(end, LOWER_E)
  store<u8>(end + 1, power < 0 ? MINUS : PLUS)
  return writeInteger(end + 2, abs(power))
}

function zeros(to: i32, count: i32): i32 {
  for (let i = 0; i < count; i += 1) store<u8>(to + i, ZERO)
  return to + count
}

/** Raffaele Giulietti, The Schubfach way to render doubles. */
function findShortest(bits: u64): void {
  const significand = bits & (HIDDEN_BIT - 1)
  const biased = <i32>((bits >> SIGNIFICAND_BITS) & 0x7ff)
  let c = significand
  let q = 1 - EXPONENT_BIAS
  if (biased !== 0) {
    c |= HIDDEN_BIT
    q = biased - EXPONENT_BIAS
    // An integer below 2^53.
    if (q <= 0 && q > -SIGNIFICAND_BITS - 1 && <i32>ctz(c) >= -q) {
      digits = c >> <u64>-q
      exponent = 0
      return
    }
  }
  const isOdd = c & 1
  const isCloser: u64 = significand === 0 && biased > 1 ? 1 : 0
  const k = (q * 1_262_611 - (isCloser === 1 ? 524_031 : 0)) >> 22
  const h = <u64>(q + ((-k * 1_741_647) >> 19) + 1)
  const power = POWERS + (-k - FIRST_POWER) * POWER_BYTES
  const high = load<u64>(power)
  const low = load<u64>(power, 8)
  const lower = roundToOdd(high, low, (4 * c - 2 + isCloser) << h) + isOdd
  const value = roundToOdd(high, low, (4 * c) << h)
  const upper = roundToOdd(high, low, (4 * c + 2) << h) - isOdd
  const s = value >> 2
  if (s >= 10) {
    const tenth = s / 10
    const isDownInside = lower <= 40 * tenth
    const isUpInside = 40 * tenth + 40 <= upper
    if (isDownInside !== isUpInside) {
      digits = tenth + <u64>isUpInside
      exponent = k + 1
      return
    }
  }
  exponent = k
  const isDownInside = lower <= 4 * s
  const isUpInside = 4 * s + 4 <= upper
  const middle = 4 * s + 2
  const roundsUp =
    isDownInside !== isUpInside ? isUpInside : value > middle || (value === middle && (s & 1) !== 0)
  digits = s + <u64>roundsUp
}

/** The upper 64 bits of a product with 128 bits. Its lowest bit is set if anything is below. */
function roundToOdd(high: u64, low: u64, factor: u64): u64 {
  const carried = highOf(low, factor)
  const middle = high * factor + carried
  const top = highOf(high, factor) + <u64>(middle < carried)
  return top | <u64>(middle > 1)
}

/** The upper 64 bits of a product. */
function highOf(a: u64, b: u64): u64 {
  const aLow = a & 0xffffffff
  const aHigh = a >> 32
  const bLow = b & 0xffffffff
  const bHigh = b >> 32
  const middle = aHigh * bLow + ((aLow * bLow) >> 32)
  return aHigh * bHigh + (middle >> 32) + ((aLow * bHigh + (middle & 0xffffffff)) >> 32)
}
