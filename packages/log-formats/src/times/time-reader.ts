import { timeOfEpoch } from '@sluice/records'
import { fullYear, isDate, monthOf, twoDigits } from './calendar.ts'
import { MissingYear } from './missing-year.ts'
import {
  COMMON,
  COMMON_SYSLOG,
  COMPACT,
  COMPACT_SHORT,
  DAY_AND_MONTH,
  DAY_FIRST,
  EPOCH,
  MONTH_AND_DAY,
  MONTH_FIRST,
  MONTH_WITH_DASHES,
  POINTS,
  SYSLOG,
  TAI64N,
  THREE_NUMBERS,
  WEEKDAY,
  YEAR_AND_MONTH,
  YEAR_FIRST,
  YEAR_LAST,
} from './time-forms.ts'
import { NamedZones } from './named-zones.ts'
import { type TimeZone, zoneAbbreviations } from './time-zone.ts'

type Parts = Readonly<Record<string, string | undefined>>

/** The years of the contract. */
const YEAR_MIN = 1970
const YEAR_MAX = 2261
/** TAI64 counts from 1970 with an offset, and was 10 s ahead of UTC then. */
const TAI_OFFSET_SECONDS = 10

const EPOCH_SECONDS_DIGITS = 10
const LEVEL_AFTER_EPOCH = /^\d{10}(?:: | \[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b)/
/** A number and a word of a sentence. */
const COUNT = /^\d{13,19} (?!(?:trace|debug|info|warn|error)\b)[a-z]/

const DIGIT_0 = 48
const DIGIT_9 = 57

/** Reads the dates and times of log lines. */
export class TimeReader {
  readonly #zone: TimeZone
  readonly #missingYear: MissingYear
  readonly #namedZones = new NamedZones()
  /** The position after the last time that was read. */
  end = 0
  /** Whether that time had the form of syslog: a month and a day, without a year. */
  isSyslog = false
  /** Whether the line named the offset of that time. */
  isZoned = false

  /** @param zone of times without an offset @param nowMs for times without a year */
  constructor(zone: TimeZone, nowMs: () => number) {
    this.#zone = zone
    this.#missingYear = new MissingYear(nowMs)
  }

  /**
   * Reads the date and time at a position of a line.
   *
   * @returns ISO 8601 with an offset, as the contract has it; undefined if there is no date and time
   */
  read(line: string, at: number): string | undefined {
    const code = line.charCodeAt(at)
    this.isSyslog = false
    this.isZoned = false
    if (code >= DIGIT_0 && code <= DIGIT_9) return this.#readDigits(line, at)
    if (code === 64 /* @ */) return this.#readTai64n(line, at)
    // The first letters of months and weekdays.
    if ('JFMASONDTW'.includes(line.charAt(at))) return this.#readNames(line, at)
    return undefined
  }

  #readDigits(line: string, at: number): string | undefined {
    switch (line.charAt(at + 4)) {
      case '-':
      case '/':
      case '.':
      case ':':
        return (
          this.#readCommon(line, at) ??
          this.#try(YEAR_FIRST, line, at) ??
          this.#try(POINTS, line, at) ??
          this.#readNumbers(line, at)
        )
      case ' ': {
        const time = this.#try(YEAR_AND_MONTH, line, at)
        this.isSyslog = time !== undefined
        return time ?? this.#readNumbers(line, at)
      }
      default:
        return this.#readNumbers(line, at)
    }
  }

  /**
   * Reads `2026-11-20 10:00:00,123`, which most lines have, several times faster than the expression for all its variants. A
   * time that may have a zone after a blank is left to that.
   */
  #readCommon(line: string, at: number): string | undefined {
    COMMON.lastIndex = at
    const match = COMMON.exec(line)
    if (match === null) return undefined
    const [, year = '', month = '', day = '', hour = '', minute = '', second = '', fraction] = match
    const [y, mo, d] = [Number(year), Number(month), Number(day)]
    if (y < YEAR_MIN || y > YEAR_MAX || !isDate(y, mo, d)) return undefined
    this.end = COMMON.lastIndex
    const offset = this.#zone.offsetAt(y, mo, d, Number(hour), Number(minute))
    const point = fraction === undefined ? '' : `.${fraction}`
    return `${year}-${month}-${day}T${hour}:${minute}:${second}${point}${offset}`
  }

  #readNumbers(line: string, at: number): string | undefined {
    const third = line.charCodeAt(at + 2)
    if (third >= DIGIT_0 && third <= DIGIT_9) {
      return this.#try(COMPACT, line, at) ?? this.#try(COMPACT_SHORT, line, at) ?? this.#readEpoch(line, at)
    }
    return (
      this.#try(THREE_NUMBERS, line, at) ??
      this.#try(DAY_FIRST, line, at) ??
      this.#try(DAY_AND_MONTH, line, at) ??
      this.#try(MONTH_AND_DAY, line, at)
    )
  }

  #readNames(line: string, at: number): string | undefined {
    const syslog = this.#readCommonSyslog(line, at) ?? this.#try(SYSLOG, line, at)
    this.isSyslog = syslog !== undefined
    const time =
      syslog ??
      this.#try(YEAR_LAST, line, at) ??
      this.#try(MONTH_FIRST, line, at) ??
      this.#try(MONTH_WITH_DASHES, line, at)
    if (time !== undefined) return time
    WEEKDAY.lastIndex = at
    return WEEKDAY.test(line) ? this.#readDigits(line, WEEKDAY.lastIndex) : undefined
  }

  /** Reads `Nov 20 10:00:00`, several times faster than the expression for all its variants. */
  #readCommonSyslog(line: string, at: number): string | undefined {
    COMMON_SYSLOG.lastIndex = at
    const match = COMMON_SYSLOG.exec(line)
    if (match === null) return undefined
    const [, name = '', dayText = '', hour = '', minute = '', second = ''] = match
    const [month = 0, day] = [monthOf(name), Number(dayText)]
    const year = this.#missingYear.yearOf(month, day, Number(hour), Number(minute), Number(second))
    if (!isDate(year, month, day)) return undefined
    this.end = COMMON_SYSLOG.lastIndex
    const offset = this.#zone.offsetAt(year, month, day, Number(hour), Number(minute))
    return `${year}-${twoDigits(month)}-${twoDigits(day)}T${hour}:${minute}:${second}${offset}`
  }

  /** Reads a number of seconds, milliseconds, microseconds or nanoseconds since 1970. */
  #readEpoch(line: string, at: number): string | undefined {
    EPOCH.lastIndex = at
    const match = EPOCH.exec(line)
    // At the start of a line, digits may be any number. Mosquitto has a colon after them.
    if (match === null) return undefined
    const isAnyNumber = at === 0 && match[0].length === EPOCH_SECONDS_DIGITS
    if (isAnyNumber && !LEVEL_AFTER_EPOCH.test(line)) return undefined
    if (at === 0 && COUNT.test(line)) return undefined
    this.end = EPOCH.lastIndex
    this.isZoned = true
    return timeOfEpoch(match[0])
  }

  #readTai64n(line: string, at: number): string | undefined {
    TAI64N.lastIndex = at
    const [, seconds, nanoseconds = ''] = TAI64N.exec(line) ?? []
    if (seconds === undefined) return undefined
    this.end = TAI64N.lastIndex
    this.isZoned = true
    const fraction = String(Number.parseInt(nanoseconds, 16)).padStart(9, '0')
    return timeOfEpoch(`${Number.parseInt(seconds, 16) - TAI_OFFSET_SECONDS}.${fraction}`)
  }

  #try(form: RegExp, line: string, at: number): string | undefined {
    form.lastIndex = at
    const match = form.exec(line)
    if (match?.groups === undefined) return undefined
    const end = form.lastIndex
    return this.#format(match.groups, end)
  }

  #format(parts: Parts, end: number): string | undefined {
    const hour = hourOf(parts)
    const minute = Number(parts['minute'] ?? parts['minute2'])
    const second = Number(parts['second'] ?? parts['second2'] ?? 0)
    const date = dateOf(parts)
    if (date === undefined || hour === undefined) return undefined
    const { month, day } = date
    const year = date.year ?? this.#missingYear.yearOf(month, day, hour, minute, second)
    if (year < YEAR_MIN || year > YEAR_MAX || !isDate(year, month, day)) return undefined
    this.end = end
    const region = this.#regionOf(parts, end)
    const named = region?.offsetAt(year, month, day, hour, minute) ?? this.#offsetOf(parts, end)
    this.isZoned = named !== undefined
    const offset = named ?? this.#zone.offsetAt(year, month, day, hour, minute)
    const fraction = fractionOf(parts)
    return `${year}-${twoDigits(month)}-${twoDigits(day)}T${twoDigits(hour)}:${twoDigits(minute)}:${twoDigits(second)}${fraction}${offset}`
  }

  /** The zone that a line names. What is no name of a zone does not belong to the time. */
  #regionOf({ region }: Parts, end: number): TimeZone | undefined {
    if (region === undefined) return undefined
    const zone = this.#namedZones.get(region)
    if (zone === undefined) this.end = end - region.length - 1
    return zone
  }

  /** The offset that a line names. A word in its place, such as `INFO`, does not belong to the time. */
  #offsetOf({ zone, blank = '' }: Parts, end: number): string | undefined {
    if (zone === undefined) return undefined
    if (zone === 'Z' || zone === 'z') return 'Z'
    if (!/[A-Z]/.test(zone)) return zone
    const offset = zoneAbbreviations.get(zone)
    if (offset === undefined) this.end = end - zone.length - blank.length
    return offset === '' ? undefined : offset
  }
}

