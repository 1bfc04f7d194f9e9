import { COLON, COMMA, DOT, isDigit, MINUS, SLASH, SPACE, UPPER_T, UPPER_Z, ZERO } from '../bytes'
import { Decoded } from '../draft'
import { SCRATCH } from '../memory'
import { Names } from '../names'
import { NUMBER, Node, OBJECT, STRING, TEXT } from '../tape'
import { Timestamp, writeTime } from '../timestamps'
import { memberOf } from './members'
import { Digits } from './numbers'
import { isBlank } from './words'

/** Neither ISO 8601 nor a close relative is longer. */
const TIME_BYTES_MAX: i32 = 70
const WHOLE_DIGITS_MAX: i32 = 19
const FRACTION_DIGITS_MAX: i32 = 30
/** Smaller numbers are no seconds of a date after March 1973. They are durations or counters. */
const EPOCH_SECONDS_MIN: i64 = 100_000_000
/** The start of the year 2262. */
const EPOCH_SECONDS_MAX: i64 = 9_214_646_400
const NANO_DIGITS: i32 = 9
const UNDERSCORE: u8 = 0x5f

/** A time in any form of a logger. */
export class Time {
  /** Microseconds since 1970. */
  static us: i64 = 0
  /** Of a number since 1970: up to nine digits of its fraction. */
  private static digits: i32 = 0
  private static digitCount: i32 = 0

  /** @returns whether the value is a time */
  static read(value: Node): bool {
    const kind = value.kind
    if (kind === STRING || kind === TEXT) {
      const mark = Names.mark
      Decoded.read(value)
      const isTime = Time.readString(Decoded.start, Decoded.end)
      Names.rewind(mark)
      return isTime
    }
    if (kind === NUMBER)
      return Digits.read(value.start, value.end) && Time.readEpoch(Digits.start, Digits.end)
    return kind === OBJECT && Time.readObject(value)
  }

  /** The same, for a number of JSON or a string with one. */
  static readSeconds(value: Node): bool {
    if (value.kind === NUMBER)
      return Digits.read(value.start, value.end) && Time.readEpoch(Digits.start, Digits.end)
    if (value.kind !== STRING) return false
    const mark = Names.mark
    Decoded.read(value)
    let start = Decoded.start
    let end = Decoded.end
    while (start < end && isBlank(load<u8>(start))) start += 1
    while (start < end && isBlank(load<u8>(end - 1))) end -= 1
    const isTime = Time.readEpoch(start, end)
    Names.rewind(mark)
    return isTime
  }

  /** Writes the number that was read last as ISO 8601. @returns the end */
  static writeIso(to: i32): i32 {
    writeTime(to, Time.us)
    store<u8>(to + 10, UPPER_T)
    let end = to + 19
    if (Time.digitCount > 0) {
      store<u8>(end, DOT)
      store<u64>(end + 1, load<u64>(SCRATCH, 64))
      store<u8>(end + 9, load<u8>(SCRATCH, 72))
      end += 1 + Time.digitCount
    }
    store<u8>(end, UPPER_Z)
    return end + 1
  }

  private static readString(from: i32, end: i32): bool {
    let start = from
    let last = end
    while (start < last && isBlank(load<u8>(start))) start += 1
    while (start < last && isBlank(load<u8>(last - 1))) last -= 1
    return Time.readIso(start, last) || Time.readEpoch(from, end)
  }

  private static readIso(from: i32, end: i32): bool {
    if (end - from > TIME_BYTES_MAX) return false
    const isIso = Timestamp.read(from, end) || normalize(from, end)
    if (isIso) Time.us = Timestamp.us
    return isIso
  }

  /** Seconds, milliseconds, microseconds or nanoseconds since 1970: the number of digits shows the unit. */
  private static readEpoch(from: i32, end: i32): bool {
    let at = from
    while (at < end && isDigit(load<u8>(at))) at += 1
    const whole = at - from
    if (whole === 0 || whole > WHOLE_DIGITS_MAX) return false
    const fraction = at + 1
    if (at < end) {
      if (load<u8>(at) !== DOT || fraction === end || end - fraction > FRACTION_DIGITS_MAX) return false
      for (at = fraction; at < end; at += 1) if (!isDigit(load<u8>(at))) return false
    }
    const decimals = whole <= 11 ? 0 : whole <= 14 ? 3 : whole <= 17 ? 6 : 9
    const point = from + whole - decimals
    let seconds: i64 = 0
    for (at = from; at < point; at += 1) seconds = seconds * 10 + <i64>(load<u8>(at) - ZERO)
    if (seconds < EPOCH_SECONDS_MIN || seconds >= EPOCH_SECONDS_MAX) return false
    // The digits that follow, without the point.
    let count = 0
    let us: i64 = 0
    for (at = point; at < end && count < NANO_DIGITS; at += 1) {
      const byte = load<u8>(at)
      if (byte === DOT) continue
      store<u8>(SCRATCH + 64 + count, byte)
      if (count < 6) us = us * 10 + <i64>(byte - ZERO)
      count += 1
    }
    Time.digitCount = count
    for (; count < 6; count += 1) us *= 10
    Time.us = seconds * 1_000_000 + us
    return true
  }

