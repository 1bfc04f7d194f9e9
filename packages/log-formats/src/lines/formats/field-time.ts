import { type Members, readTime, roleOfName } from '@sluice/records'
import type { TimeReader } from '../../times/time-reader.ts'

/** Longer texts are no times. */
const TIME_CHARACTERS_MAX = 70
/** Beginnings of the times that `TimeReader` reads. */
const START = /^\[?[\dJFMASONDTW]/

/**
 * The time of a record in a form that is neither ISO 8601 nor a number since 1970, such as `20/Nov/2026:10:00:00 +0000`. The value
 * stays in the record.
 *
 * @returns undefined if there is none, or if a field has a time that is read anyway
 */
export function timeOfFields(record: Members, time: TimeReader): string | undefined {
  let best: string | undefined
  let bestRank = Number.POSITIVE_INFINITY
  for (const name of Object.keys(record)) {
    const { role, rank } = roleOfName(name) ?? { role: undefined, rank: 0 }
    if (role !== 'time') continue
    const value = record[name]
    if (readTime(value) !== undefined) return undefined
    const read = typeof value === 'string' && rank < bestRank ? timeOfText(value, time) : undefined
    if (read === undefined) continue
    best = read
    bestRank = rank
  }
  return best ?? timeOfDateAndTime(record, time)
}

function timeOfText(text: string, time: TimeReader): string | undefined {
  if (text.length > TIME_CHARACTERS_MAX || !START.test(text)) return undefined
  const inner = text.replaceAll(/^\[|\]$/g, '').trim()
  const timestamp = time.read(inner, 0)
  return time.end === inner.length ? timestamp : undefined
}

/** FortiGate and others: `date=2026-11-20 time=10:00:00 tz="+0100"`. */
function timeOfDateAndTime(record: Members, time: TimeReader): string | undefined {
  const { date, time: clock, tz = '' } = record
  if (typeof date !== 'string' || typeof clock !== 'string' || typeof tz !== 'string') return undefined
  return timeOfText(`${date} ${clock}${tz}`, time) ?? timeOfText(`${date} ${clock}`, time)
}
