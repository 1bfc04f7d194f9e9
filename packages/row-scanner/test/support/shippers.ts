// The slow definition of what the scanner makes of the bodies of shippers.
import { addMember, isPlainObject, type Members, readLevelName, readTime, setMember } from '@sluice/records'
import { type TextPrefix } from '@sluice/rows/testing'
import { type EntryErrorCode, entryFields, limits } from '@sluice/schema'
import { isUtf8 } from 'node:buffer'
import { parseText, parseValues, toValue, type Value } from './json.ts'
import { columnOf, type Faults, jsonOf, metadataOf, namedOf, toEntry, valueOf } from './repaired.ts'

/** A row with its metadata as a value: numbers and strings may have other forms. */
interface Row {
  readonly columns: readonly string[]
  readonly metadata: unknown
}

export interface Records {
  readonly rows: readonly Row[]
  /** For each rejected record its index, the code and the path of the error, which is not known within metadata. */
  readonly rejected: readonly (readonly [number, string, string])[]
  readonly items?: readonly unknown[]
}

type Made =
  | { readonly entry: Members; readonly faults: Faults }
  | { readonly code: EntryErrorCode; readonly path?: string }

/** Why a request is rejected as a whole. */
export class Rejected extends Error {}

function shape(made: readonly Made[], prefix: TextPrefix): Records {
  if (made.length > limits.recordsPerRequestMax) throw new Rejected('records')
  const rows: Row[] = []
  const rejected: (readonly [number, string, string])[] = []
  for (const [index, record] of made.entries()) {
    const shaped = 'entry' in record ? shapeEntry(record.entry, record.faults, prefix) : record
    if ('columns' in shaped) rows.push(shaped)
    else rejected.push([index, shaped.code, shaped.path ?? ''])
  }
  return { rows, rejected }
}

function shapeEntry(entry: Members, faults: Faults, prefix: TextPrefix): Row {
  const { metadata: given, ...rest } = entry
  const metadata: Members = isPlainObject(given) ? { ...given } : {}
  for (const name of Object.keys(rest)) if (!entryFields.has(name)) setMember(metadata, name, rest[name])
  const text = (name: string): string => (typeof rest[name] === 'string' ? rest[name] : '')
  const time = typeof rest['timestamp'] === 'string' ? timeOf(rest['timestamp']) : prefix.receivedAt
  const columns = [
    ...prefix.text.split('\t').slice(0, -1),
    time,
    text('level'),
    text('environment'),
    text('source'),
  ]
  for (const name of ['service', 'url', 'pathname', 'message', 'stack'] as const)
    columns.push(columnOf(text(name), limits[`${name}CharactersMax`], faults))
  return {
    columns: columns.map(comparable),
    metadata: sorted(JSON.parse(metadataOf(namedOf(metadata), faults))),
  }
}

