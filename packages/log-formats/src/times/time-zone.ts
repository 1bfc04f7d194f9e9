import { twoDigits } from './calendar.ts'

/** Which offset from UTC local times have. */
export interface TimeZone {
  /** The offset as ISO 8601 writes it: `Z` or `+01:00`. The parts must be those of a valid local time. */
  offsetAt(year: number, month: number, day: number, hour: number, minute: number): string
}

const utc: TimeZone = { offsetAt: () => 'Z' }

/** Transitions to and from daylight saving time happen at a multiple of this. */
const QUARTER_MINUTES = 15

/**
 * A time zone of the IANA database.
 *
 * A local time that occurs twice, when daylight saving time ends, has the offset after the change. One that does not
 * exist has one of the two offsets around it.
 *
 * @throws RangeError if there is no time zone of this name
 */
export function timeZoneOf(name: string): TimeZone {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  if (format.resolvedOptions().timeZone === 'UTC') return utc
  // Lines that follow each other are of the same quarter of an hour. A computation takes microseconds.
  let knownQuarter = Number.NaN
  let knownOffset = ''
  return {
    offsetAt: (year, month, day, hour, minute) => {
      const localMs = Date.UTC(year, month - 1, day, hour, minute - (minute % QUARTER_MINUTES))
      if (localMs !== knownQuarter) {
        knownQuarter = localMs
        const guess = minutesAheadAt(localMs, format)
        knownOffset = formatOffset(minutesAheadAt(localMs - guess * 60_000, format))
      }
      return knownOffset
    },
  }
}

/** The offset of the zone at a time, in whole minutes. */
function minutesAheadAt(epochMs: number, format: Intl.DateTimeFormat): number {
  const parts: Record<string, number> = {}
  for (const { type, value } of format.formatToParts(epochMs)) parts[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = parts
  return Math.round((Date.UTC(year, month - 1, day, hour, minute) - epochMs) / 60_000)
}

function formatOffset(minutesAhead: number): string {
  if (minutesAhead === 0) return 'Z'
  const minutes = Math.abs(minutesAhead)
  return `${minutesAhead < 0 ? '-' : '+'}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`
}

/**
 * Offsets of the abbreviations that mean one zone. `CST`, `IST` and `BST` mean several, and count as a time without an
 * offset.
 */
export const zoneAbbreviations: ReadonlyMap<string, string> = new Map([
  ['UTC', 'Z'],
  ['GMT', 'Z'],
  ['WET', 'Z'],
  ['WEST', '+01:00'],
  ['CET', '+01:00'],
  ['CEST', '+02:00'],
  ['EET', '+02:00'],
  ['EEST', '+03:00'],
  ['MSK', '+03:00'],
  ['HKT', '+08:00'],
  ['SGT', '+08:00'],
  ['JST', '+09:00'],
  ['KST', '+09:00'],
  ['AEST', '+10:00'],
  ['AEDT', '+11:00'],
  ['NZST', '+12:00'],
  ['NZDT', '+13:00'],
  ['EST', '-05:00'],
  ['EDT', '-04:00'],
  ['CDT', '-05:00'],
  ['MST', '-07:00'],
  ['MDT', '-06:00'],
  ['PST', '-08:00'],
  ['PDT', '-07:00'],
  ['CST', ''],
  ['IST', ''],
  ['BST', ''],
])
