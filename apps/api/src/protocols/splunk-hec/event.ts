import { timeOfEpoch } from '@sluice/records'
import type { SourceRecord } from '../../intake/records.ts'
import {
  addMember,
  hasTooManyNames,
  isObject,
  type Members,
  toEntry,
  tooManyNames,
  withMetadata,
} from '../entries.ts'

export const EVENT_REQUIRED = 'has no event'
export const EVENT_BLANK = 'has a blank event'

/** An event in the form of `/services/collector/event`: the event, and what is known of it. */
export function recordOfEvent(envelope: Members): SourceRecord {
  if (hasTooManyNames(envelope)) return tooManyNames
  const { event, fields, time, ...origin } = envelope
  if ([event, fields, ...partsOf(event)].some((part) => isObject(part) && hasTooManyNames(part)))
    return tooManyNames
  if (event === undefined) return missingEvent
  if (event === null || event === '') return blankEvent
  const record: Members = {}
  const timestamp = timeOf(time)
  if (timestamp !== undefined) record['timestamp'] = timestamp
  for (const [name, value] of Object.entries(membersOf(event))) addMember(record, name, value)
  if (isObject(fields)) for (const name of Object.keys(fields)) addMember(record, name, fields[name])
  const kept = isObject(fields) ? {} : { fields }
  const unread = timestamp === undefined ? { time } : {}
  return { entry: withMetadata(toEntry(record), { ...origin, ...kept, ...unread }) }
}

/** What the parameters of `/services/collector/raw` say about all lines. */
export interface LinesOrigin {
  readonly timestamp?: string
  readonly metadata: Readonly<Members>
}

/** A line of `/services/collector/raw`. */
export function recordOfLine(message: string, { timestamp, metadata }: LinesOrigin): SourceRecord {
  const entry = toEntry({ message, ...(timestamp === undefined ? {} : { timestamp }) })
  return { entry: withMetadata(entry, metadata) }
}

/** Seconds since 1970 with a fraction, as a number or as a text. */
export function timeOf(time: unknown): string | undefined {
  if (typeof time === 'string') return timeOfEpoch(time.trim())
  // The text of a number that was parsed exactly has all its digits.
  return time === undefined ? undefined : timeOfEpoch(JSON.stringify(time))
}

/** What `membersOf` takes the members of. */
const partsOf = (event: unknown): unknown[] =>
  isObject(event) ? [event['message'], event['line'], event['attrs']] : []

function membersOf(event: unknown): Members {
  if (!isObject(event)) return { message: typeof event === 'string' ? event : JSON.stringify(event) }
  const { line, message, ...rest } = event
  // Splunk's library for JavaScript has the fields of a message there.
  if (isObject(message)) return together(message, rest, 'line' in event ? { line } : {})
  if (message === undefined && Object.hasOwn(event, 'source')) {
    // Docker's logging driver has the message there, or its fields if it is JSON.
    const { attrs, ...origin } = rest
    const labels = isObject(attrs) ? attrs : {}
    if (typeof line === 'string') return together({ message: line }, labels, origin)
    if (isObject(line)) return together(line, labels, origin)
  }
  return event
}

function together(...parts: readonly Members[]): Members {
  const all: Members = {}
  for (const part of parts) for (const name of Object.keys(part)) addMember(all, name, part[name])
  return all
}

const missingEvent: SourceRecord = { error: { path: '', code: 'missing', message: EVENT_REQUIRED } }
const blankEvent: SourceRecord = { error: { path: '', code: 'missing', message: EVENT_BLANK } }
