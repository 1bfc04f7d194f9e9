import { isDigit, SPACE, ZERO } from '../bytes'
import { LETTERS, NUMBERINGS } from '../memory'
import { findLevel, Word } from './words'

/** What a record says of its level: 0 for nothing, or else the place of the level in the contract and one, with `EXACT` if it says no more. */
export const EXACT: i32 = 16
/** The first level of the contract. Records without a level have it. */
export const LOG: i32 = 0

/** @param reading not 0 */
export function levelOf(reading: i32): i32 {
  return (reading & (EXACT - 1)) - 1
}

export function isExact(reading: i32): bool {
  return (reading & EXACT) !== 0
}

/** @param numbering one of `roles.ts` */
export function readLevelNumber(numbering: i32, number: i32): i32 {
  return <u32>number < 64 ? <i32>load<u8>(NUMBERINGS + (numbering << 6) + number) : 0
}

/** Reads a severity of MongoDB. */
export function readLevelLetter(letter: u8): i32 {
  const at = <i32>letter - 0x41
  return <u32>at < 26 ? <i32>load<u8>(LETTERS + at) : 0
}

/** Reads the name of a level in any case, or a number as a text. */
export function readLevelText(numbering: i32, from: i32, end: i32): i32 {
  const number = shortNumber(from, end)
  return number >= 0 ? readLevelNumber(numbering, number) : readLevelName(from, end)
}

export function readLevelName(from: i32, end: i32): i32 {
  const word = findLevel(from, end)
  return word === 0 ? 0 : (Word.of(word).value + 1) | (Word.of(word).rank * EXACT)
}

/** The number of up to three digits, which may have a space before them; negative for all other strings. */
function shortNumber(from: i32, end: i32): i32 {
  if (from < end && load<u8>(from) === SPACE) from += 1
  const bytes = end - from
  if (bytes <= 0 || bytes > 3) return -1
  let number = 0
  for (let at = from; at < end; at += 1) {
    if (!isDigit(load<u8>(at))) return -1
    number = number * 10 + <i32>(load<u8>(at) - ZERO)
  }
  return number
}
