import { isRawJson } from '@sluice/rows'
import { type Entry, limits } from '@sluice/schema'
import { takeEnvironment, takeService, takeText } from './columns-of-attributes.ts'
import { severityOf } from './level-of-record.ts'
import { type Attributes, isEmpty, type LogRecord, type Resource, type Scope } from './log-record.ts'
import { hasWholeMicroseconds, isTimestamp, toTimestamp } from './nanoseconds.ts'

/** What the entries of one scope have in common. */
export interface Origin {
  readonly service: string | undefined
  readonly environment: Entry['environment'] | undefined
  /** The last members of the metadata of each entry. */
  readonly metadata: Attributes
}

/** An id of zeros is no id. */
const ZEROS = /^0*$/

/**
 * The mapping is documented in docs/sources/opentelemetry.md.
 *
 * @param resource shared by its scopes: what becomes a column is found again in each
 */
export function originOf(resource: Resource, scope: Scope): Origin {
  const attributes = { ...resource.attributes }
  const service = takeService(attributes)
  const environment = takeEnvironment(attributes)
  const metadata: Attributes = {}
  if (!isEmpty(attributes)) metadata['resource'] = attributes
  if (resource.schemaUrl !== '') metadata['resource_schema_url'] = resource.schemaUrl
  if (resource.droppedAttributesCount > 0)
    metadata['resource_dropped_attributes_count'] = resource.droppedAttributesCount
  const described = describeScope(scope)
  if (!isEmpty(described)) metadata['scope'] = described
  return { service, environment, metadata }
}

function describeScope({ name, version, attributes, droppedAttributesCount, schemaUrl }: Scope): Attributes {
  const described: Attributes = {}
  if (name !== '') described['name'] = name
  if (version !== '') described['version'] = version
  if (!isEmpty(attributes)) described['attributes'] = attributes
  if (schemaUrl !== '') described['schema_url'] = schemaUrl
  if (droppedAttributesCount > 0) described['dropped_attributes_count'] = droppedAttributesCount
  return described
}

/** An entry as a client would send it. It is not validated yet. */
export function entryOf(record: LogRecord, { service, environment, metadata }: Origin): Attributes {
  const { body, attributes, timeUnixNano: time, observedTimeUnixNano: observed, eventName } = record
  const severity = severityOf(record.severityNumber, record.severityText)
  const stack = takeText(attributes, 'exception.stacktrace', limits.stackCharactersMax)
  const url = takeText(attributes, 'url.full', limits.urlCharactersMax)
  const pathname = takeText(attributes, 'url.path', limits.pathnameCharactersMax)
  const timestamp = [time, observed].find(isTimestamp)

  const own: Attributes = {}
  if (!isEmpty(attributes)) own['attributes'] = attributes
  if (record.droppedAttributesCount > 0) own['dropped_attributes_count'] = record.droppedAttributesCount
  if (!ZEROS.test(record.traceId)) own['trace_id'] = record.traceId
  if (!ZEROS.test(record.spanId)) own['span_id'] = record.spanId
  if (record.flags !== 0) own['flags'] = record.flags
  if (eventName !== '') own['event_name'] = eventName
  if (severity.severityNumber !== undefined) own['severity_number'] = severity.severityNumber
  if (severity.severityText !== undefined) own['severity_text'] = severity.severityText
  if (time !== 0n && !(isTimestamp(time) && hasWholeMicroseconds(time))) own['time_unix_nano'] = String(time)
  if (observed !== 0n && observed !== time) own['observed_time_unix_nano'] = String(observed)
  if (isStructured(body)) own['body'] = body
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

function isStructured(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !isRawJson(body)
}

function messageOf(body: unknown, eventName: string): string {
  if (body === null || body === '') return eventName
  return typeof body === 'string' ? body : JSON.stringify(body)
}
