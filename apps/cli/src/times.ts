import { InvalidArgumentError } from 'commander'
import { TimeReader } from './lines/times.ts'

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

/** A time in ClickHouse's form, with microseconds: `2026-11-20 22:43:01.123000`. Times in this form sort as strings. */
export function toPreciseTime(instant: Temporal.Instant): string {
  return instant.toString({ fractionalSecondDigits: 6 }).replace('T', ' ').slice(0, -1)
}

const DAY = /^(today|yesterday)?(?:(?:^| )(\d\d:\d\d\S*))?$/

/** Parses `now`, a duration back from now or, with a plus sign, ahead of now, a time of ISO 8601, or one such as `yesterday 10:30`. */
export function parseTime(value: string, nowMs: number, zone = 'UTC'): Temporal.Instant {
  const now = Temporal.Instant.fromEpochMilliseconds(nowMs)
  if (value === 'now') return now
  const durationMs = durationMsOf(value.replace(/^[+-]/, ''))
  if (durationMs !== undefined)
    return Temporal.Instant.fromEpochMilliseconds(
      Math.max(0, value.startsWith('+') ? nowMs + durationMs : nowMs - durationMs),
    )
  const [isDay, day, clock = '00:00'] = DAY.exec(value) ?? []
  const date = now.toZonedDateTimeISO(zone).toPlainDate()
  const given = isDay ? `${date.subtract({ days: day === 'yesterday' ? 1 : 0 }).toString()}T${clock}` : value
  const time = new TimeReader(zone, () => nowMs).read(given.includes(':') ? given : `${given}T00:00`)
  if (time !== undefined) return Temporal.Instant.from(time.replace(/(\.\d{9})\d+/, '$1'))
  throw new InvalidArgumentError(
    'It must be a duration such as 90s, 15m, 2h or 3d (before now) or +1h (after now), ' +
      'or a time such as 10:30, yesterday, 2026-11-20 or 2026-11-20T22:43:01Z.',
  )
}

/** A duration without a sign is ahead of now. */
export function parseExpiry(value: string, nowMs: number): Date {
  const instant = parseTime(/^\d+[a-z]$/.test(value) ? `+${value}` : value, nowMs)
  if (instant.epochMilliseconds > nowMs) return new Date(instant.epochMilliseconds)
  throw new InvalidArgumentError('It must be in the future.')
}
