const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?$/i

/** A time as ClickHouse writes it, in UTC with microseconds: `2026-11-24 10:00:00.000000`. The order of such texts is that of the times. */
type TimeText = string

/** The time from `start` up to and without `end`. */
export interface Period {
  readonly start: TimeText
  readonly end: TimeText
}

/**
 * The period that a time stands for: the whole of its last unit, from a day to a microsecond. Without an offset it is in UTC.
 *
 * @returns undefined for other text, and for years that no entry can have
 */
export function periodOf(text: string): Period | undefined {
  const [, year, month, day, hour, minute, second, fraction, offset = 'Z'] = DATE_TIME.exec(text) ?? []
  if (year === undefined || month === undefined || day === undefined) return undefined
  const date = `${year}-${month}-${day}`
  const local = new Date(`${date}T${hour ?? '00'}:${minute ?? '00'}:${second ?? '00'}Z`)
  // Date takes February 30 for March 2.
  if (Number.isNaN(local.getTime()) || !local.toISOString().startsWith(date)) return undefined
  const startMs = local.getTime() - offsetMinutes(offset) * 60_000
  const micros = Number((fraction ?? '').slice(0, 6).padEnd(6, '0'))
  const unitMicros =
    fraction !== undefined
      ? 10 ** Math.max(6 - fraction.length, 0)
      : (second !== undefined ? 1 : minute !== undefined ? 60 : 86_400) * 1_000_000
  const year0 = new Date(startMs).getUTCFullYear()
  if (year0 < YEAR_MIN || year0 > YEAR_MAX) return undefined
  return { start: timeText(startMs, micros), end: timeText(startMs, micros + unitMicros) }
}

/** As in `packages/rows`: what an entry can have. */
const YEAR_MIN = 1970
const YEAR_MAX = 2261

function offsetMinutes(offset: string): number {
  if (offset.length === 1) return 0
  const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(3).replace(':', ''))
  return offset.startsWith('-') ? -minutes : minutes
}

function timeText(ms: number, micros: number): TimeText {
  const date = new Date(ms + Math.floor(micros / 1_000_000) * 1000)
  const seconds = date.toISOString().slice(0, 19).replace('T', ' ')
  return `${seconds}.${String(micros % 1_000_000).padStart(6, '0')}`
}

/** The time of an entry, in either form that the API or ClickHouse writes: in UTC, with any number of digits up to microseconds. */
export function entryTime(text: string): TimeText {
  const [seconds = '', fraction = ''] = text.replace('T', ' ').replace(/Z$/, '').split('.')
  return `${seconds}.${fraction.padEnd(6, '0')}`
}
