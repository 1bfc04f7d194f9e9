import { isLeapYear } from './calendar.ts'

const DAY_MS = 86_400_000
/** A leap year is at most eight years back: 1900 was none, and neither will 2100 be. */
const LEAP_YEARS_BACK_MAX = 8

/**
 * Finds the year of times without one: the newest that does not make the time lie more than a day in the future. The day
 * is for other clocks and other time zones.
 */
export class MissingYear {
  readonly #nowMs: () => number
  #knownDay = Number.NaN
  #latestYear = 0
  /** Month, day, hour, minute and second as one number that sorts like the time. */
  #latest = 0

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  yearOf(month: number, day: number, hour: number, minute: number, second: number): number {
    this.#refresh()
    const at = (((month * 32 + day) * 24 + hour) * 60 + minute) * 61 + second
    let year = at <= this.#latest ? this.#latestYear : this.#latestYear - 1
    if (month !== 2 || day !== 29) return year
    for (let back = 0; !isLeapYear(year) && back < LEAP_YEARS_BACK_MAX; back += 1) year -= 1
    return year
  }

  #refresh(): void {
    const nowMs = this.#nowMs()
    const seconds = Math.floor(nowMs / 1_000)
    if (seconds === this.#knownDay) return
    this.#knownDay = seconds
    const latest = new Date(nowMs + DAY_MS)
    this.#latestYear = latest.getUTCFullYear()
    this.#latest =
      (((latest.getUTCMonth() + 1) * 32 + latest.getUTCDate()) * 24 + latest.getUTCHours()) * 60 * 61 +
      latest.getUTCMinutes() * 61 +
      latest.getUTCSeconds()
  }
}