  private static readObject(value: Node): bool {
    const object = changetype<i32>(value)
    const date = memberOf(object, '$date')
    if (date !== 0 && (Node.of(date).kind === STRING || Node.of(date).kind === NUMBER))
      return Time.read(Node.of(date))
    const repr = memberOf(object, 'repr')
    if (repr !== 0 && Node.of(repr).kind === STRING) return Time.readIsoOf(Node.of(repr))
    const day = memberOf(object, 'date')
    const zone = memberOf(object, 'timezone')
    if (day !== 0 && Node.of(day).kind === STRING && zone !== 0 && isUtc(Node.of(zone)))
      return Time.readIsoOf(Node.of(day))
    let seconds = memberOf(object, 'seconds')
    if (seconds === 0) seconds = memberOf(object, 'epochSecond')
    let nanos = memberOf(object, 'nanos')
    if (nanos === 0) nanos = memberOf(object, 'nanoOfSecond')
    return seconds !== 0 && nanos !== 0 && Time.readParts(Node.of(seconds), Node.of(nanos))
  }

  private static readIsoOf(value: Node): bool {
    const mark = Names.mark
    Decoded.read(value)
    const isTime = Time.readIso(Decoded.start, Decoded.end)
    Names.rewind(mark)
    return isTime
  }

  /** A number of seconds, and the nanoseconds after it. */
  private static readParts(seconds: Node, nanos: Node): bool {
    if (seconds.kind !== NUMBER || nanos.kind !== NUMBER) return false
    if (!Digits.read(seconds.start, seconds.end)) return false
    const whole = wholeDigits()
    if (whole === 0 || whole > WHOLE_DIGITS_MAX) return false
    const to = SCRATCH + 256
    memory.copy(to, Digits.start, whole)
    store<u8>(to + whole, DOT)
    if (!Digits.read(nanos.start, nanos.end)) return false
    const digits = wholeDigits()
    if (digits === 0 || digits > FRACTION_DIGITS_MAX) return false
    let at = to + whole + 1
    for (let i = digits; i < NANO_DIGITS; i += 1) {
      store<u8>(at, ZERO)
      at += 1
    }
    memory.copy(at, Digits.start, digits)
    return Time.readEpoch(to, at + digits)
  }
}

/** The digits of a whole number; 0 if it has a fraction. */
function wholeDigits(): i32 {
  let at = Digits.start
  const end = Digits.end
  while (at < end && isDigit(load<u8>(at))) at += 1
  const digits = at - Digits.start
  for (at += 1; at < end; at += 1) if (load<u8>(at) !== ZERO) return 0
  return digits
}

const UTC: u32 = 0x435455
const GMT: u32 = 0x544d47
const UTC_MASK: u32 = 0xffffff

function isUtc(value: Node): bool {
  return value.kind === STRING && value.bytes === 3 && (load<u32>(value.start) & UTC_MASK) === UTC
}

/**
 * Reads what loggers make of ISO 8601: a space or an underscore in place of the T, slashes, dots or nothing between the parts of the date, no
 * colons, `UTC` or an offset after a space.
 */
function normalize(from: i32, end: i32): bool {
  let at = from
  let to = SCRATCH
  if (end - at < 12) return false
  store<u32>(to, load<u32>(at))
  at += 4
  const separator = load<u8>(at)
  const isSeparated = separator === MINUS || separator === SLASH || separator === DOT
  if (isSeparated) at += 1
  store<u8>(to + 4, MINUS)
  store<u16>(to + 5, load<u16>(at))
  at += 2
  if (isSeparated) {
    if (load<u8>(at) !== separator) return false
    at += 1
  }
  store<u8>(to + 7, MINUS)
  store<u16>(to + 8, load<u16>(at))
  at += 2
  const between = load<u8>(at)
  if (between !== SPACE && between !== UNDERSCORE && (between & ~0x20) !== UPPER_T) return false
  at += 1
  store<u8>(to + 10, UPPER_T)
  store<u16>(to + 11, load<u16>(at))
  at += 2
  if (at < end && load<u8>(at) === COLON) at += 1
  store<u8>(to + 13, COLON)
  store<u16>(to + 14, load<u16>(at))
  at += 2
  if (at > end) return false
  to += 16
  const second = at < end && load<u8>(at) === COLON ? at + 1 : at
  if (second + 2 <= end && isDigit(load<u8>(second)) && isDigit(load<u8>(second + 1))) {
    store<u8>(to, COLON)
    store<u16>(to + 1, load<u16>(second))
    to += 3
    at = second + 2
    const point = at < end ? load<u8>(at) : 0
    if (point === DOT || point === COMMA) {
      const start = at
      for (at += 1; at < end && isDigit(load<u8>(at)); at += 1) {}
      memory.copy(to, start, at - start)
      to += at - start
    }
  }
  if (at + 1 < end && load<u8>(at) === SPACE) at += 1
  const zone = end - at === 3 ? load<u32>(at) & UTC_MASK : 0
  if (zone === UTC || zone === GMT) {
    store<u8>(to, UPPER_Z)
    to += 1
  } else {
    memory.copy(to, at, end - at)
    to += end - at
  }
  return Timestamp.read(SCRATCH, to)
}
