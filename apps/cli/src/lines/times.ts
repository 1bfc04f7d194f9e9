import { timeOfIso } from '@sluice/records'
import { InvalidArgumentError } from 'commander'

export function parseTimeZone(name: string): string {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    throw new InvalidArgumentError('It must be a time zone such as UTC or Europe/Berlin.')
  }
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const MONTH = `(?<month>${months.join('|')})`
const DAY = String.raw`(?<day>[ \d]?\d)`
const CLOCK = String.raw`(?<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)`

/** The times that are not ISO 8601. The formats of lines embed these expressions, and `TimeReader` reads what they match. */
export const timeForms = {
  syslog: `${MONTH} ${DAY} ${CLOCK}`,
  access: String.raw`${DAY}\/${MONTH}\/(?<year>\d{4}):${CLOCK} (?<zone>[+-]\d{4})`,
  apache: String.raw`[A-Z][a-z]{2} ${MONTH} ${DAY} ${CLOCK} (?<year>\d{4})`,
  klog: String.raw`(?<month>\d\d)(?<day>\d\d) ${CLOCK}`,
} as const

const forms = Object.values(timeForms).map((form) => new RegExp(`^${form}$`))

/** The same expression as a part of another one, under the one name `time`. */
export function timeGroup(form: string): string {
  return `(?<time>${form.replaceAll(/\(\?<\w+>/g, '(?:')})`
}

const DAY_MS = 86_400_000
/** A leap year is at most eight years before the latest year: 1900 was none, and neither will 2100 be. */
const YEARS_BACK_MAX = 9

export class TimeReader {
  readonly #zone: string
  readonly #nowMs: () => number
  /** Consecutive lines are of the same minute. A computation takes microseconds. */
  #minute = ''
  #offset = ''

  /** @param zone of times without an offset @param nowMs for times without a year */
  constructor(zone: string, nowMs: () => number) {
    this.#zone = zone
    this.#nowMs = nowMs
  }

  /** A local time that occurs twice, when daylight saving time ends, is the second. @returns ISO 8601 with an offset, and all digits */
  read(string: string): string | undefined {
    const time = timeOfIso(string) ?? timeOfIso(this.#isoOf(string) ?? '')
    if (time === undefined || /[Zz+-]/.test(time.slice('YYYY-MM-DDThh:mm'.length))) return time
    const minute = time.slice(0, 'YYYY-MM-DDThh:mm'.length)
    if (minute !== this.#minute) {
      const local = Temporal.PlainDateTime.from(minute)
      const offset = local.toZonedDateTime(this.#zone, { disambiguation: 'later' }).offset.slice(0, 6)
      this.#minute = minute
      this.#offset = offset === '+00:00' ? 'Z' : offset
    }
    return `${time}${this.#offset}`
  }

  #isoOf(string: string): string | undefined {
    for (const form of forms) {
      const parts = form.exec(string)?.groups
      if (parts === undefined) continue
      const { month: name = '', day = '', clock = '', zone = '' } = parts
      const month = months.includes(name) ? months.indexOf(name) + 1 : name
      const rest = `-${twoDigits(month)}-${twoDigits(day)}T${clock.replace(',', '.')}`
      return `${parts['year'] ?? this.#newestYear(rest)}${rest}${zone}`
    }
    return undefined
  }

  /** The newest year in which the time is at most a day in the future. The day is for other clocks and time zones. */
  #newestYear(rest: string): number {
    const latest = new Date(this.#nowMs() + DAY_MS).toISOString()
    const latestYear = Number(latest.slice(0, 'YYYY'.length))
    for (let year = latestYear; year >= latestYear - YEARS_BACK_MAX; year -= 1)
      if (`${year}${rest}` <= latest && timeOfIso(`${year}${rest}`) !== undefined) return year
    return latestYear
  }
}

const twoDigits = (number: number | string): string => `${number}`.trim().padStart(2, '0')
