import { COLON, COMMA, DOT, isDigit, MINUS, PLUS, SLASH, SPACE, UPPER_T, UPPER_Z, ZERO } from './bytes'

const UNDERSCORE: u8 = 0x5f
const UTC: u32 = 0x435455
const GMT: u32 = 0x544d47
/** Milliseconds, microseconds … of any time: at most this many digits are read. */
const FRACTION_DIGITS_MAX: i32 = 30
export const US_PER_S: i64 = 1_000_000
const S_PER_DAY: i64 = 86_400
/** The start of the year 2262 in seconds. */
const END_S: i64 = 9_214_646_400

/** The longest form of a timestamp. */
const TIMESTAMP_BYTES_MAX: i32 = 64

/** Reads ISO 8601 date-times: the form that `DATE_TIME` of @sluice/rows describes, and what loggers make of it. */
export class Timestamp {
  /** Microseconds since 1970. */
  static us: i64 = 0
  /** The last date that was read, and its day. */
  private static date: u64 = 0
  private static dateEnd: u32 = 0
  private static day: i64 = 0

  /**
   * @param isLoose whether it may have a space or an underscore in place of the T, slashes, dots or nothing between the parts of the date, no colons,
   * and `UTC` or an offset after a space
   * @returns whether the string is a date-time of the years 1970–2261
   */
  static read(from: i32, end: i32, isLoose: bool = false): bool {
    const separator = load<u8>(from + 4)
    if (end - from > TIMESTAMP_BYTES_MAX || (separator !== MINUS && !isLoose)) return false
    const gap = isDigit(separator) ? 0 : 1
    if (!Timestamp.readDate(from, separator, gap)) return false
    let at = from + 8 + 2 * gap
    const between = load<u8>(at)
    const isApart =
      (between & ~0x20) === UPPER_T || (isLoose && (between === SPACE || between === UNDERSCORE))
    const hour = twoDigits(at + 1)
    at += 3
    if (load<u8>(at) === COLON) at += 1
    else if (!isLoose) return false
    const minute = twoDigits(at)
    at += 2
    if (!isApart || <u32>hour > 23 || <u32>minute > 59 || at > end) return false
    let second = 0
    let us = 0
    const hasColon = at < end && load<u8>(at) === COLON
    if (hasColon || (isLoose && at < end && isDigit(load<u8>(at)))) {
      at += <i32>hasColon
      second = twoDigits(at)
      at += 2
      if (<u32>second > 60 || at > end) return false
      const point = at < end ? load<u8>(at) : 0
      if (point === DOT || point === COMMA) {
        const start = at + 1
        let unit = <i32>US_PER_S
        for (at = start; at < end && isDigit(load<u8>(at)); at += 1) {
          unit /= 10
          us += unit * <i32>(load<u8>(at) - ZERO)
        }
        if (at === start || at - start > FRACTION_DIGITS_MAX) return false
      }
    }
    if (isLoose && at + 1 < end && load<u8>(at) === SPACE) at += 1
    const ahead = at === end || (isLoose && isUtc(at, end)) ? 0 : offsetMinutes(at, end)
    if (ahead === NOT_AN_OFFSET) return false
    return Timestamp.set(Timestamp.day * S_PER_DAY + <i64>((hour * 60 + minute - ahead) * 60 + second), us)
  }

  /** @returns whether it is a time of the years 1970–2261 */
  static set(seconds: i64, us: i64): bool {
    Timestamp.us = seconds * US_PER_S + us
    return seconds >= 0 && seconds < END_S
  }

  /** @param separator of its parts @param gap the bytes between them: 0 or 1 */
  private static readDate(from: i32, separator: u8, gap: i32): bool {
    const date = load<u64>(from)
    const dateEnd: u32 = load<u16>(from + 8)
    if (date === Timestamp.date && dateEnd === Timestamp.dateEnd) return true
    const century = twoDigits(from)
    const yearOfCentury = twoDigits(from + 2)
    const month = twoDigits(from + 4 + gap)
    const day = twoDigits(from + 6 + 2 * gap)
    const isSeparator = separator === MINUS || separator === SLASH || separator === DOT
    if (gap > 0 && (!isSeparator || load<u8>(from + 7) !== separator)) return false
    if ((century | yearOfCentury) < 0) return false
    const year = century * 100 + yearOfCentury
    // The offset may move the last day of 1969 into 1970, and the first of 2262 into 2261.
    if (year < 1969 || year > 2262 || <u32>(month - 1) > 11 || day < 1 || day > daysOf(year, month))
      return false
    Timestamp.date = date
    Timestamp.dateEnd = dateEnd
    Timestamp.day = dayOf(year, month, day)
    return true
  }
}

function isUtc(at: i32, end: i32): bool {
  const zone = load<u32>(at) & 0xffffff
  return end - at === 3 && (zone === UTC || zone === GMT)
}

const NOT_AN_OFFSET: i32 = i32.MAX_VALUE

/** `Z`, `±hh`, `±hhmm` or `±hh:mm`. */
function offsetMinutes(at: i32, end: i32): i32 {
  const sign = load<u8>(at)
  const bytes = end - at
  if ((sign & ~0x20) === UPPER_Z) return bytes === 1 ? 0 : NOT_AN_OFFSET
  if (sign !== PLUS && sign !== MINUS) return NOT_AN_OFFSET
  const hours = twoDigits(at + 1)
  let minutes = 0
  if (bytes === 6 && load<u8>(at + 3) === COLON) minutes = twoDigits(at + 4)
  else if (bytes === 5) minutes = twoDigits(at + 3)
  else if (bytes !== 3) return NOT_AN_OFFSET
  if (<u32>hours > 23 || <u32>minutes > 59) return NOT_AN_OFFSET
  const ahead = hours * 60 + minutes
  return sign === MINUS ? -ahead : ahead
}

/** The number of two digits; negative if they are not digits. */
function twoDigits(at: i32): i32 {
  const tens = load<u8>(at)
  const ones = load<u8>(at + 1)
  return isDigit(tens) && isDigit(ones) ? <i32>(tens - ZERO) * 10 + <i32>(ones - ZERO) : -1
}

function daysOf(year: i32, month: i32): i32 {
  if (month === 2) return isLeap(year) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

function isLeap(year: i32): bool {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

/** Days since 1970. The year begins in March, so that the leap day is its last. */
function dayOf(year: i32, month: i32, day: i32): i64 {
  const y = month > 2 ? year : year - 1
  const dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
  return y * 365 + y / 4 - y / 100 + y / 400 + dayOfYear - 719_468
}
