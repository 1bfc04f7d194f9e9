import { parseTimestamp, toClickHouseTime } from '@sluice/rows'
import { UsageError } from './errors.ts'

const unitsMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}
/** A hundred years. Longer durations are typing errors, and dates that far away exceed the range of `Date`. */
const DURATION_MAX_MS = 36_500 * 86_400_000

/** Parses `90s`, `15m`, `2h`, `3d` or `1w` into milliseconds; undefined for anything else. */
export function parseDurationMs(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,9})([smhdw])$/.exec(text) ?? []
  const unitMs = unitsMs[unit]
  if (digits === undefined || unitMs === undefined) return undefined
  const durationMs = Number(digits) * unitMs
  return durationMs <= DURATION_MAX_MS ? durationMs : undefined
}

/**
 * Parses the value of an option that is a duration.
 *
 * @throws UsageError
 */
export function requireDurationMs(option: string, text: string): number {
  const durationMs = parseDurationMs(text)
  if (durationMs !== undefined) return durationMs
  throw new UsageError(`${option} must be a duration such as 30s, 15m, 12h or 90d, not "${text}"`)
}

/**
 * Parses an ISO 8601 date or date-time, UTC if it has no offset, into UTC with microseconds in ClickHouse's text form:
 * `2026-11-20 22:43:01.123456`. Times in this form sort as text.
 */
function parseInstant(text: string): string | undefined {
  const timestamp = parseTimestamp(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00` : text)
  // The timestamp is in UTC, with or without a Z and a fraction, and has a T or a space in the middle.
  const [, date, time, fraction = ''] = /^(.{10})[T ](.{8})(?:\.(\d+))?/.exec(timestamp ?? '') ?? []
  return date === undefined ? undefined : `${date} ${time}.${fraction.padEnd(6, '0').slice(0, 6)}`
}

/** @returns milliseconds since 1970 */
function parseInstantMs(text: string): number | undefined {
  const instant = parseInstant(text)
  return instant === undefined ? undefined : Date.parse(`${instant.replace(' ', 'T')}Z`)
}

/** A time with the precision of timestamps, in ClickHouse's text form: `2026-11-20 22:43:01.123000`. */
export function toPreciseTime(epochMs: number): string {
  return `${toClickHouseTime(epochMs)}000`
}

/**
 * Parses one end of a time range: a duration back from now, a duration ahead of now with a plus sign, or an ISO 8601
 * time.
 *
 * @returns UTC with microseconds in ClickHouse's text form; times in this form sort as text
 * @throws UsageError
 */
export function parseTime(option: string, text: string, nowMs: number): string {
  const isAhead = text.startsWith('+')
  const durationMs = parseDurationMs(isAhead ? text.slice(1) : text)
  if (durationMs !== undefined) {
    return toPreciseTime(Math.max(0, isAhead ? nowMs + durationMs : nowMs - durationMs))
  }
  const instant = parseInstant(text)
  if (instant !== undefined) return instant
  throw new UsageError(
    `${option} must be a duration such as 90s, 15m, 2h or 3d (before now) or +1h (after now), ` +
      `or an ISO 8601 time such as 2026-11-20T22:43:01Z, not "${text}"`,
  )
}

/**
 * Parses the expiry of a key, given as a duration from now or as a time. Undefined if neither is given: the key never
 * expires.
 *
 * @throws UsageError when the expiry is malformed or in the past, or both options are given
 */
export function parseExpiry(
  { expiresIn, expiresAt }: { readonly expiresIn?: string; readonly expiresAt?: string },
  nowMs: number,
): Date | undefined {
  if (expiresIn !== undefined && expiresAt !== undefined) {
    throw new UsageError('pass --expires-in or --expires-at, not both')
  }
  if (expiresIn !== undefined) {
    return futureDate(nowMs + requireDurationMs('--expires-in', expiresIn), nowMs, expiresIn)
  }
  if (expiresAt === undefined) return undefined
  const expiresMs = parseInstantMs(expiresAt)
  if (expiresMs === undefined) {
    throw new UsageError(`--expires-at must be an ISO 8601 time, not "${expiresAt}"`)
  }
  return futureDate(expiresMs, nowMs, expiresAt)
}

function futureDate(timeMs: number, nowMs: number, text: string): Date {
  if (timeMs <= nowMs) throw new UsageError(`the expiry of a key must be in the future, not "${text}"`)
  return new Date(timeMs)
}
