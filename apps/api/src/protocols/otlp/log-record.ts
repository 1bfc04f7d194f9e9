import type { Members } from '@sluice/records'
import type { EntryError, EntryErrorCode } from '@sluice/schema'

/** A log record of OTLP. Values are those of JSON. Fields that were not sent have the default values of Protocol Buffers. */
export interface LogRecord {
  timeUnixNano: bigint
  observedTimeUnixNano: bigint
  severityNumber: number
  severityText: string
  /** Null if there is none. */
  body: unknown
  readonly attributes: Members
  droppedAttributesCount: number
  flags: number
  /** Hexadecimal. */
  traceId: string
  spanId: string
  eventName: string
}

export function emptyRecord(): LogRecord {
  return {
    timeUnixNano: 0n,
    observedTimeUnixNano: 0n,
    severityNumber: 0,
    severityText: '',
    body: null,
    attributes: {},
    droppedAttributesCount: 0,
    flags: 0,
    traceId: '',
    spanId: '',
    eventName: '',
  }
}

/** The contract has the years up to 2261. */
const END_NS = BigInt(Date.UTC(2262, 0, 1)) * 1_000_000n

/** Whether a record may have this time. 0 stands for an unknown time. */
export function isTimestamp(unixNano: bigint): boolean {
  return unixNano > 0n && unixNano < END_NS
}

/** ISO 8601 with microseconds. Further digits are dropped. */
export function toTimestamp(unixNano: bigint): string {
  const us = unixNano / 1_000n
  const text = new Date(Number(us / 1_000n)).toISOString()
  return `${text.slice(0, -1)}${String(us % 1_000n).padStart(3, '0')}Z`
}

/** Whether a timestamp has all digits of a time. */
export function hasWholeMicroseconds(unixNano: bigint): boolean {
  return unixNano % 1_000n === 0n
}

/** Where records come from: a process, a host. */
export interface Resource {
  readonly attributes: Members
  droppedAttributesCount: number
  schemaUrl: string
}

/** What made the records: a library or a logger. */
export interface Scope {
  name: string
  version: string
  readonly attributes: Members
  droppedAttributesCount: number
  schemaUrl: string
}

export function emptyResource(): Resource {
  return { attributes: {}, droppedAttributesCount: 0, schemaUrl: '' }
}

export function emptyScope(): Scope {
  return { name: '', version: '', attributes: {}, droppedAttributesCount: 0, schemaUrl: '' }
}

export function isEmpty(members: Members): boolean {
  for (const _ in members) return false
  return true
}

/** Why one record is rejected, or all records of a resource or a scope. The other records of the request are not affected. */
export class RecordError extends Error {
  override name = 'RecordError'
  readonly entryError: EntryError

  /** @param path a JSON Pointer into the entry */
  constructor(code: EntryErrorCode, message: string, path = '') {
    super(message)
    this.entryError = { path, code, message }
  }
}

/** What a function returns, or the error of the records that it read. */
export function orError<Result>(read: () => Result): Result | RecordError {
  try {
    return read()
  } catch (error) {
    if (error instanceof RecordError) return error
    throw error
  }
}
