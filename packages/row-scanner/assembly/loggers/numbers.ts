import { isDigit, LOWER_E, MINUS, DOT, ZERO } from '../bytes'
import { SCRATCH } from '../memory'

/** JSON's numbers up to 10^21 have so many digits before the point. No time has more. */
const WHOLE_DIGITS_MAX: i32 = 21
const DIGITS_MAX: i32 = 64
/** Any larger exponent is the same. */
const EXPONENT_MAX: i32 = 1_000

/** A number of JSON that is not negative, as digits without an exponent. */
export class Digits {
  static start: i32 = 0
  static end: i32 = 0

  /** @returns whether the number is not negative, and short */
  static read(from: i32, end: i32): bool {
    Digits.start = from
    Digits.end = end
    if (load<u8>(from) === MINUS) return false
    for (let at = from; at < end; at += 1)
      if ((load<u8>(at) | 0x20) === LOWER_E) return Digits.expand(from, at, end)
    return true
  }

  /** The value of a whole number below 1,000; negative for all others. */
  static small(from: i32, end: i32): i32 {
    if (!Digits.read(from, end)) return -1
    let value = 0
    let at = Digits.start
    const digitsEnd = Digits.end
    for (; at < digitsEnd && isDigit(load<u8>(at)); at += 1) {
      value = value * 10 + <i32>(load<u8>(at) - ZERO)
      if (value >= 1_000) return -1
    }
    for (at += 1; at < digitsEnd; at += 1) if (load<u8>(at) !== ZERO) return -1
    return value
  }

  private static expand(from: i32, mantissaEnd: i32, end: i32): bool {
    let exponent = 0
    let at = mantissaEnd + 1
    const sign = load<u8>(at)
    if (!isDigit(sign)) at += 1
    for (; at < end; at += 1) exponent = min(EXPONENT_MAX, exponent * 10 + <i32>(load<u8>(at) - ZERO))
    if (sign === MINUS) exponent = -exponent
    // The digits without the point, and where it is among them.
    let count = 0
    let point = -1
    for (at = from; at < mantissaEnd; at += 1) {
      const byte = load<u8>(at)
      if (byte === DOT) point = count
      else {
        if (count === DIGITS_MAX) return false
        store<u8>(SCRATCH + 128 + count, byte)
        count += 1
      }
    }
    point = (point < 0 ? count : point) + exponent
    let skipped = 0
    while (skipped < count && load<u8>(SCRATCH + 128 + skipped) === ZERO) skipped += 1
    if (skipped === count) {
      store<u8>(SCRATCH, ZERO)
      Digits.start = SCRATCH
      Digits.end = SCRATCH + 1
      return true
    }
    while (load<u8>(SCRATCH + 128 + count - 1) === ZERO) count -= 1
    if (point - skipped > WHOLE_DIGITS_MAX || point <= skipped) return false
    let to = SCRATCH
    for (let i = skipped; i < max(point, count); i += 1) {
      if (i === point) {
        store<u8>(to, DOT)
        to += 1
      }
      store<u8>(to, i < count ? load<u8>(SCRATCH + 128 + i) : ZERO)
      to += 1
    }
    Digits.start = SCRATCH
    Digits.end = to
    return true
  }
}
