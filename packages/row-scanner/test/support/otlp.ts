// The slow definition of what the scanner makes of OTLP logs. The mapping is documented in docs/sources/opentelemetry.md.
import { readEnvironment, readLevel } from '@sluice/records'
import { textPrefix } from '@sluice/rows/testing'
import { hasAtMostCharacters, limits } from '@sluice/schema'
import type { Members, Value } from './json.ts'
import {
  columnOf,
  type Faults,
  jsonOfOtlp,
  MARK_BYTES,
  metadataOf,
  type Named,
  writeMembers,
} from './repaired.ts'
import { escapeTsv, ID, nameOf, stamp, textOf } from './reference.ts'

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
  readonly budget: Budget
  attributes: Members
  dropped: number
  flags: number
  traceId: Value | undefined
  spanId: Value | undefined
  eventName: Value | undefined
}
export interface Resource {
  readonly budget: Budget
  attributes: Members
  dropped: number
  schemaUrl: Value | undefined
}
export interface Scope extends Resource {
  name: Value | undefined
  version: Value | undefined
}

export const nothing: Value = { kind: 'word', raw: 'null' }
export const emptyResource = (): Resource => ({
  budget: new Budget(),
  attributes: new Map(),
  dropped: 0,
  schemaUrl: undefined,
})
export const emptyScope = (): Scope => ({ ...emptyResource(), name: undefined, version: undefined })
export const emptyRecord = (): LogRecord => ({
  time: 0n,
  observed: 0n,
  severity: 0,
  severityText: undefined,
  body: nothing,
  budget: new Budget(),
  attributes: new Map() as Members,
  dropped: 0,
  flags: 0,
  traceId: undefined,
  spanId: undefined,
  eventName: undefined,
})

/** The levels of values in metadata. */
export const levels = { body: 1, attributes: 2, scopeAttributes: 3 } as const

/** Counts the least bytes that values take as JSON. Others go. */
export class Budget {
  #left = limits.metadataBytesMax + 256
  readonly faults: Faults = new Set()

  takeElement(): boolean {
    return this.#take(2)
  }

  takeMember(name: string): boolean {
    return this.#take(5 + Buffer.byteLength(name.toWellFormed()))
  }

  #take(bytes: number): boolean {
    if (bytes > this.#left) {
      this.faults.add('too_large')
      return false
    }
    this.#left -= bytes
    return true
  }
}

/** Sets a member like JSON.parse: the first of several has its place, and the last its value. */
export function setMember(members: Members, rawName: string, name: string, value: Value): void {
  const earlier = members.get(name.toWellFormed())
  if (earlier === undefined) members.set(name.toWellFormed(), { rawName, value })
  else earlier.value = value
}

/** What the records of a resource and a scope have in common. */
interface Origin {
  readonly service: Value | undefined
  readonly environment: string
  /** As JSON. */
  readonly members: readonly string[]
  readonly faults: Faults
}
type Member = readonly [name: string, value: Value]

export function originOfResource({ attributes, dropped, schemaUrl, budget }: Resource): Origin {
  const service = takeText(attributes, 'service.name', limits.serviceCharactersMax)
  const environment = takeEnvironment(attributes)
  const members = filled({
    resource: objectOf(attributes),
    resource_schema_url: schemaUrl,
    resource_dropped_attributes_count: dropped,
  })
  return together({ service, environment, members: [], faults: budget.faults }, members)
}

export function originOf(resource: Origin, scope: Scope): Origin {
  const { name, version, attributes, schemaUrl, dropped, budget } = scope
  const parts = {
    name,
    version,
    attributes: objectOf(attributes),
    schema_url: schemaUrl,
    dropped_attributes_count: dropped,
  }
  const faults = new Set([...resource.faults, ...budget.faults])
  return together({ ...resource, faults }, filled({ scope: objectOf(new Map(filled(parts).map(toMember))) }))
}

/** Adds the members that fit. */
function together(origin: Origin, members: readonly Member[]): Origin {
  const taken = origin.members.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0)
  const bytesMax = limits.metadataBytesMax - MARK_BYTES - taken
  const added = writeMembers(members.map(toNamed), bytesMax, origin.faults, undefined, 'otlp')
  return { ...origin, members: [...origin.members, ...added] }
}

const toNamed = ([name, value]: Member): Named => [`"${name}"`, value]
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
export function rowOf(record: LogRecord, origin: Origin): string {
  const { service, environment, members: common } = origin
  const faults = new Set([...origin.faults, ...record.budget.faults])
  const { time, observed, severity, severityText, body, attributes, eventName, dropped, flags } = record
  const url = takeText(attributes, 'url.full', limits.urlCharactersMax)
  const pathname = takeText(attributes, 'url.path', limits.pathnameCharactersMax)
  const stack = takeText(attributes, 'exception.stacktrace', Infinity)
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
  const message = isNothing(body) ? (eventName ?? stringOf('')) : body
  const content = contentOf(message, faults)
  const at = isTime(time) ? time : observed
  const timestamp = isTime(at) ? timeOf(at) : prefix.receivedAt
  const column = (value: Value | undefined, charactersMax: number): string =>
    columnOf(value?.kind === 'string' ? value.string : '', charactersMax, faults)
  const fields = [
    level,
    environment,
    '',
    column(service, limits.serviceCharactersMax),
    column(url, limits.urlCharactersMax),
    column(pathname, limits.pathnameCharactersMax),
    columnOf(content, limits.messageCharactersMax, faults),
    column(stack, limits.stackCharactersMax),
  ]
  const metadata = metadataOf(own.map(toNamed), faults, common, 'otlp')
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
function contentOf(value: Value, faults: Faults): string {
  if (value.kind === 'string') return value.string
  if (value.kind === 'array' || value.kind === 'object') return jsonOfOtlp(value, faults)
  const text = textOf(value)
  return value.kind === 'word' && text.startsWith('"') ? text.slice(1, -1) : text
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
