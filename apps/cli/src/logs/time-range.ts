import { UsageError } from '../errors.ts'
import { parseTime, toPreciseTime } from '../times.ts'

/**
 * Entries with a later timestamp are hidden by default. Clocks of senders may be ahead by some minutes. Timestamps that
 * are further ahead come from a wrong clock or from an attacker, and would hide all current entries: the newest are
 * printed.
 */
const FUTURE_ALLOWED_MS = 3_600_000

/** A range of timestamps. Times are UTC with microseconds, in ClickHouse's text form. */
export interface TimeRange {
  /** Included. Undefined: without a beginning. */
  readonly from: string | undefined
  /** Excluded. */
  readonly until: string
  /** Whether the user selected the end. By default it only excludes entries of the future. */
  readonly isUntilSelected: boolean
}

export interface TimeRangeFlags {
  from?: string
  since?: string
  until?: string
}

/** @throws UsageError when a time is malformed, or the range is empty */
export function readTimeRange({ from, since, until }: TimeRangeFlags, nowMs: number): TimeRange {
  if (from !== undefined && since !== undefined) {
    throw new UsageError('pass --from or --since, not both: they have the same meaning')
  }
  const option = from === undefined ? '--since' : '--from'
  const text = from ?? since
  const range: TimeRange = {
    from: text === undefined ? undefined : parseTime(option, text, nowMs),
    until:
      until === undefined ? toPreciseTime(nowMs + FUTURE_ALLOWED_MS) : parseTime('--until', until, nowMs),
    isUntilSelected: until !== undefined,
  }
  if (range.from !== undefined && range.from >= range.until) {
    throw new UsageError(
      range.isUntilSelected
        ? `${option} must be before --until`
        : `${option} is after the default of --until, one hour from now; pass --until too`,
    )
  }
  return range
}
