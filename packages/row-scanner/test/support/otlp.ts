// The slow definition of what the scanner makes of OTLP logs. The mapping is documented in docs/sources/opentelemetry.md.
import { readEnvironment, readLevel } from '@sluice/records'
import { textPrefix } from '@sluice/rows/testing'
import { hasAtMostCharacters, limits } from '@sluice/schema'
import type { Members, Value } from './json.ts'
import { escapeTsv, findInValue, ID, levelsOf, nameOf, pointer, stamp, textOf } from './reference.ts'

/** The body is not an ExportLogsServiceRequest. */
export class Fault extends Error {}

/** Why a record is rejected, or all records of a resource or a scope. */
export class Rejected extends Error {
  readonly error: { readonly path: string; readonly code: string; readonly message: string }

  constructor(code: string, message: string, path = '') {
    super(message)
    this.error = { path, code, message }
  }
}

export interface LogRecord {
  time: bigint
  observed: bigint
  severity: number
  severityText: Value | undefined
  body: Value
  attributes: Members
  dropped: number
  flags: number
  traceId: Value | undefined
  spanId: Value | undefined
  eventName: Value | undefined
}
export interface Resource {
  attributes: Members
  dropped: number
  schemaUrl: Value | undefined
}
export interface Scope extends Resource {
  name: Value | undefined
  version: Value | undefined
}

export const nothing: Value = { kind: 'word', raw: 'null' }
export const emptyResource = (): Resource => ({ attributes: new Map(), dropped: 0, schemaUrl: undefined })
export const emptyScope = (): Scope => ({ ...emptyResource(), name: undefined, version: undefined })
export const emptyRecord = (): LogRecord => ({
  time: 0n,
  observed: 0n,
  severity: 0,
  severityText: undefined,
  body: nothing,
  attributes: new Map() as Members,
  dropped: 0,
  flags: 0,
  traceId: undefined,
  spanId: undefined,
  eventName: undefined,
})

/** The levels of values in metadata. */
export const levels = { body: 1, attributes: 2, scopeAttributes: 3 } as const

/** Counts the least bytes that values take as JSON. */
export class Budget {
  #left = limits.metadataBytesMax + 256

  takeElement(): void {
    this.#take(2)
  }

  takeMember(name: string): void {
    this.#take(5 + Buffer.byteLength(name))
  }

  #take(bytes: number): void {
    this.#left -= bytes
    if (this.#left < 0) throw tooLarge()
  }
}

const tooLarge = (): Rejected =>
  new Rejected('too_large', `must have at most ${limits.metadataBytesMax} bytes as JSON`, '/metadata')
export const tooDeep = (): Rejected =>
  new Rejected('too_deep', `must have at most ${limits.metadataDepthMax} levels`, '/metadata')

/** Sets a member like JSON.parse: the first of several has its place, and the last its value. */
export function setMember(members: Members, rawName: string, name: string, value: Value): void {
  const earlier = members.get(name)
  if (earlier === undefined) members.set(name, { rawName, value })
  else earlier.value = value
}

/** What the records of a resource and a scope have in common. */
interface Origin {
  readonly service: Value | undefined
  readonly environment: string
  readonly members: readonly Member[]
}
type Member = readonly [name: string, value: Value]

export function originOfResource({ attributes, dropped, schemaUrl }: Resource): Origin {
  checkLevels(attributes, levels.attributes)
  const service = takeText(attributes, 'service.name', limits.serviceCharactersMax)
  const environment = takeEnvironment(attributes)
  const members = filled({
    resource: objectOf(attributes),
    resource_schema_url: schemaUrl,
    resource_dropped_attributes_count: dropped,
  })
  checkBytes(members)
  return { service, environment, members }
}

export function originOf(resource: Origin, { name, version, attributes, schemaUrl, dropped }: Scope): Origin {
  checkLevels(attributes, levels.scopeAttributes)
  const parts = {
    name,
    version,
    attributes: objectOf(attributes),
    schema_url: schemaUrl,
    dropped_attributes_count: dropped,
  }
  const members = [...resource.members, ...filled({ scope: objectOf(new Map(filled(parts).map(toMember))) })]
  checkBytes(members)
  return { ...resource, members }
}