function hourOf({ hour, hour2, meridiem }: Parts): number | undefined {
  const number = Number(hour ?? hour2)
  if (meridiem === undefined) return number
  if (number < 1 || number > 12) return undefined
  return (number % 12) + (meridiem.toLowerCase() === 'p' ? 12 : 0)
}

function fractionOf({ fraction, ms }: Parts): string {
  if (fraction !== undefined) return `.${fraction}`
  return ms === undefined ? '' : `.${ms.padStart(3, '0')}`
}

interface PartialDate {
  readonly year: number | undefined
  readonly month: number
  readonly day: number
}

function dateOf(parts: Parts): PartialDate | undefined {
  if (parts['first'] !== undefined) return dateOfThree(parts)
  const month = parts['monthName'] === undefined ? Number(parts['month']) : monthOf(parts['monthName'])
  if (month === undefined) return undefined
  const { year } = parts
  const number = year === undefined ? undefined : Number(year)
  return {
    year: year?.length === 2 ? fullYear(Number(year)) : number,
    month,
    day: Number(parts['day']),
  }
}

/**
 * The order of three numbers. Two digits each with slashes are year, month and day, as Hadoop and Spark write them, unless
 * they are no date in this order, or the milliseconds follow a colon, as WebSphere writes them after month, day and year. Points and dashes before a year of four digits stand for day and month, and slashes for
 * month and day, unless only the other order is a date.
 */
function dateOfThree(parts: Parts): PartialDate | undefined {
  const [first, middle, last] = [Number(parts['first']), Number(parts['middle']), Number(parts['last'])]
  if (parts['last']?.length === 2) {
    if (parts['ms'] === undefined && middle <= 12 && last >= 1 && last <= 31)
      return { year: fullYear(first), month: middle, day: last }
    return { year: fullYear(last), month: first, day: middle }
  }
  const isMonthFirst = parts['separator'] === '/' ? first <= 12 : middle > 12
  return isMonthFirst ? { year: last, month: first, day: middle } : { year: last, month: middle, day: first }
}
