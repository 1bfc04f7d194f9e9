import { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, DOT, MINUS, OPEN_BRACE, OPEN_BRACKET } from '../bytes'
import { writeDouble } from '../host'
import { metadataDepthMax } from '../limits'
import { Lines } from './lines'
import * as texts from './texts'
import { Wire } from './wire'

/** The tags of AnyValue. */
export const STRING: u8 = 0x0a
const BOOL: u8 = 0x10
const INT: u8 = 0x18
const DOUBLE: u8 = 0x21
const ARRAY: u8 = 0x2a
const KVLIST: u8 = 0x32
/** The tags of KeyValue, and that of the values of a list. */
export const KEY: u8 = 0x0a
export const VALUE: u8 = 0x12
const ELEMENT: u8 = 0x0a

/** Integers up to here are exact as doubles, and JSON.stringify writes all their digits. */
const SAFE_INTEGER_MAX: i64 = 0x1f_ffff_ffff_ffff

/**
 * Writes the AnyValue from `Wire.at` to `end` as JSON, and a comma.
 *
 * @param level the level of the object or array that has the value
 * @returns false for a value that is not ordinary, for example bytes, or one with two fields
 */
export function writeValue(end: i32, level: i32): bool {
  if (Wire.at === end) {
    Lines.text(texts.nullWord)
    return true
  }
  const tag = load<u8>(Wire.at)
  Wire.at += 1
  if (tag === STRING) {
    const textEnd = Wire.contentEnd(end)
    if (textEnd !== end) return false
    Lines.string(Wire.at, end)
    Wire.at = end
  } else if (tag === INT) {
    if (!Wire.varint(end)) return false
    const value = <i64>Wire.value
    if (value > SAFE_INTEGER_MAX || value < -SAFE_INTEGER_MAX) return false
    Lines.integer(value)
  } else if (tag === BOOL) {
    if (!Wire.varint(end)) return false
    Lines.text(Wire.value === 0 ? texts.falseWord : texts.trueWord)
    return Wire.at === end
  } else if (tag === DOUBLE) {
    if (!writeNumber(Wire.pass(8, end))) return false
  } else if (tag === ARRAY || tag === KVLIST) {
    const listEnd = Wire.contentEnd(end)
    if (listEnd !== end || level >= metadataDepthMax) return false
    if (!(tag === ARRAY ? writeArray(end, level + 1) : writeObject(end, level + 1))) return false
  } else return false
  Lines.byte(COMMA)
  return Wire.at === end
}

/** @param from the address of a double; -1 if there is none */
function writeNumber(from: i32): bool {
  if (from < 0) return false
  const value = load<f64>(from)
  const isInteger = Math.abs(value) <= <f64>SAFE_INTEGER_MAX && Math.trunc(value) === value
  if (isInteger) {
    Lines.integer(<i64>value)
    return true
  }
  if (writeFraction(value)) return true
  const bytes = writeDouble(from, Lines.end)
  Lines.end += bytes
  return bytes > 0
}

/** With more digits, several decimals may be the same double. */
const DECIMAL_MAX: f64 = 999_999_999_999_999
const FRACTION_DIGITS_MAX: i32 = 6

/**
 * Writes a number with few digits, as JSON.stringify writes it. A division of two integers has the double that is nearest to the decimal,
 * and no other decimal with at most fifteen digits has the same one.
 */
function writeFraction(value: f64): bool {
  let scale: f64 = 1
  for (let digits = 1; digits <= FRACTION_DIGITS_MAX; digits += 1) {
    scale *= 10
    const scaled = Math.round(Math.abs(value) * scale)
    if (!(scaled <= DECIMAL_MAX)) return false
    if (scaled / scale !== Math.abs(value)) continue
    if (value < 0) Lines.byte(MINUS)
    const decimal = <u64>scaled
    const whole = decimal / <u64>scale
    Lines.digits(whole)
    Lines.byte(DOT)
    Lines.padded(<i32>(decimal - whole * <u64>scale), digits)
    return true
  }
  return false
}

function writeArray(end: i32, level: i32): bool {
  Lines.byte(OPEN_BRACKET)
  while (Wire.at < end) {
    if (load<u8>(Wire.at) !== ELEMENT) return false
    Wire.at += 1
    const elementEnd = Wire.contentEnd(end)
    if (elementEnd < 0 || !writeValue(elementEnd, level)) return false
  }
  Lines.close(CLOSE_BRACKET)
  return true
}

function writeObject(end: i32, level: i32): bool {
  Lines.byte(OPEN_BRACE)
  while (Wire.at < end) {
    if (load<u8>(Wire.at) !== ELEMENT) return false
    Wire.at += 1
    const memberEnd = Wire.contentEnd(end)
    if (memberEnd < 0 || !writeMember(memberEnd, level)) return false
  }
  Lines.close(CLOSE_BRACE)
  return true
}

/** Writes the KeyValue from `Wire.at` to `end` as a member of an object, and a comma. */
function writeMember(end: i32, level: i32): bool {
  const key = Key.read(end)
  if (key < 0) return false
  Lines.string(key, Key.end)
  Lines.byte(COLON)
  return writeValue(end, level)
}

/** Reads the key of a KeyValue. */
export class Key {
  static end: i32 = 0

  /** Moves to the content of the value, which must follow the key and end with the KeyValue. @returns the start of the key; -1 otherwise */
  static read(end: i32): i32 {
    if (Wire.at >= end || load<u8>(Wire.at) !== KEY) return -1
    Wire.at += 1
    Key.end = Wire.contentEnd(end)
    if (Key.end < 0) return -1
    const start = Wire.at
    Wire.at = Key.end
    if (Wire.at >= end || load<u8>(Wire.at) !== VALUE) return -1
    Wire.at += 1
    return Wire.contentEnd(end) === end ? start : -1
  }
}
