// The slow definition of what the scanner makes of a push request of Loki.
import {
  addMember,
  entryOfRecord,
  isPlainObject,
  type Members,
  readEnvironment,
  readLevel,
  setMember,
} from '@sluice/records'
import { parseTimestamp } from '@sluice/rows'
import { type TextPrefix } from '@sluice/rows/testing'
import { entryFields, limits } from '@sluice/schema'
import { parseText, toValue, type Value } from './json.ts'
import { escapeTsv, ID, nameOf, textOf } from './reference.ts'
import { columnOf, type Faults, metadataOf, toEntry } from './repaired.ts'

interface Member {
  readonly name: string
  /** The name and the value as JSON. */
  readonly nameText: string
  readonly value: Value
}

interface Stream {
  /** Undefined if they are invalid. */
  readonly labels: Repaired | undefined
  readonly lines: readonly (Line | undefined)[]
}

/** Members, and how they were repaired. */
interface Repaired {
  readonly members: readonly Member[]
  readonly faults: Faults
  /** How many numbers may still be tried. */
  readonly numbersLeft: number
}

/** The numbers for names that are taken. */
interface Numbers {
  left: number
  readonly last: Map<string, number>
}

interface Line {
  readonly nanos: bigint | undefined
  readonly message: string
  readonly metadata: Repaired
}

export interface LokiOutcome {
  readonly rows?: string
  readonly errors?: readonly { readonly index: number; readonly code: string; readonly path: string }[]
  readonly invalid?: 'json' | 'protobuf' | 'shape'
}

const PAIRS_MAX = 288
const LABELS_MAX = 64
const NUMBERS_MAX = 16
const LABELS_BYTES_MAX = 16_384
const END_NS = BigInt(Date.UTC(2262, 0, 1)) * 1_000_000n

/** @param hasRecords whether lines are JSON records: values in their metadata then have the form of JSON.stringify */
export function lokiReference(
  body: Buffer,
  isJson: boolean,
  prefix: TextPrefix,
  hasRecords = false,
): LokiOutcome {
  const streams = isJson ? readJson(body.toString()) : readProtobuf(body)
  if (typeof streams === 'string') return { invalid: streams }
  let rows = ''
  let index = 0
  const errors: { index: number; code: string; path: string }[] = []
  for (const { labels, lines } of streams) {
    for (const line of lines) {
      const made =
        labels === undefined || line === undefined
          ? { code: 'wrong_type', path: '' }
          : rowOf(line, labels, prefix, hasRecords)
      if (typeof made === 'string') rows += made
      else errors.push({ index, ...made })
      index += 1
    }
  }
  return { rows, errors }
}

const roles = {
  level: ['level', 'detected_level', 'severity', 'severity_text'],
  service: ['service_name', 'service', 'app', 'application', 'app_kubernetes_io_name', 'job'],
  environment: ['environment', 'env', 'deployment_environment', 'deployment_environment_name'],
} as const

const usable: Readonly<Record<keyof typeof roles, (value: string) => boolean>> = {
  level: (value) => readLevel(value, 'pino') !== undefined,
  service: (value) =>
    value !== '' && value !== 'unknown_service' && Array.from(value).length <= limits.serviceCharactersMax,
  environment: (value) => readEnvironment(value) !== undefined,
}