const toMember = ([name, value]: Member): [string, { rawName: string; value: Value }] => [
  name,
  { rawName: `"${name}"`, value },
]
const objectOf = (members: Members): Value => ({ kind: 'object', members })
export const stringOf = (string: string): Value => ({ kind: 'string', raw: JSON.stringify(string), string })
const numberOf = (number: number | bigint): Value => ({ kind: 'number', raw: String(number) })

/** The members that do not have the default value of Protocol Buffers. */
function filled(members: Readonly<Record<string, Value | number | undefined>>): Member[] {
  return Object.entries(members).flatMap(([name, value]): Member[] => {
    if (typeof value === 'number') return value === 0 ? [] : [[name, numberOf(value)]]
    if (value === undefined || (value.kind === 'string' && value.string === '')) return []
    return value.kind === 'object' && value.members.size === 0 ? [] : [[name, value]]
  })
}

const textOfMembers = (members: readonly Member[]): string => textOf(objectOf(new Map(members.map(toMember))))

function checkBytes(members: readonly Member[]): void {
  if (Buffer.byteLength(textOfMembers(members)) > limits.metadataBytesMax) throw tooLarge()
}

function checkLevels(attributes: Members, level: number): void {
  if (level - 1 + levelsOf(objectOf(attributes)) > limits.metadataDepthMax) throw tooDeep()
}

function takeText(attributes: Members, name: string, charactersMax: number): Value | undefined {
  const value = attributes.get(name)?.value
  if (value?.kind !== 'string' || value.string === '' || !hasAtMostCharacters(value.string, charactersMax))
    return undefined
  attributes.delete(name)
  return value
}

function takeEnvironment(attributes: Members): string {
  for (const name of ['deployment.environment.name', 'deployment.environment']) {
    const value = attributes.get(name)?.value
    const environment = value?.kind === 'string' ? readEnvironment(value.string) : undefined
    if (environment === undefined) continue
    if (value?.kind === 'string' && value.string === environment) attributes.delete(name)
    return environment
  }
  return ''
}

const END_NS = BigInt(Date.UTC(2262, 0, 1)) * 1_000_000n
const isTime = (time: bigint): boolean => time > 0n && time < END_NS
const ZEROS = /^0*$/
const isId = (id: Value | undefined): boolean => id?.kind === 'string' && !ZEROS.test(id.string)
const prefix = textPrefix(stamp)

/** The row of a record. @throws Rejected */
export function rowOf(record: LogRecord, { service, environment, members: common }: Origin): string {
  const { time, observed, severity, severityText, body, attributes, eventName, dropped, flags } = record
  const url = takeText(attributes, 'url.full', limits.urlCharactersMax)
  const pathname = takeText(attributes, 'url.path', limits.pathnameCharactersMax)
  const stack = takeText(attributes, 'exception.stacktrace', limits.stackCharactersMax)
  const text = severityText?.kind === 'string' ? severityText.string : ''
  const numbered = readLevel(severity, 'otel')
  const level = numbered?.level ?? readLevel(text, 'pino')?.level ?? 'log'
  const isList = body.kind === 'array' || body.kind === 'object'
  const own: Member[] = [
    ...filled({ attributes: objectOf(attributes), dropped_attributes_count: dropped }),
    ...filled({
      trace_id: isId(record.traceId) ? record.traceId : undefined,
      span_id: isId(record.spanId) ? record.spanId : undefined,
    }),
    ...filled({ flags, event_name: eventName, severity_number: numbered?.isExact === true ? 0 : severity }),
    ...filled({ severity_text: text.toLowerCase() === level ? undefined : severityText }),
    ...filled({ time_unix_nano: isTime(time) && time % 1_000n === 0n ? undefined : digits(time) }),
    ...filled({ observed_time_unix_nano: observed === time ? undefined : digits(observed) }),
    ...(isList ? [['body', body] as const] : []),
  ]
  checkBytes([...own, ...common])
  const message = isNothing(body) ? (eventName ?? stringOf('')) : body
  const content = contentOf(message)
  const isTooLong = !hasAtMostCharacters(content, limits.messageCharactersMax)
  const long = new Rejected(
    'too_long',
    `must have at most ${limits.messageCharactersMax} characters`,
    '/message',
  )
  if (isTooLong && message.kind !== 'string') throw long
  const depth = 1 + Math.max(0, ...own.map(([, value]) => levelsOf(value)))
  if (depth <= limits.metadataDepthMax)
    checkUnicode({ message, url, pathname, stack }, own, { service, common })
  if (isTooLong) throw long
  if (depth > limits.metadataDepthMax) throw tooDeep()
  const at = isTime(time) ? time : observed
  const timestamp = isTime(at) ? timeOf(at) : prefix.receivedAt
  const columns = [service, url, pathname].map((value) => (value?.kind === 'string' ? value.string : ''))
  const fields = [level, environment, '', ...columns, content, stack?.kind === 'string' ? stack.string : '']
  const metadata = textOfMembers([...own, ...common])
  return `${prefix.text}${ID}\t${timestamp}\t${[...fields, metadata].map(escapeTsv).join('\t')}\n`
}

