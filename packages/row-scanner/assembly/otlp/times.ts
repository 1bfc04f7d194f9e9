import { COLON, COMMA, copy, DOT, MINUS, QUOTE, UPPER_T, UPPER_Z } from '../bytes'
import { DATE } from '../memory'
import { Lines } from './lines'

/** The end of the year 2261, in nanoseconds since 1970. */
const END_NS: u64 = 9_214_646_400_000_000_000
const DAY_S: u64 = 86_400
const DATE_BYTES: i32 = 10

/** The day whose date is at `DATE`, as a number of days since 1970. */
let day: i32 = -1

export function isTimestamp(unixNano: u64): bool {
  return unixNano > 0 && unixNano < END_NS
}

/** Writes a string with microseconds, and a comma: `"2026-11-20T22:43:01.123456Z",`. */
export function writeTimestamp(unixNano: u64): void {
  const us = unixNano / 1_000
  const s = us / 1_000_000
  const dayNow = <i32>(s / DAY_S)
  if (dayNow !== day) writeDate(dayNow)
  const secondOfDay = <i32>(s % DAY_S)
  Lines.byte(QUOTE)
  Lines.copy(DATE, DATE_BYTES)
  Lines.byte(UPPER_T)
  Lines.padded(secondOfDay / 3_600, 2)
  Lines.byte(COLON)
  Lines.padded((secondOfDay / 60) % 60, 2)
  Lines.byte(COLON)
  Lines.padded(secondOfDay % 60, 2)
  Lines.byte(DOT)
  Lines.padded(<i32>(us % 1_000_000), 6)
  Lines.byte(UPPER_Z)
  Lines.byte(QUOTE)
  Lines.byte(COMMA)
}

/** Writes the date of a day to `DATE`. Years begin in March here, so that the leap day is the last one of a year. */
function writeDate(dayNow: i32): void {
  // Days since 0000-03-01. The calendar repeats after 400 years.
  const days = dayNow + 719_468
  const era = days / 146_097
  const dayOfEra = days - era * 146_097
  const yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
  const dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  const month = (5 * dayOfYear + 2) / 153
  const isNextYear = month >= 10
  const end = Lines.end
  Lines.padded(yearOfEra + era * 400 + (isNextYear ? 1 : 0), 4)
  Lines.byte(MINUS)
  Lines.padded(isNextYear ? month - 9 : month + 3, 2)
  Lines.byte(MINUS)
  Lines.padded(dayOfYear - (153 * month + 2) / 5 + 1, 2)
  copy(DATE, end, DATE_BYTES)
  Lines.end = end
  day = dayNow
}