function rowOf(
  { nanos: sent, message, metadata: { members: metadata, faults: ofLine, numbersLeft } }: Line,
  { members: labels, faults: ofStream }: Repaired,
  prefix: TextPrefix,
  hasRecords: boolean,
): string {
  const faults = new Set([...ofLine, ...ofStream])
  const nanos = sent !== undefined && sent < END_NS ? sent : 0n
  if (nanos !== sent) faults.add('invalid_timestamp')
  const own = hasRecords ? recordOf(message, nanos, faults) : undefined
  const added = [...metadata, ...labels]
  const used = new Set<Member>()
  /** The first usable value of a role, unless it says no less than what the line itself says. */
  const column = (role: keyof typeof roles): Value | undefined => {
    const found = roles[role]
      .map((name) => added.find((member) => member.name === name))
      .find((member) => member?.value.kind === 'string' && usable[role](member.value.string))
    if (found === undefined) return undefined
    const given = own?.columns[role]
    if (given !== undefined && given !== said(role, stringOf(found.value))) return undefined
    used.add(found)
    return found.value
  }
  const level = column('level')
  const service = column('service')
  const environment = column('environment')
  const all = [...(own?.metadata ?? [])]
  const numbers: Numbers = { left: numbersLeft, last: new Map() }
  const add = (member: Member): void => {
    const { name } = member
    const free = freeName(new Set(all.map((other) => other.name)), name, numbers)
    if (free === undefined) faults.add('too_many_names')
    else all.push(free === name ? member : { ...member, name: free, nameText: JSON.stringify(free) })
  }
  const addOwn = (name: string, value: Value): void => add({ name, nameText: JSON.stringify(name), value })
  for (const member of added) {
    const same = all.find(({ name }) => name === member.name)
    // One that is used is compared with those after it, but not written.
    if (same === undefined || !(used.has(member) || isSame(same.value, member.value))) add(member)
  }
  if (nanos % 1_000n !== 0n) addOwn('timeUnixNano', stringValue(String(nanos)))
  const reading = readLevel(level === undefined ? 'log' : stringOf(level), 'pino')
  if (reading?.isExact === false && level !== undefined) addOwn('originalLevel', level)
  const columnsOfLine = own?.columns ?? {}
  const textIn = (name: string, charactersMax: number, text = ''): string =>
    escapeTsv(columnOf(columnsOfLine[name] ?? text, charactersMax, faults))

  const serviceText = textIn(
    'service',
    limits.serviceCharactersMax,
    service === undefined ? '' : stringOf(service),
  )
  const url = textIn('url', limits.urlCharactersMax)
  const pathname = textIn('pathname', limits.pathnameCharactersMax)
  const content = textIn('message', limits.messageCharactersMax, message)
  const stack = textIn('stack', limits.stackCharactersMax)
  const text = metadataOf(
    all.filter((member) => !used.has(member)).map(({ nameText, value }) => [nameText, value] as const),
    faults,
  )
  const { source = '' } = columnsOfLine
  const time = nanos === 0n ? (columnsOfLine['timestamp'] ?? prefix.receivedAt) : timeOf(nanos)
  const environmentText =
    columnsOfLine['environment'] ?? (environment === undefined ? '' : readEnvironment(stringOf(environment)))
  const columns = [
    time,
    columnsOfLine['level'] ?? reading?.level,
    environmentText,
    source,
    serviceText,
    url,
    pathname,
    content,
    stack,
  ]
  return `${prefix.text}${ID}\t${columns.join('\t')}\t${escapeTsv(text)}\n`
}

/** What a value in a role says, if it says no more than the contract. */
function said(role: keyof typeof roles, value: string): string | undefined {
  if (role === 'environment') return readEnvironment(value)
  if (role === 'service') return value
  const reading = readLevel(value, 'pino')
  return reading?.isExact === true ? reading.level : undefined
}

interface OwnRecord {
  readonly columns: Readonly<Record<string, string>>
  readonly metadata: readonly Member[]
}

const EPOCH = '1970-01-01T00:00:00.000000Z'

/** What a line that is the record of a logger says itself. A time in it that is not the time of the line is metadata. */
function recordOf(message: string, nanos: bigint, faults: Faults): OwnRecord | undefined {
  const value = message.isWellFormed() ? parseText(message) : ''
  const record = typeof value === 'string' ? undefined : toValue(value)
  if (typeof value === 'string' || !isPlainObject(record)) return undefined
  const { timestamp, ...rest } = record
  const entry = toEntry(record, faults)
  const time = entry['timestamp']
  if (typeof time !== 'string' || nanos < 1_000n || timeOfIso(time) === timeOf(nanos))
    return ownOf(entry, record)
  const other = { ...entryOfRecord({ timestamp: EPOCH, ...rest }, { defaultLevel: 'log' }) }
  if (entry['message'] !== record['message']) other['message'] = entry['message']
  const metadata = isPlainObject(other['metadata']) ? { ...other['metadata'] } : {}
  if (timestamp !== undefined && timestamp !== null) addMember(metadata, 'timestamp', timestamp)
  return ownOf({ ...other, metadata }, record)
}