/** The JSON of a record may be its message: numbers and strings may have other forms in it. */
export function comparable(column: string): string {
  return /^[[{]/.test(column) && typeof parseText(column) !== 'string'
    ? JSON.stringify(sorted(JSON.parse(column)))
    : column
}

/** A value that is too deep is a string with its JSON. */
export function sorted(value: unknown): unknown {
  if (typeof value === 'string') return comparable(value)
  if (Array.isArray(value)) return value.map(sorted)
  if (!isPlainObject(value)) return value
  return Object.entries(value)
    .map(([name, member]): [string, unknown] => [name, sorted(member)])
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/** Of a valid time. */
function timeOf(timestamp: string): string {
  const [, date, hour, minute, second = '00', fraction = '', offset = 'Z'] =
    /^(.{10}).(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(.*)$/.exec(timestamp) ?? []
  const [, sign, hours, minutes = '00'] = /^([+-])(\d\d):?(\d\d)?$/.exec(offset) ?? []
  const ahead = sign === undefined ? 0 : (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
  const us = `${fraction}000000`.slice(0, 6)
  const minutesUtc = Date.parse(`${date}T${hour}:${minute}:00Z`) / 60_000 - ahead
  const utc = new Date(minutesUtc * 60_000 + Number(second) * 1_000).toISOString()
  return `${utc.slice(0, 19).replace('T', ' ')}.${us}`
}

function withMetadata(entry: Members, added: Readonly<Members>): Members {
  const given = entry['metadata']
  const metadata: Members = isPlainObject(given) ? { ...given } : {}
  const fields: Members = {}
  for (const name of Object.keys(entry))
    setMember(entryFields.has(name) ? fields : metadata, name, entry[name])
  for (const name of Object.keys(added)) if (added[name] !== undefined) addMember(metadata, name, added[name])
  return { ...fields, metadata }
}

function madeOf(value: Value, make: (members: Members, faults: Faults) => Made | undefined): Made[] {
  const plain = toValue(value)
  if (!isPlainObject(plain)) return [{ code: 'wrong_type' }]
  const record = make(plain, new Set())
  return record === undefined ? [] : [record]
}

export function datadogReference(body: Buffer, prefix: TextPrefix): Records {
  const root = parseText(body.toString())
  if (typeof root === 'string') throw new Rejected(`0 ${root}`)
  const logs = root.kind === 'array' ? root.elements : [root]
  return shape(
    logs.flatMap((log) => madeOf(log, madeOfLog)),
    prefix,
  )
}

function madeOfLog(log: Members, faults: Faults): Made | undefined {
  if (Object.keys(log).length === 0) return undefined
  const { status, ddtags } = log
  const level = typeof status === 'string' && !Object.hasOwn(log, 'level') ? levelOfStatus(status) : undefined
  const record: Members = {}
  for (const name of Object.keys(log))
    if (name !== 'status' || level === undefined) setMember(record, name, log[name])
  if (level !== undefined) record['level'] = level
  const { env, service } = readTags(ddtags)
  if (env && !Object.hasOwn(log, 'environment') && !Object.hasOwn(log, 'env')) record['env'] = env
  if (service && !Object.hasOwn(log, 'service')) record['service'] = service
  return { entry: toEntry(record, faults), faults }
}

function levelOfStatus(status: string): string | undefined {
  if (status.toLowerCase() === 'ok') return 'success'
  return readLevelName(status) === undefined ? undefined : status
}

function readTags(ddtags: unknown): { readonly env?: string; readonly service?: string } {
  if (typeof ddtags !== 'string' || ddtags.length > 8_192) return {}
  const tags = ddtags.split(',').map((tag) => /^\s*(env|service)\s*:(.*)$/s.exec(tag))
  return Object.fromEntries(tags.flatMap((match) => (match === null ? [] : [[match[1], match[2]?.trim()]])))
}

export function hecReference(body: Buffer, prefix: TextPrefix): Records {
  const records: Made[] = []
  let values = 0
  for (const value of parseValues(body.toString())) {
    values += 1
    if (values > limits.recordsPerRequestMax) throw new Rejected('records')
    if (typeof value === 'string') throw new Rejected(`${records.length} ${value}`)
    const events = value.kind === 'array' ? value.elements : [value]
    records.push(...events.flatMap((event) => madeOf(event, madeOfEvent)))
  }
  return shape(records, prefix)
}

function madeOfEvent(envelope: Members, faults: Faults): Made {
  const { event, fields, time } = envelope
  if (event === undefined || event === null || event === '') return { code: 'missing' }
  const isTime = readTime(time) !== undefined
  const record = together(
    isTime ? { timestamp: time } : {},
    ...partsOf(event, faults),
    isPlainObject(fields) ? fields : {},
  )
  const used = new Set(['event', isTime ? 'time' : '', isPlainObject(fields) ? 'fields' : ''])
  const kept = Object.fromEntries(Object.entries(envelope).filter(([name]) => name === '' || !used.has(name)))
  return { entry: withMetadata(toEntry(record, faults), kept), faults }
}

function partsOf(event: unknown, faults: Faults): Members[] {
  if (!isPlainObject(event))
    return [{ message: typeof event === 'string' ? event : jsonOf(valueOf(event), faults) }]
  const { message, ...others } = event
  if (isPlainObject(message)) return [message, others]
  const { line, ...rest } = others
  if (message === undefined && Object.hasOwn(event, 'source')) {
    const { attrs, ...origin } = rest
    const labels = isPlainObject(attrs) ? attrs : {}
    if (typeof line === 'string') return [{ message: line }, labels, origin]
    if (isPlainObject(line)) return [line, labels, origin]
  }
  return [event]
}

function together(...parts: readonly Members[]): Members {
  const all: Members = {}
  for (const part of parts) for (const name of Object.keys(part)) addMember(all, name, part[name])
  return all
}

export function hecLinesReference(
  body: Buffer,
  prefix: TextPrefix,
  { metadata, ...timestamp }: { readonly timestamp?: string; readonly metadata: Members },
): Records {
  const made = linesOf(body).map((line): Made => {
    const faults: Faults = new Set()
    return {
      entry: withMetadata(toEntry({ message: line.toString(), ...timestamp }, faults), metadata),
      faults,
    }
  })
  return shape(made, prefix)
}

/** The lines that are not empty. */
function linesOf(body: Buffer): Buffer[] {
  const lines = body.toString('latin1').split('\n')
  return lines.map((line) => Buffer.from(line.replace(/\r$/, ''), 'latin1')).filter((line) => line.length > 0)
}

export function bulkReference(body: Buffer, prefix: TextPrefix, pathIndex: string | null): Records {
  const records: Made[] = []
  const items: unknown[] = []
  let item: Item | undefined
  for (const [at, line] of linesOf(body).entries()) {
    if (item !== undefined) {
      records.push(madeOfDocument(line, item))
      item = undefined
    } else {
      item = itemOf(line, pathIndex, at + 1)
      items.push(item)
      if (item.action !== 'delete') continue
      records.push({ code: 'not_allowed' })
      item = undefined
    }
    if (records.length > limits.recordsPerRequestMax) throw new Rejected('records')
  }
  if (item !== undefined) throw malformed(linesOf(body).length, 'The document after the action is missing.')
  return { ...shape(records, prefix), items }
}

function malformed(line: number, what: string): Rejected {
  return new Rejected(`Malformed action/metadata line [${line}]. ${what}`)
}

interface Item {
  readonly action: string
  readonly index: string | null
  readonly id: string | null
  readonly indexFault: string | undefined
}

function itemOf(line: Buffer, pathIndex: string | null, number: number): Item {
  if (line.length > 8_192 || !isUtf8(line)) throw malformed(number, 'Expected an object.')
  const root = parseText(line.toString())
  if (typeof root === 'string') throw malformed(number, `It is not JSON: ${root}`)
  const [[action, member] = []] = root.kind === 'object' ? root.members : []
  const target = member === undefined ? undefined : toValue(member.value)
  const isKnown = action !== undefined && ['create', 'delete', 'index', 'update'].includes(action)
  if (!isKnown || !isPlainObject(target))
    throw malformed(number, 'Expected one of create, delete, index and update, with an object.')
  const nameOf = (field: string): string | null => {
    const name = target[field] ?? null
    if (name === null || typeof name === 'string') return name
    if (isPlainObject(name) || Array.isArray(name))
      throw malformed(number, `Expected a simple value for field [${field}].`)
    return JSON.stringify(name)
  }
  const index = nameOf('_index') ?? pathIndex
  const id = nameOf('_id')
  return { action, index, id, indexFault: index === null ? undefined : faultOf(index) }
}

const rules: readonly (readonly [RegExp, fault: string])[] = [
  [/^$/, 'must not be empty'],
  [
    /[\\/*?"<>| ,]/,
    String.raw`must not contain the following characters ['\','/','*','?','"','<','>','|',' ',',']`,
  ],
  [/\p{Cc}/u, 'must not contain control characters'],
  [/#/, "must not contain '#'"],
  [/:/, "must not contain ':'"],
  [/^[_+-]/, "must not start with '_', '-', or '+'"],
  [/^\.\.?$/, "must not be '.' or '..'"],
]

function faultOf(name: string): string | undefined {
  const bytes = Buffer.byteLength(name)
  if (bytes > 255) return `index name is too long, (${bytes} > 255)`
  const broken = rules.find(([rule]) => rule.test(name))
  if (broken !== undefined) return broken[1]
  return name === name.toLowerCase() ? undefined : 'must be lowercase'
}

function madeOfDocument(line: Buffer, { action, index, id, indexFault }: Item): Made {
  if (indexFault !== undefined || !['index', 'create'].includes(action)) return { code: 'not_allowed' }
  if (!isUtf8(line)) return { code: 'invalid_json' }
  const root = parseText(line.toString())
  if (typeof root === 'string') return { code: 'invalid_json' }
  const [record] = madeOf(root, (document, faults) => {
    if (index !== null) addMember(document, '_index', index)
    if (id !== null) addMember(document, '_id', id)
    return { entry: toEntry(document, faults), faults }
  })
  return record ?? { code: 'wrong_type' }
}
