/** Attributes, or the members of a key-value list, as members of a JSON object. */
export type Attributes = Record<string, unknown>

/** A log record of OTLP. Values are those of JSON. Fields that were not sent have the default values of Protocol Buffers. */
export interface LogRecord {
  timeUnixNano: bigint
  observedTimeUnixNano: bigint
  severityNumber: number
  severityText: string
  /** Null if there is none. */
  body: unknown
  readonly attributes: Attributes
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

/** Where records come from: a process, a host. */
export interface Resource {
  readonly attributes: Attributes
  droppedAttributesCount: number
  schemaUrl: string
}

/** What made the records: a library or a logger. */
export interface Scope {
  name: string
  version: string
  readonly attributes: Attributes
  droppedAttributesCount: number
  schemaUrl: string
}

export function emptyResource(): Resource {
  return { attributes: {}, droppedAttributesCount: 0, schemaUrl: '' }
}

export function emptyScope(): Scope {
  return { name: '', version: '', attributes: {}, droppedAttributesCount: 0, schemaUrl: '' }
}

/** Sets a member like JSON.parse: the last of several values counts, and its place is that of the first. */
export function setMember(members: Attributes, name: string, value: unknown): void {
  if (name === '__proto__') {
    // An assignment would set the prototype.
    Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true })
  } else members[name] = value
}

export function isEmpty(members: Attributes): boolean {
  for (const _ in members) return false
  return true
}