function ownOf(entry: Members, record: Members): OwnRecord {
  const metadata: Members = isPlainObject(entry['metadata']) ? { ...entry['metadata'] } : {}
  const columns: Record<string, string> = {}
  for (const [name, value] of Object.entries(entry)) {
    if (!entryFields.has(name)) setMember(metadata, name, value)
    else if (typeof value === 'string') columns[name] = value
  }
  if (columns['timestamp'] !== undefined) columns['timestamp'] = timeOfIso(columns['timestamp'])
  // The default does not count.
  if (entryOfRecord(record, { defaultLevel: 'success' })['level'] !== columns['level'])
    delete columns['level']
  const value = parseText(JSON.stringify(metadata))
  return { columns, metadata: typeof value === 'string' ? [] : (membersOf(value) ?? []) }
}

/** Of a valid time with microseconds or less. */
function timeOfIso(timestamp: string): string {
  const [, seconds = '', fraction = ''] = /^(.{19})(?:[.,](\d+))?/.exec(parseTimestamp(timestamp) ?? '') ?? []
  return `${seconds.replace('T', ' ')}.${`${fraction}000000`.slice(0, 6)}`
}

function timeOf(nanos: bigint): string {
  const us = nanos / 1_000n
  const text = new Date(Number(us / 1_000n)).toISOString().replace('T', ' ').slice(0, -1)
  return `${text}${String(us % 1_000n).padStart(3, '0')}`
}

function isSame(a: Value, b: Value): boolean {
  const [text, other] = [a, b].map((value) =>
    value.kind === 'string' ? value.string : 'raw' in value ? value.raw : undefined,
  )
  return text !== undefined && text === other
}

const stringOf = (value: Value): string => (value.kind === 'string' ? value.string : '')
const stringValue = (string: string): Value => ({ kind: 'string', raw: JSON.stringify(string), string })

function readJson(text: string): readonly Stream[] | 'json' | 'shape' {
  const root = parseText(text)
  if (typeof root === 'string') return 'json'
  const streams = elementsOf(memberOf(root, 'streams'))
  if (streams === undefined || streams.some((stream) => elementsOf(memberOf(stream, 'values')) === undefined))
    return 'shape'
  return streams.map((stream) => ({
    labels: labelsOf(memberOf(stream, 'stream')),
    lines: (elementsOf(memberOf(stream, 'values')) ?? []).map(lineOf),
  }))
}

function memberOf(value: Value, name: string): Value | undefined {
  return value.kind === 'object' ? value.members.get(name)?.value : undefined
}

/** Null stands for none. */
function elementsOf(value: Value | undefined): readonly Value[] | undefined {
  if (value?.kind === 'array') return value.elements
  return value?.kind === 'word' && value.raw === 'null' ? [] : undefined
}

function membersOf(value: Value | undefined): readonly Member[] | undefined {
  if (value === undefined) return []
  if (value.kind !== 'object') return undefined
  return [...value.members].map(([name, { rawName, value: of }]) => ({
    name,
    nameText: nameOf(name, rawName),
    value: of,
  }))
}

/** The first members of so many. */
function first(members: readonly Member[], count: number): Repaired {
  return {
    members: members.slice(0, count),
    numbersLeft: NUMBERS_MAX,
    faults: new Set(members.length > count ? ['too_many_names'] : []),
  }
}

