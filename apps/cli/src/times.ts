import { parseTimestamp, toClickHouseTime } from '@sluice/rows'
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

/** The time of an ISO 8601 date or date-time, UTC if it has no offset, in the form of `toPreciseTime`. */
function instantOf(value: string): string | undefined {
  const timestamp = parseTimestamp(/^\d{4}-\d\d-\d\d$/.test(value) ? `${value}T00:00` : value)
  // The timestamp is in UTC, with or without a Z and a fraction, and has a T or a space in the middle.
  const [, date, time, fraction = ''] = /^(.{10})[T ](.{8})(?:\.(\d+))?/.exec(timestamp ?? '') ?? []
  return date === undefined ? undefined : `${date} ${time}.${fraction.padEnd(6, '0').slice(0, 6)}`
}

/** A time in ClickHouse's form, with microseconds: `2026-11-20 22:43:01.123000`. Times in this form sort as strings. */
export function toPreciseTime(epochMs: number): string {
  return `${toClickHouseTime(epochMs)}000`
}

/** Parses a duration back from now or, with a plus sign, ahead of now, or an ISO 8601 time. @returns UTC in the form of `toPreciseTime` */
export function parseTime(value: string, nowMs: number): string {
  const isAhead = value.startsWith('+')
  const durationMs = durationMsOf(isAhead ? value.slice(1) : value)
  if (durationMs !== undefined)
    return toPreciseTime(Math.max(0, isAhead ? nowMs + durationMs : nowMs - durationMs))
  const instant = instantOf(value)
  if (instant !== undefined) return instant
  throw new InvalidArgumentError(
    'It must be a duration such as 90s, 15m, 2h or 3d (before now) or +1h (after now), ' +
      'or an ISO 8601 time such as 2026-11-20T22:43:01Z.',
  )
}

export function parseExpiry(value: string, nowMs: number): Date {
  const durationMs = durationMsOf(value)
  const expiry = new Date(durationMs === undefined ? `${instantOf(value)}Z` : nowMs + durationMs)
  if (expiry.getTime() > nowMs) return expiry
  throw new InvalidArgumentError(
    'It must be a duration such as 12h or 90d, or an ISO 8601 time in the future.',
  )
}
