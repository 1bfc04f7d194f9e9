import { COLON, DOT, isDigit, MINUS, UPPER_T, UPPER_Z, ZERO } from './bytes'

/** The length up to the seconds. */
const SECONDS_BYTES: i32 = 19
/** Nanoseconds. */
const FRACTION_DIGITS_MAX: i32 = 9

/**
 * Whether a text is `YYYY-MM-DDThh:mm:ss[.fraction][Z]` of 1970–2261 with a day that every month has. Nearly all loggers write
 * this form, and ClickHouse reads it as it is. `parseTimestamp` of @sluice/rows accepts the same texts, and reads all others.
 */
export function isPlainUtc(from: i32, to: i32): bool {
  if (to - from < SECONDS_BYTES) return false
  const yearOfCentury = twoDigits(from + 2)
  return (
    // Without this check, 20x0 would be the year 1999.
    yearOfCentury >= 0 &&
    isWithin(twoDigits(from) * 100 + yearOfCentury, 1970, 2261) &&
    load<u8>(from + 4) === MINUS &&
    isWithin(twoDigits(from + 5), 1, 12) &&
    load<u8>(from + 7) === MINUS &&
    isWithin(twoDigits(from + 8), 1, 28) &&
    load<u8>(from + 10) === UPPER_T &&
    isWithin(twoDigits(from + 11), 0, 23) &&
    load<u8>(from + 13) === COLON &&
    isWithin(twoDigits(from + 14), 0, 59) &&
    load<u8>(from + 16) === COLON &&
    isWithin(twoDigits(from + 17), 0, 59) &&
    isPlainEnd(from + SECONDS_BYTES, to)
  )
}

/** Whether the seconds are followed by nothing, a fraction, `Z`, or a fraction and `Z`. */
function isPlainEnd(from: i32, to: i32): bool {
  const end = load<u8>(to - 1) === UPPER_Z ? to - 1 : to
  if (end === from) return true
  if (load<u8>(from) !== DOT || !isWithin(end - from - 1, 1, FRACTION_DIGITS_MAX)) return false
  for (let at = from + 1; at < end; at += 1) if (!isDigit(load<u8>(at))) return false
  return true
}

/** The number of two digits; -1 if they are not digits. */
function twoDigits(at: i32): i32 {
  const tens = load<u8>(at)
  const ones = load<u8>(at + 1)
  return isDigit(tens) && isDigit(ones) ? <i32>(tens - ZERO) * 10 + <i32>(ones - ZERO) : -1
}

function isWithin(value: i32, least: i32, most: i32): bool {
  return value >= least && value <= most
}
