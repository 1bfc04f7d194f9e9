import { DOT, isDigit, ZERO } from '../bytes'
import { Decoded } from '../draft'
import { literal } from '../literals'
import { NUMBER, Node, OBJECT } from '../tape'
import { Timestamp, US_PER_S } from '../timestamps'
import { wholeNumber } from './levels'
import { memberOf } from './members'
import { Trimmed } from './words'

const WHOLE_DIGITS_MAX: i32 = 19
const FRACTION_DIGITS_MAX: i32 = 30
/** Smaller numbers are no seconds of a date after March 1973. They are durations or counters. */
const EPOCH_SECONDS_MIN: i64 = 100_000_000

/** Reads a time in any form of a logger, as `Timestamp`. */
export class Time {
  /** @returns whether the value is a time */
  static read(value: Node): bool {
    if (value.kind === NUMBER) return readEpoch(value.start, value.end)
    if (value.kind === OBJECT) return readObject(changetype<i32>(value))
    if (!value.isString) return false
    Decoded.peek(value)
    Trimmed.read(Decoded.start, Decoded.end)
    return Timestamp.read(Trimmed.start, Trimmed.end, true) || readEpoch(Trimmed.start, Trimmed.end)
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
  return seconds >= EPOCH_SECONDS_MIN && Timestamp.set(seconds, us)
}

/** MongoDB: `{"$date": …}`. Loguru: `{"repr": …}`. Log4j: `{"epochSecond": …, "nanoOfSecond": …}`. Google: `{"seconds": …, "nanos": …}`. */
function readObject(object: i32): bool {
  const text = eitherOf(object, DATE, REPR)
  if (text !== 0) return Node.of(text).kind !== OBJECT && Time.read(Node.of(text))
  const seconds = wholeNumberOf(eitherOf(object, SECONDS, EPOCH_SECOND))
  const nanos = wholeNumberOf(eitherOf(object, NANOS, NANO_OF_SECOND))
  return seconds >= 0 && nanos >= 0 && nanos < 1_000 * US_PER_S && setTime(seconds, nanos / 1_000)
}

const DATE = literal('$date')
const REPR = literal('repr')
const SECONDS = literal('seconds')
const EPOCH_SECOND = literal('epochSecond')
const NANOS = literal('nanos')
const NANO_OF_SECOND = literal('nanoOfSecond')

/** The value of the first name of two that an object has. */
function eitherOf(object: i32, first: i32, second: i32): i32 {
  const value = memberOf(object, first)
  return value === 0 ? memberOf(object, second) : value
}

function wholeNumberOf(address: i32): i64 {
  const number = Node.of(address)
  return address !== 0 && number.kind === NUMBER ? wholeNumber(number.start, number.end) : -1
}
