/** ISO 8601 extended date-time. Seconds, fraction and offset are optional. */
const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,30}))?)?([Zz]|[+-]\d\d(?::?\d\d)?)?$/

const YEAR_MIN = 1970
const YEAR_MAX = 2261

/**
 * Converts an ISO 8601 date-time with any offset (UTC without one) to UTC with microseconds: `2026-11-20 22:43:01.123456`. Further digits
 * are truncated. A leap second counts as the next second, as in POSIX. `packages/row-scanner/assembly/timestamps.ts` has the same rule.
 *
 * @returns undefined for any other string, and for years outside 1970–2261
 */
export function parseTimestamp(text: string): string | undefined {
  const match = DATE_TIME.exec(text)
  if (match === null) return undefined
  const [
    ,
    year = '',
    month = '',
    day = '',
    hour = '',
    minute = '',
    second = '00',
    fraction = '',
    offset = '',
  ] = match
  if (!isDate(+year, +month, +day) || +hour > 23 || +minute > 59 || +second > 60) return undefined
  const minutesAhead = offsetMinutes(offset)
  // Date.UTC reads the years 0–99 as 1900–1999.
  if (minutesAhead === undefined || +year < 100) return undefined
  const utc = new Date(Date.UTC(+year, +month - 1, +day, +hour, +minute - minutesAhead, +second))
  if (utc.getUTCFullYear() < YEAR_MIN || utc.getUTCFullYear() > YEAR_MAX) return undefined
  return `${utc.toISOString().slice(0, 19).replace('T', ' ')}.${fraction.padEnd(6, '0').slice(0, 6)}`
}

function offsetMinutes(offset: string): number | undefined {
  if (offset === '' || offset === 'Z' || offset === 'z') return 0
  const hours = +offset.slice(1, 3)
  const minutes = +(offset.slice(3).replace(':', '') || 0)
  if (hours > 23 || minutes > 59) return undefined
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}

function isDate(year: number, month: number, day: number): boolean {
  if (month < 1 || month > 12 || day < 1) return false
  return day <= new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
}

/** A time in ClickHouse's form for DateTime64(3): `2026-11-20 22:43:01.123`. */
export function toClickHouseTime(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 23).replace('T', ' ')
}
