import { parseTimestamp, toClickHouseTime } from '@sluice/schema'
import { UsageError } from './errors.ts'

const unitsMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}
/** A hundred years: whatever is longer is a slip of the finger, and further dates stop being representable. */
const DURATION_MAX_MS = 36_500 * 86_400_000

/** Reads `90s`, `15m`, `2h`, `3d` or `1w` into milliseconds; undefined for anything else. */
export function parseDurationMs(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,9})([smhdw])$/.exec(text) ?? []
  const unitMs = unitsMs[unit]
  if (digits === undefined || unitMs === undefined) return undefined
  const durationMs = Number(digits) * unitMs
  return durationMs <= DURATION_MAX_MS ? durationMs : undefined
}

/** Reads an ISO 8601 date or date-time, UTC where it has no offset, into milliseconds since 1970. */
function parseInstantMs(text: string): number | undefined {
  const timestamp = parseTimestamp(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00` : text)
  // It is in UTC whether it says so or not, and may have a blank where ISO 8601 has a T.
  return timestamp === undefined ? undefined : Date.parse(timestamp.replace(' ', 'T').replace(/Z?$/, 'Z'))
}

/**
 * Reads how far back to look, as a duration or as a time, into ClickHouse's text form of the time in UTC.
 *
 * @throws UsageError
 */
export function parseSince(text: string, nowMs: number): string {
  const durationMs = parseDurationMs(text)
  const sinceMs = durationMs === undefined ? parseInstantMs(text) : Math.max(0, nowMs - durationMs)
  if (sinceMs === undefined) {
    throw new UsageError(`--since takes 90s, 15m, 2h, 3d or an ISO 8601 time, not "${text}"`)
  }
  return toClickHouseTime(sinceMs)
}

/**
 * Reads how long something lasts, ms.
 *
 * @param flag the option that it was given with
 * @throws UsageError
 */
export function parseLength(flag: string, text: string): number {
  const durationMs = parseDurationMs(text)
  if (durationMs === undefined) throw new UsageError(`${flag} takes 30m, 12h or 90d, not "${text}"`)
  return durationMs
}

/**
 * Reads when something ends, as a time from now or as a time; never, if it is neither.
 *
 * @throws UsageError when it cannot be read, is over already, or is both
 */
export function parseExpiry(
  { expiresIn, expiresAt }: { readonly expiresIn?: string; readonly expiresAt?: string },
  nowMs: number,
): Date | undefined {
  if (expiresIn !== undefined && expiresAt !== undefined) {
    throw new UsageError('a key has one end: --expires-in or --expires-at')
  }
  if (expiresIn !== undefined)
    return laterThan(nowMs, nowMs + parseLength('--expires-in', expiresIn), expiresIn)
  if (expiresAt === undefined) return undefined
  const expiresMs = parseInstantMs(expiresAt)
  if (expiresMs === undefined) throw new UsageError(`--expires-at takes an ISO 8601 time, not "${expiresAt}"`)
  return laterThan(nowMs, expiresMs, expiresAt)
}

function laterThan(nowMs: number, timeMs: number, text: string): Date {
  if (timeMs <= nowMs) throw new UsageError(`a key ends at a time to come, not "${text}"`)
  return new Date(timeMs)
}