/** The labels that fit. */
function shortened({ members, faults, numbersLeft }: Repaired, bytesOf: (value: Value) => number): Repaired {
  let bytes = 0
  const kept: Member[] = []
  for (const member of members) {
    const taken = Buffer.byteLength(member.name.toWellFormed()) + bytesOf(member.value)
    if (bytes + taken > LABELS_BYTES_MAX) faults.add('too_large')
    else {
      bytes += taken
      kept.push(member)
    }
  }
  return { members: kept, faults, numbersLeft }
}

const bytesInJson = (value: Value): number =>
  Buffer.byteLength(textOf(value)) - (value.kind === 'string' ? 2 : 0)

function labelsOf(value: Value | undefined): Repaired | undefined {
  const labels = membersOf(value)
  return labels === undefined ? undefined : shortened(first(labels, LABELS_MAX), bytesInJson)
}

function lineOf(value: Value): Line | undefined {
  if (value.kind !== 'array') return undefined
  const [time, line, structured, ...more] = value.elements
  const metadata = membersOf(structured)
  if (line?.kind !== 'string' || metadata === undefined || more.length > 0) return undefined
  const sent = time?.kind === 'string' ? time.string : time?.kind === 'number' ? time.raw : ''
  const [, digits] = /^(\d{1,19})(?:\.0*)?$/.exec(sent) ?? []
  return {
    nanos: digits === undefined ? undefined : BigInt(digits),
    message: line.string,
    metadata: first(metadata, PAIRS_MAX),
  }
}

class Malformed extends Error {}

/** The fields of a message, without groups. */
function fieldsOf(bytes: Buffer): { tag: number; bytes: Buffer; number: bigint }[] {
  const fields: { tag: number; bytes: Buffer; number: bigint }[] = []
  let at = 0
  const varint = (): bigint => {
    for (let number = 0n, i = 0n; i < 10n; i += 1n) {
      const byte = bytes[at]
      if (byte === undefined) throw new Malformed()
      at += 1
      number |= BigInt(byte & 0x7f) << (7n * i)
      if (byte < 0x80) return BigInt.asUintN(64, number)
    }
    throw new Malformed()
  }
  const take = (count: bigint): Buffer => {
    if (count > bytes.length - at) throw new Malformed()
    at += Number(count)
    return bytes.subarray(at - Number(count), at)
  }
  const open: bigint[] = []
  while (at < bytes.length) {
    const tag = varint()
    if (tag < 8n || tag >= 1n << 32n) throw new Malformed()
    const type = tag & 7n
    if (type === 3n) open.push(tag >> 3n)
    else if (type === 4n) {
      if (open.pop() !== tag >> 3n) throw new Malformed()
    } else if (type > 5n) throw new Malformed()
    else {
      const number = type === 0n ? varint() : 0n
      const content = take(type === 1n ? 8n : type === 2n ? varint() : type === 5n ? 4n : 0n)
      if (open.length === 0) fields.push({ tag: Number(tag), bytes: content, number })
    }
    if (open.length > 100) throw new Malformed()
  }
  if (open.length > 0) throw new Malformed()
  return fields
}

function readProtobuf(body: Buffer): readonly Stream[] | 'protobuf' {
  try {
    return fieldsOf(body)
      .filter(({ tag }) => tag === 10)
      .map((stream) => {
        const fields = fieldsOf(stream.bytes)
        const text = fields.findLast(({ tag }) => tag === 10)?.bytes
        const labels = text === undefined ? numbered([], 0) : labelSetOf(text)
        const entries = fields.filter(({ tag }) => tag === 18)
        return { labels, lines: entries.map((entry) => entryOf(fieldsOf(entry.bytes))) }
      })
  } catch (error) {
    if (error instanceof Malformed) return 'protobuf'
    throw error
  }
}

