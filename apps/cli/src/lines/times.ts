import { timeOfIso } from '@sluice/records'

/** Which offset from UTC local times have. */
export interface TimeZone {
  /** The offset as ISO 8601 writes it: `Z` or `+01:00`. The parts must be those of a valid local time. */
  offsetAt(year: number, month: number, day: number, hour: number, minute: number): string
}

/** Transitions to and from daylight saving time happen at a multiple of this. */
const QUARTER_MINUTES = 15

/**
 * A time zone of the IANA database.
 *
 * A local time that occurs twice, when daylight saving time ends, has the offset after the change. A local time that does not
 * exist has one of the two offsets around it.
 *
 * @throws RangeError if there is no time zone of this name
 */
export function timeZoneOf(name: string): TimeZone {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  if (format.resolvedOptions().timeZone === 'UTC') return { offsetAt: () => 'Z' }
  // Consecutive lines are of the same quarter of an hour. A computation takes microseconds.
  let knownQuarter = Number.NaN
  let knownOffset = ''
  return {
    offsetAt: (year, month, day, hour, minute) => {
      const localMs = Date.UTC(year, month - 1, day, hour, minute - (minute % QUARTER_MINUTES))
      if (localMs !== knownQuarter) {
        knownQuarter = localMs
        const guess = minutesAheadAt(localMs, format)
        knownOffset = formatOffset(minutesAheadAt(localMs - guess * 60_000, format))
      }
      return knownOffset
    },
  }
}

/** The offset of the zone at a time, in whole minutes. */
function minutesAheadAt(epochMs: number, format: Intl.DateTimeFormat): number {
  const parts: Record<string, number> = {}
  for (const { type, value } of format.formatToParts(epochMs)) parts[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = parts
  return Math.round((Date.UTC(year, month - 1, day, hour, minute) - epochMs) / 60_000)
}

function formatOffset(minutesAhead: number): string {
  if (minutesAhead === 0) return 'Z'
  const minutes = Math.abs(minutesAhead)
  return `${minutesAhead < 0 ? '-' : '+'}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`
}

const twoDigits = (number: number | string): string => String(number).trim().padStart(2, '0')

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const MONTH = `(?<month>${months.join('|')})`
const DAY = String.raw`(?<day>[ \d]?\d)`
const CLOCK = String.raw`(?<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)`

/** The times that are not ISO 8601. The formats of lines embed these expressions, and `TimeReader` reads what they match. */
export const timeForms = {
  /** `Nov 20 10:00:00`: RFC 3164. */
  syslog: `${MONTH} ${DAY} ${CLOCK}`,
  /** `20/Nov/2026:10:00:00 +0000`: access logs. */
  access: String.raw`${DAY}\/${MONTH}\/(?<year>\d{4}):${CLOCK} (?<zone>[+-]\d{4})`,
  /** `Fri Nov 20 10:00:00.123456 2026`: the error log of Apache. */
  apache: String.raw`[A-Z][a-z]{2} ${MONTH} ${DAY} ${CLOCK} (?<year>\d{4})`,
  /** `1120 10:00:00.123456`: klog. */
  klog: String.raw`(?<month>\d\d)(?<day>\d\d) ${CLOCK}`,
} as const

const forms = Object.values(timeForms).map((form) => new RegExp(`^${form}$`))

/** The same expression as a part of another one, under the one name `time`. */
export function timeGroup(form: string): string {
  return `(?<time>${form.replaceAll(/\(\?<\w+>/g, '(?:')})`
}

const DAY_MS = 86_400_000
/** A leap year is at most eight years back: 1900 was none, and neither will 2100 be. */
const LEAP_YEARS_BACK_MAX = 8

/** Reads the dates and times of log lines. */
export class TimeReader {
  readonly #zone: TimeZone
  readonly #nowMs: () => number

  /** @param zone of times without an offset @param nowMs for times without a year */
  constructor(zone: TimeZone, nowMs: () => number) {
    this.#zone = zone
    this.#nowMs = nowMs
  }

  /** @returns ISO 8601 with an offset, and all digits; undefined if the text is not a valid date and time */
  read(text: string): string | undefined {
    const time = timeOfIso(text) ?? timeOfIso(this.#isoOf(text) ?? '')
    if (time === undefined || /[Zz+-]/.test(time.slice('YYYY-MM-DDThh:mm:ss'.length))) return time
    const part = (start: number, end: number): number => Number(time.slice(start, end))
    return `${time}${this.#zone.offsetAt(part(0, 4), part(5, 7), part(8, 10), part(11, 13), part(14, 16))}`
  }

  /** The time in the order of ISO 8601. Whether it is valid is not checked. */
  #isoOf(text: string): string | undefined {
    for (const form of forms) {
      const parts = form.exec(text)?.groups
      if (parts === undefined) continue
      const { month: name = '', day = '', clock = '', zone = '' } = parts
      const month = months.includes(name) ? months.indexOf(name) + 1 : Number(name)
      const year = parts['year'] ?? this.#newestYear(month, Number(day), clock)
      return `${year}-${twoDigits(month)}-${twoDigits(day)}T${clock.replace(',', '.')}${zone}`
    }
    return undefined
  }

  /** The newest year in which the time is at most a day in the future. The day is for other clocks and time zones. */
  #newestYear(month: number, day: number, clock: string): number {
    const latestMs = this.#nowMs() + DAY_MS
    let year = new Date(latestMs).getUTCFullYear()
    const [hour, minute, second] = [clock.slice(0, 2), clock.slice(3, 5), clock.slice(6, 8)]
    if (Date.UTC(year, month - 1, day, Number(hour), Number(minute), Number(second)) > latestMs) year -= 1
    if (month !== 2 || day !== 29) return year
    for (let back = 0; !isLeapYear(year) && back < LEAP_YEARS_BACK_MAX; back += 1) year -= 1
    return year
  }
}

const isLeapYear = (year: number): boolean => new Date(Date.UTC(year, 1, 29)).getUTCMonth() === 1
