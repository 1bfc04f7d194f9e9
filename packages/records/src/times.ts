import { isPlainObject, type Members } from './members.ts'

interface RawJson {
  readonly rawJSON: string
}
/** Of ECMAScript 2026, which TypeScript's library does not declare yet, and Node 20 does not have. */
const { isRawJSON = (_value): _value is RawJson => false } = JSON as unknown as {
  readonly isRawJSON?: (value: unknown) => value is RawJson
}

/** Whether a value is a number of JSON. One that was parsed exactly is an object. */
export function isNumber(value: unknown): boolean {
  return typeof value === 'number' || isRawJSON(value)
}

/** A time in ISO 8601 or as a number since 1970, or one of the objects that loggers make of a time. */
export function readTime(value: unknown): string | undefined {
  if (typeof value === 'string') return timeOfIso(value.trim()) ?? timeOfEpoch(value.trim())
  if (typeof value === 'number') return timeOfEpoch(String(value))
  if (isRawJSON(value)) return timeOfEpoch(value.rawJSON)
  return isPlainObject(value) ? readTimeObject(value) : undefined
}

/** MongoDB: `{"$date": …}`. Loguru: `{"repr": …}`. Log4j: `{"epochSecond": …, "nanoOfSecond": …}`. Google: `{"seconds": …, "nanos": …}`. */
function readTimeObject(value: Members): string | undefined {
  const { repr, $date = repr, seconds = value['epochSecond'], nanos = value['nanoOfSecond'] } = value
  if ($date !== undefined) return isPlainObject($date) ? undefined : readTime($date)
  const isWhole = Number.isInteger(seconds) && Number.isInteger(nanos)
  if (!isWhole || Number(nanos) < 0 || Number(nanos) >= 1e9 || Number(seconds) >= 1e11) return undefined
  return timeOfEpoch(`${String(seconds)}.${String(nanos).padStart(9, '0')}`)
}

/**
 * ISO 8601, and what loggers make of it: a space or an underscore in place of the T, slashes or nothing between the parts
 * of the date, a comma before the fraction, `UTC` or an offset after a space.
 */
const DATE_TIME =
  /^(\d{4})([-/.]?)(\d\d)\2(\d\d)[Tt _](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,30}))?)?(?: ?([Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?))?$/

/** What the API reads: such a time is left as it is. */
const CONTRACT_FORM = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:[.,]\d{1,30})?)?(?:[Zz]|[+-]\d\d(?::?\d\d)?)?$/

/** Neither ISO 8601 nor a close relative is longer. */
const TIME_CHARACTERS_MAX = 70

/** The time as the contract's ISO 8601, with all digits and its offset; undefined if the string is not such a time. */
export function timeOfIso(string: string): string | undefined {
  if (string.length > TIME_CHARACTERS_MAX) return undefined
  const match = DATE_TIME.exec(string)
  if (match === null) return undefined
  const [, year = '', , month = '', day = '', hour = '', minute = '', second = '00', fraction, zone = ''] =
    match
  const offset = zone === 'UTC' || zone === 'GMT' ? 'Z' : zone
  const date = `${year}-${month}-${day}`
  // `Date` has no leap seconds, and takes 30 February as 2 March.
  const clock = `${hour}:${minute}:${second === '60' ? '59' : second}`
  const localMs = Date.parse(`${date}T${clock}Z`)
  if (Number.isNaN(localMs) || !new Date(localMs).toISOString().startsWith(date)) return undefined
  const offsetMs = offsetMsOf(offset)
  const utcMs = localMs + (second === '60' ? 1_000 : 0) - offsetMs
  if (!(utcMs >= 0 && utcMs < EPOCH_SECONDS_MAX * 1_000)) return undefined
  if (CONTRACT_FORM.test(string)) return string
  const point = fraction === undefined ? '' : `.${fraction}`
  return `${date}T${hour}:${minute}:${second}${point}${offset}`
}

/** How far the local time is ahead. NaN if it is no offset. */
function offsetMsOf(offset: string): number {
  if (offset.length < 2) return 0
  const [hours, minutes] = [+offset.slice(1, 3), +offset.slice(3).replace(':', '')]
  return hours > 23 || minutes > 59
    ? NaN
    : (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}

/** A decimal number without a sign or an exponent. 19 digits are the nanoseconds of the year 2261. */
const DECIMAL = /^(\d{1,19})(?:\.(\d{1,30}))?$/

/** Smaller numbers are no seconds of a date after March 1973. They are durations or counters. */
const EPOCH_SECONDS_MIN = 100_000_000
/** The end of the year 2261, which is the last of the contract. */
const EPOCH_SECONDS_MAX = Date.UTC(2262, 0, 1) / 1_000

/**
 * The time of a number since 1970 as ISO 8601 in UTC. The number of its digits shows the unit: with up to 11 digits it
 * has seconds, up to 14 milliseconds, up to 17 microseconds, else nanoseconds. Each unit has the range of the years 1973
 * to 2261 for itself. All digits are kept, up to nine of the fraction.
 *
 * @param string a decimal number
 */
export function timeOfEpoch(string: string): string | undefined {
  const [, whole, fraction = ''] = DECIMAL.exec(string) ?? []
  if (whole === undefined) return undefined
  const decimals = whole.length <= 11 ? 0 : whole.length <= 14 ? 3 : whole.length <= 17 ? 6 : 9
  const seconds = Number(whole.slice(0, whole.length - decimals))
  if (seconds < EPOCH_SECONDS_MIN || seconds >= EPOCH_SECONDS_MAX) return undefined
  const digits = `${whole.slice(whole.length - decimals)}${fraction}`.slice(0, 9)
  const point = digits === '' ? '' : `.${digits}`
  return `${new Date(seconds * 1_000).toISOString().slice(0, 19)}${point}Z`
}
