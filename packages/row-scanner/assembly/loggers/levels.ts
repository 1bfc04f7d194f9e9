import { DOT, isDigit, SPACE, ZERO } from '../bytes'
import { NUMBERINGS } from '../memory'
import { Trimmed, Word, wordOf } from './words'

/** What a record says of its level: 0 for nothing, or else the place of the level in the contract and one, with `EXACT` if it says no more. */
const EXACT: i32 = 16
/** The first level of the contract. Records without a level have it. */
export const LOG: i32 = 0

// The numberings of levels. `numberings` of @sluice/records has the same order.
export const PINO: i32 = 0
export const SYSLOG: i32 = 1
export const OTEL: i32 = 2
/** Numbers are the places of letters in the alphabet. */
export const MONGO: i32 = 4
const NUMBERS: i32 = 64

/** @param reading not 0 */
export function levelOf(reading: i32): i32 {
  return (reading & (EXACT - 1)) - 1
}

export function isExact(reading: i32): bool {
  return (reading & EXACT) !== 0
}

/** @param numbering one of those above */
export function readLevelNumber(numbering: i32, number: i32): i32 {
  return <u32>number < <u32>NUMBERS ? <i32>load<u8>(NUMBERINGS + numbering * NUMBERS + number) : 0
}

/** Reads the name of a level in any case, or a number as a text, which may have a space before it. */
export function readLevelText(numbering: i32, from: i32, end: i32): i32 {
  const number = wholeNumber(load<u8>(from) === SPACE ? from + 1 : from, end)
  return number < 0 ? readLevelName(from, end) : readLevelNumber(numbering, <i32>min(number, NUMBERS))
}

/** Reads the name of a level in any case, with blanks around it or not. */
export function readLevelName(from: i32, end: i32): i32 {
  Trimmed.read(from, end)
  const word = wordOf(Trimmed.start, Trimmed.end)
  return word === 0 ? 0 : <i32>Word.of(word).level
}

const DIGITS_MAX: i32 = 18

/** The number that a text is; negative for all other texts. A fraction may only have zeros. */
export function wholeNumber(from: i32, end: i32, digitsMax: i32 = DIGITS_MAX): i64 {
  let number: i64 = 0
  let at = from
  for (; at < end && isDigit(load<u8>(at)); at += 1) number = number * 10 + <i64>(load<u8>(at) - ZERO)
  if (at === from || at - from > digitsMax || (at < end && load<u8>(at) !== DOT)) return -1
  for (at += 1; at < end; at += 1) if (load<u8>(at) !== ZERO) return -1
  return number
}