const digits = (time: bigint): Value | undefined => (time === 0n ? undefined : stringOf(String(time)))

function timeOf(time: bigint): string {
  const us = time / 1_000n
  const text = new Date(Number(us / 1_000n)).toISOString().replace('T', ' ')
  return `${text.slice(0, -1)}${String(us % 1_000n).padStart(3, '0')}`
}

/** Whether there is no value, or no character of one. */
const isNothing = (body: Value): boolean => body === nothing || ('raw' in body && body.raw === '""')

/** A string, or the JSON of another value. Bytes, and doubles that are not finite, are words in quotes. */
function contentOf(value: Value): string {
  if (value.kind === 'string') return value.string
  const text = textOf(value)
  return value.kind === 'word' && text.startsWith('"') ? text.slice(1, -1) : text
}

function checkUnicode(
  columns: Readonly<Record<string, Value | undefined>>,
  own: readonly Member[],
  { service, common }: { readonly service: Value | undefined; readonly common: readonly Member[] },
): void {
  const metadata = (members: readonly Member[]): (readonly [path: string, value: Value | undefined])[] =>
    members.map(([name, value]) => [`/metadata${pointer(name)}`, value])
  const ofColumns = Object.entries({ ...columns }).map(([name, value]) => [`/${name}`, value] as const)
  for (const [path, value] of [
    ...ofColumns,
    ...metadata(own),
    ['/service', service] as const,
    ...metadata(common),
  ]) {
    const found =
      value === undefined || (value.kind !== 'string' && path === '/message') ? undefined : findInValue(value)
    if (found !== undefined)
      throw new Rejected('invalid_unicode', 'must not contain half of a surrogate pair', `${path}${found}`)
  }
}

/** What came of a body: rows, and the errors of rejected records; or why it is rejected. */
export interface OtlpOutcome {
  records: number
  rows: string
  errors: Record<number, object>
}

/** Collects the records of a body. */
export class Collector {
  readonly outcome: OtlpOutcome = { records: 0, rows: '', errors: {} }

  /** @param read makes a row */
  add(read: () => string): void {
    const index = this.outcome.records
    this.outcome.records += 1
    if (index >= limits.recordsPerRequestMax) throw new Fault('the request has too many records')
    try {
      this.outcome.rows += read()
    } catch (error) {
      if (!(error instanceof Rejected)) throw error
      this.outcome.errors[index] = error.error
    }
  }
}

/** What a function returns, or the error of the records that it read. */
export function orRejected<Result>(read: () => Result): Result | Rejected {
  try {
    return read()
  } catch (error) {
    if (error instanceof Rejected) return error
    throw error
  }
}

export function checked<Result>(result: Result | Rejected): Result {
  if (result instanceof Rejected) throw result
  return result
}

export { nameOf }