function entryOf(fields: ReturnType<typeof fieldsOf>): Line {
  let seconds = 0n
  let rest = 0n
  let message = ''
  const metadata: [string, string][] = []
  for (const { tag, bytes } of fields) {
    if (tag === 18) message = bytes.toString()
    if (tag === 10) {
      for (const part of fieldsOf(bytes)) {
        if (part.tag === 8) seconds = BigInt.asIntN(64, part.number)
        if (part.tag === 16) rest = BigInt.asIntN(32, part.number)
      }
    }
    if (tag === 26) {
      const parts = fieldsOf(bytes)
      const last = (one: number): string => parts.findLast((part) => part.tag === one)?.bytes.toString() ?? ''
      metadata.push([last(10), last(18)])
    }
  }
  const nanos = seconds * 1_000_000_000n + rest
  return { nanos: nanos < 0n ? undefined : nanos, message, metadata: numbered(metadata, PAIRS_MAX) }
}

/** Gives numbers to the second of the first members with a name and to further ones, while there are numbers. */
function numbered(pairs: readonly (readonly [string, string])[], count: number): Repaired {
  const faults: Faults = new Set()
  const taken = new Set<string>()
  const members: Member[] = []
  const numbers: Numbers = { left: NUMBERS_MAX, last: new Map() }
  for (const [name, string] of pairs) {
    const free = members.length < count ? freeName(taken, name, numbers) : undefined
    if (free === undefined) faults.add('too_many_names')
    else {
      taken.add(free)
      members.push({ name: free, nameText: JSON.stringify(free), value: stringValue(string) })
    }
  }
  return { members, faults, numbersLeft: numbers.left }
}

/** The name itself, or with the first number that makes it a new one; undefined if none is left. No number is tried twice. */
function freeName(taken: ReadonlySet<string>, name: string, numbers: Numbers): string | undefined {
  let free = name
  while (taken.has(free)) {
    if (numbers.left === 0) return undefined
    numbers.left -= 1
    const number = (numbers.last.get(name) ?? 1) + 1
    numbers.last.set(name, number)
    free = `${name}_${number}`
  }
  return free
}

/** `name="value"` and what follows. */
const LABEL =
  /[ \t-\r]*([^"}=\0- ][^=\0- ]*|"(?:[^"\\]|\\[^])*")[ \t-\r]*=[ \t-\r]*("(?:[^"\\]|\\[^])*"|`[^`]*`)[ \t-\r]*(?:,[ \t-\r]*(?=\})|(?=\})|,)/y

function labelSetOf(bytes: Buffer): Repaired | undefined {
  const text = bytes.toString()
  const pairs: [string, string][] = []
  let at = /^[ \t-\r]*\{/.exec(text)?.[0].length ?? 0
  if (at === 0) return undefined
  LABEL.lastIndex = at
  for (let match = LABEL.exec(text); match !== null; match = LABEL.exec(text)) {
    const [, name = '', value = ''] = match
    pairs.push([name.startsWith('"') ? unquote(name) : name, unquote(value)])
    at = LABEL.lastIndex
    if (text[at] === '}') break
  }
  const isValid = /^[ \t-\r]*\}[ \t-\r]*$/.test(text.slice(at))
  return isValid
    ? shortened(numbered(pairs, LABELS_MAX), (value) => Buffer.byteLength(stringOf(value)))
    : undefined
}

const ESCAPE = /\\(x[0-9A-Fa-f]{2}|[0-7]{3}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^])/g
const letters: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

function unquote(quoted: string): string {
  const content = quoted.slice(1, -1)
  return quoted.startsWith('`') ? content : content.replace(ESCAPE, decodeEscape)
}

function decodeEscape(_escape: string, body: string): string {
  const kind = body[0] ?? ''
  if (body.length === 1) return letters[kind] ?? body
  const code = /[xuU]/.test(kind) ? Number.parseInt(body.slice(1), 16) : Number.parseInt(body, 8)
  const isSurrogate = code >= 0xd800 && code < 0xe000
  return isSurrogate || code > (/[uU]/.test(kind) ? 0x10_ffff : 0x7f)
    ? '\u{FFFD}'
    : String.fromCodePoint(code)
}
