import { COLON, COMMA, DOT, isDigit, MINUS, SLASH, SPACE, UPPER_T, UPPER_Z, ZERO } from '../bytes'
import { Decoded } from '../draft'
import { SCRATCH } from '../memory'
import { NUMBER, Node, OBJECT } from '../tape'
import { Timestamp } from '../timestamps'
import { wholeNumber } from './levels'
import { NAME_SET_BYTES, NameSet } from './name-set'
import { Trimmed } from './words'

/** Neither ISO 8601 nor a close relative is longer. */
const TIME_BYTES_MAX: i32 = 70
const WHOLE_DIGITS_MAX: i32 = 19
const FRACTION_DIGITS_MAX: i32 = 30
/** Smaller numbers are no seconds of a date after March 1973. They are durations or counters. */
const EPOCH_SECONDS_MIN: i64 = 100_000_000
/** The start of the year 2262. */
const EPOCH_SECONDS_MAX: i64 = 9_214_646_400
const US_PER_S: i64 = 1_000_000

/** A time in any form of a logger. */
export class Time {
  /** Microseconds since 1970. */
  static us: i64 = 0

  /** @returns whether the value is a time */
  static read(value: Node): bool {
    if (value.kind === NUMBER) return readEpoch(value.start, value.end)
    if (value.kind === OBJECT) return readObject(changetype<i32>(value))
    if (!value.isString) return false
    Decoded.peek(value)
    Trimmed.read(Decoded.start, Decoded.end)
    return readIso(Trimmed.start, Trimmed.end) || readEpoch(Trimmed.start, Trimmed.end)
  }
}

/** Seconds, milliseconds, microseconds or nanoseconds since 1970: the number of digits shows the unit. */
function readEpoch(from: i32, end: i32): bool {
  let at = from
  while (at < end && isDigit(load<u8>(at))) at += 1
  const whole = at - from
  if (whole === 0 || whole > WHOLE_DIGITS_MAX) return false
  if (at < end) {
    if (load<u8>(at) !== DOT || end - at < 2 || end - at > FRACTION_DIGITS_MAX + 1) return false
    for (at += 1; at < end; at += 1) if (!isDigit(load<u8>(at))) return false
  }
  const point = from + (whole <= 11 ? whole : whole <= 14 ? whole - 3 : whole <= 17 ? whole - 6 : whole - 9)
  let seconds: i64 = 0
  for (at = from; at < point; at += 1) seconds = seconds * 10 + <i64>(load<u8>(at) - ZERO)
  let us: i64 = 0
  let unit = US_PER_S
  for (; at < end; at += 1) {
    if (load<u8>(at) === DOT) continue
    unit /= 10
    us += unit * <i64>(load<u8>(at) - ZERO)
  }
  return setTime(seconds, us)
}

function setTime(seconds: i64, us: i64): bool {
  if (seconds < EPOCH_SECONDS_MIN || seconds >= EPOCH_SECONDS_MAX) return false
  Time.us = seconds * US_PER_S + us
  return true
}

/** MongoDB: `{"$date": …}`. Loguru: `{"repr": …}`. Log4j: `{"epochSecond": …, "nanoOfSecond": …}`. Google: `{"seconds": …, "nanos": …}`. */
function readObject(object: i32): bool {
  PARTS.find(object)
  const text = eitherOf(DATE)
  if (text !== 0) return Node.of(text).kind !== OBJECT && Time.read(Node.of(text))
  const seconds = wholeNumberOf(SECONDS)
  const nanos = wholeNumberOf(NANOS)
  return seconds >= 0 && nanos >= 0 && nanos < 1_000 * US_PER_S && setTime(seconds, nanos / 1_000)
}

const PARTS = NameSet.make(
  memory.data(NAME_SET_BYTES, 16),
  '$date repr seconds epochSecond nanos nanoOfSecond',
)
const DATE: i32 = 0
const SECONDS: i32 = 2
const NANOS: i32 = 4

/** The value of the first name of two that an object has. */
function eitherOf(place: i32): i32 {
  return PARTS.valueOf(PARTS.nameOf(place) === 0 ? place + 1 : place)
}

function wholeNumberOf(place: i32): i64 {
  const address = eitherOf(place)
  const number = Node.of(address)
  return address !== 0 && number.kind === NUMBER ? wholeNumber(number.start, number.end) : -1
}

function readIso(from: i32, end: i32): bool {
  if (end - from > TIME_BYTES_MAX) return false
  const isIso = Timestamp.read(from, end) || readRelative(from, end)
  if (isIso) Time.us = Timestamp.us
  return isIso
}

const FORM: string = '0000-00-00T00:00'
const UNDERSCORE: u8 = 0x5f
const UTC: u32 = 0x435455
const GMT: u32 = 0x544d47

/**
 * Reads what loggers make of ISO 8601: a space or an underscore in place of the T, slashes, dots or nothing between the parts of the date, no
 * colons, `UTC` or an offset after a space.
 */
function readRelative(from: i32, end: i32): bool {
  const separator = load<u8>(from + 4)
  let at = from
  for (let i = 0; i < FORM.length; i += 1) {
    const form = <u8>FORM.charCodeAt(i)
    const byte = at < end ? load<u8>(at) : 0
    store<u8>(SCRATCH + i, form === ZERO ? byte : form)
    if (form === ZERO || isBetween(byte, form, separator)) at += 1
    else if (form === UPPER_T) return false
  }
  let to = SCRATCH + FORM.length
  const second = at < end && load<u8>(at) === COLON ? at + 1 : at
  if (second < end && isDigit(load<u8>(second))) {
    store<u8>(to, COLON)
    to += 1
    at = second
  }
  for (; at < end && (isDigit(load<u8>(at)) || load<u8>(at) === DOT || load<u8>(at) === COMMA); at += 1) {
    store<u8>(to, load<u8>(at))
    to += 1
  }
  if (at + 1 < end && load<u8>(at) === SPACE) at += 1
  const zone = end - at === 3 ? load<u32>(at) & 0xffffff : 0
  const isUtc = zone === UTC || zone === GMT
  if (isUtc) store<u8>(to, UPPER_Z)
  else memory.copy(to, at, max(end - at, 0))
  return Timestamp.read(SCRATCH, isUtc ? to + 1 : to + end - at)
}

/** Whether a byte stands for one that is not a digit. */
function isBetween(byte: u8, form: u8, separator: u8): bool {
  if (form === COLON) return byte === COLON
  if (form === UPPER_T) return byte === SPACE || byte === UNDERSCORE || (byte & ~0x20) === UPPER_T
  return byte === separator && (byte === MINUS || byte === SLASH || byte === DOT)
}
