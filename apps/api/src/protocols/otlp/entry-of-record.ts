import type { RecordOrigin } from '@sluice/row-scanner'
import { type Environment, type Level, type Members, readEnvironment, readLevel } from '@sluice/records'
import { isRawJson } from '@sluice/rows'
import { hasAtMostCharacters, limits } from '@sluice/schema'
import {
  hasWholeMicroseconds,
  isEmpty,
  isTimestamp,
  type LogRecord,
  RecordError,
  type Resource,
  type Scope,
  toTimestamp,
} from './log-record.ts'
import { checkDepth, levels } from './value-budget.ts'

/** What the entries of one resource have in common. */
export interface ResourceOrigin {
  readonly service: string | undefined
  readonly environment: Environment | undefined
  /** The last members of the metadata of each entry. */
  readonly metadata: Members
  /** The same as JSON, without braces. */
  readonly text: RecordOrigin
  /** The length of `text.metadata` in UTF-8. */
  readonly metadataBytes: number
}

/** What the entries of one scope have in common. */
export interface Origin extends Omit<ResourceOrigin, 'text'> {
  /** Undefined if it is too long for the scanner. It is not made then, because a large resource may have thousands of scopes. */
  readonly text: RecordOrigin | undefined
}

/**
 * Above this, an entry is checked before its metadata is written: a request may have thousands that are too large. The scanner has no room
 * for more.
 */
const LARGE_METADATA_BYTES = 16 * 1024

/** An id of zeros is no id. */
const ZEROS = /^0*$/

/**
 * The mapping is documented in docs/sources/opentelemetry.md.
 *
 * @param resource changed by this function
 * @throws RecordError if no record can have it
 */
export function originOfResource({
  attributes,
  schemaUrl,
  droppedAttributesCount,
}: Resource): ResourceOrigin {
  checkDepth(attributes, levels.attributes)
  const service = takeString(attributes, 'service.name', limits.serviceCharactersMax)
  const environment = takeEnvironment(attributes)
  const metadata = withoutEmpty({
    resource: attributes,
    resource_schema_url: schemaUrl,
    resource_dropped_attributes_count: droppedAttributesCount,
  })
  const text = { fields: membersOf({ service, environment }), metadata: membersOf(metadata) }
  return { service, environment, metadata, text, metadataBytes: checkedBytes(text.metadata, 0) }
}

/** Cheap for a large resource, which may have thousands of scopes. @throws RecordError if no record can have it */
export function originOf(
  { text: { fields, metadata: members }, ...resource }: ResourceOrigin,
  scope: Scope,
): Origin {
  checkDepth(scope.attributes, levels.scopeAttributes)
  const described = describeScope(scope)
  const hasScope = !isEmpty(described)
  const metadata = hasScope ? { ...resource.metadata, scope: described } : resource.metadata
  const own = hasScope ? membersOf({ scope: described }) : ''
  const metadataBytes = checkedBytes(own, resource.metadataBytes)
  const parts = [members, own].filter((part) => part !== '')
  const text = metadataBytes > LARGE_METADATA_BYTES ? undefined : { fields, metadata: parts.join(',') }
  return { ...resource, metadata, text, metadataBytes }
}

/**
 * Counts the bytes of members of metadata.
 *
 * @param text members as JSON, without braces
 * @param others the bytes of the members before them
 * @returns the bytes of all
 * @throws RecordError if they are more than metadata may have
 */
function checkedBytes(text: string, others: number): number {
  const comma = text === '' || others === 0 ? 0 : 1
  const bytes = others + comma + Buffer.byteLength(text)
  if (bytes + BRACES_BYTES > limits.metadataBytesMax) throw metadataTooLarge()
  return bytes
}

const BRACES_BYTES = 2

/** The JSON of an object, without its braces. */
function membersOf(members: object): string {
  return JSON.stringify(members).slice(1, -1)
}

function describeScope({ name, version, attributes, droppedAttributesCount, schemaUrl }: Scope): Members {
  return withoutEmpty({
    name,
    version,
    attributes,
    schema_url: schemaUrl,
    dropped_attributes_count: droppedAttributesCount,
  })
}

