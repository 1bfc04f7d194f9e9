import { InvalidArgumentError } from 'commander'

const unitsMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const
/** A hundred years. Longer durations are typing errors, and dates that far away exceed the range of `Date`. */
const DURATION_MAX_MS = 36_500 * unitsMs.d

function durationMsOf(value: string): number | undefined {
  const [, digits, unit] = /^(\d{1,9})([smhdw])$/.exec(value) ?? []
  const durationMs = Number(digits) * unitsMs[unit as keyof typeof unitsMs]
  return durationMs <= DURATION_MAX_MS ? durationMs : undefined
}

export function parseDuration(value: string): number {
  const durationMs = durationMsOf(value)
  if (durationMs !== undefined) return durationMs
  throw new InvalidArgumentError('It must be a duration such as 30s, 15m, 12h or 90d.')
}

const LOCAL = /^(today|yesterday|\d{4}-\d\d-\d\d)?(?:(?:^|[ T])(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?))?$/
const OFFSET = /:.*(?:Z|[+-]\d\d:?\d\d)$/i
/** What the column of timestamps can have. */
const YEARS = { min: 1970, max: 2261 } as const

/** The time of a date, a time of a day, or both, in a time zone if it has no offset. @throws RangeError for other text */
function instantOf(value: string, now: Temporal.Instant, zone: string): Temporal.Instant {
  if (OFFSET.test(value)) return Temporal.Instant.from(value)
  const [, day = 'today', clock = '00:00'] = LOCAL.exec(value || '-') ?? ['', '-']
  const today = now.toZonedDateTimeISO(zone).toPlainDate()
  const named = day === 'today' ? today : day === 'yesterday' ? today.subtract({ days: 1 }) : day
  return Temporal.PlainDateTime.from(`${String(named)}T${clock}`)
    .toZonedDateTime(zone)
    .toInstant()
}

/** A time in ClickHouse's form, with microseconds: `2026-11-20 22:43:01.123000`. Times in this form sort as strings. */
export function toPreciseTime(instant: Temporal.Instant): string {
  return instant.toString({ fractionalSecondDigits: 6 }).replace('T', ' ').slice(0, -1)
}

/** Parses `now`, a duration back from now or, with a plus sign, ahead of now, a time of ISO 8601, or one such as `yesterday 10:30`. */
export function parseTime(value: string, nowMs: number, zone = 'UTC'): Temporal.Instant {
  const now = Temporal.Instant.fromEpochMilliseconds(nowMs)
  if (value === 'now') return now
  const durationMs = durationMsOf(value.replace(/^[+-]/, ''))
  if (durationMs !== undefined)
    return Temporal.Instant.fromEpochMilliseconds(
      Math.max(0, value.startsWith('+') ? nowMs + durationMs : nowMs - durationMs),
    )
  try {
    const instant = instantOf(value, now, zone)
    const { year } = instant.toZonedDateTimeISO('UTC')
    if (YEARS.min <= year && year <= YEARS.max) return instant
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  throw new InvalidArgumentError(
    'It must be a duration such as 90s, 15m, 2h or 3d (before now) or +1h (after now), ' +
      'or a time such as 10:30, yesterday, 2026-11-20 or 2026-11-20T22:43:01Z.',
  )
}

export function parseExpiry(value: string, nowMs: number): Date {
  try {
    const expiry = new Date(
      parseTime(/^\d+[a-z]$/.test(value) ? `+${value}` : value, nowMs).epochMilliseconds,
    )
    if (expiry.getTime() > nowMs) return expiry
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error
  }
  throw new InvalidArgumentError(
    'It must be a duration such as 12h or 90d, or an ISO 8601 time in the future.',
  )
}