/** The members that do not have the default value of Protocol Buffers. */
function withoutEmpty(members: Readonly<Record<string, string | number | Members>>): Members {
  const filled: Members = {}
  for (const [name, value] of Object.entries(members)) {
    const isDefault = typeof value === 'object' ? isEmpty(value) : value === '' || value === 0
    if (!isDefault) filled[name] = value
  }
  return filled
}

/** An entry as a client would send it. It is not validated yet. @throws RecordError */
export function entryOf(
  record: LogRecord,
  { service, environment, metadata, metadataBytes }: Origin,
): Members {
  const { body, attributes, timeUnixNano: time, observedTimeUnixNano: observed, eventName } = record
  const severity = severityOf(record)
  const stack = takeString(attributes, 'exception.stacktrace', limits.stackCharactersMax)
  const url = takeString(attributes, 'url.full', limits.urlCharactersMax)
  const pathname = takeString(attributes, 'url.path', limits.pathnameCharactersMax)
  const timestamp = [time, observed].find(isTimestamp)

  const own: Members = {}
  if (!isEmpty(attributes)) own['attributes'] = attributes
  if (record.droppedAttributesCount > 0) own['dropped_attributes_count'] = record.droppedAttributesCount
  if (!ZEROS.test(record.traceId)) own['trace_id'] = record.traceId
  if (!ZEROS.test(record.spanId)) own['span_id'] = record.spanId
  if (record.flags !== 0) own['flags'] = record.flags
  if (eventName !== '') own['event_name'] = eventName
  if (severity.number !== undefined) own['severity_number'] = severity.number
  if (severity.text !== undefined) own['severity_text'] = severity.text
  if (time !== 0n && !(isTimestamp(time) && hasWholeMicroseconds(time))) own['time_unix_nano'] = String(time)
  if (observed !== 0n && observed !== time) own['observed_time_unix_nano'] = String(observed)
  if (isStructured(body)) own['body'] = body
  if (metadataBytes > LARGE_METADATA_BYTES) checkedBytes(membersOf(own), metadataBytes)
  return {
    level: severity.level,
    message: messageOf(body, eventName),
    timestamp: timestamp === undefined ? null : toTimestamp(timestamp),
    service: service ?? null,
    environment: environment ?? null,
    url: url ?? null,
    pathname: pathname ?? null,
    stack: stack ?? null,
    metadata: { ...own, ...metadata },
  }
}

/** The current name and the earlier one. */
const ENVIRONMENT_NAMES = ['deployment.environment.name', 'deployment.environment'] as const

/**
 * Removes an attribute that becomes a column. An attribute that is not a string, or is longer than the column allows, stays where it is.
 *
 * @returns undefined if there is no such attribute
 */
function takeString(attributes: Members, name: string, charactersMax: number): string | undefined {
  const value = attributes[name]
  if (typeof value !== 'string' || value === '' || !hasAtMostCharacters(value, charactersMax))
    return undefined
  delete attributes[name]
  return value
}

/** Finds the environment. Removes the attribute if it says no more than the column. */
function takeEnvironment(attributes: Members): Environment | undefined {
  for (const name of ENVIRONMENT_NAMES) {
    const environment = readEnvironment(attributes[name])
    if (environment === undefined) continue
    if (environment === attributes[name]) delete attributes[name]
    return environment
  }
  return undefined
}

/** The level of a record, and the parts of its severity that say more than the level. */
function severityOf({ severityNumber: number, severityText: text }: LogRecord): {
  readonly level: Level
  readonly number: number | undefined
  readonly text: string | undefined
} {
  const numbered = readLevel(number, 'otel')
  const level = numbered?.level ?? readLevel(text, 'pino')?.level ?? 'log'
  return {
    level,
    number: number === 0 || numbered?.isExact === true ? undefined : number,
    text: text === '' || text.toLowerCase() === level ? undefined : text,
  }
}

function metadataTooLarge(): RecordError {
  return new RecordError(
    'too_large',
    `must have at most ${limits.metadataBytesMax} bytes as JSON`,
    '/metadata',
  )
}

function isStructured(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !isRawJson(body)
}

function messageOf(body: unknown, eventName: string): string {
  if (body === null || body === '') return eventName
  return typeof body === 'string' ? body : JSON.stringify(body)
}
