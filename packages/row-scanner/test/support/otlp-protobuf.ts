// The slow definition of how OTLP logs in Protocol Buffers are read.
import { limits } from '@sluice/schema'
import { isUtf8 } from 'node:buffer'
import type { Members, Value } from './json.ts'
import {
  type Budget,
  checked,
  Collector,
  emptyRecord,
  emptyResource,
  emptyScope,
  Fault,
  levels,
  type LogRecord,
} from './otlp.ts'
import {
  nothing,
  originOf,
  originOfResource,
  orRejected,
  type OtlpOutcome,
  Rejected,
  rowOf,
  setMember,
  stringOf,
} from './otlp.ts'

const GROUPS_MAX = 100

/** A field: its number, the type of its value, and the value. */
interface Field {
  readonly number: number
  readonly type: number
  readonly value: bigint
  readonly bytes: Buffer
}

/** The fields of a message, in order. @throws Fault */
function* fieldsOf(message: Buffer): Generator<Field> {
  const reader = new Reader(message)
  while (reader.at < message.length) {
    const [number, type] = reader.tag()
    if (type === START_GROUP) reader.skipGroup(number)
    else yield { number, type, ...reader.value(type) }
  }
}

const START_GROUP = 3
const END_GROUP = 4

class Reader {
  readonly #bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  tag(): [number: number, type: number] {
    const tag = this.varint()
    if (tag >= 2n ** 32n || tag < 8n) throw new Fault('a field has an invalid number')
    return [Number(tag >> 3n), Number(tag & 7n)]
  }

  varint(): bigint {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#bytes[this.at]
      if (byte === undefined) throw new Fault('a value is longer than the message')
      if (shift === 70n) throw new Fault('a number has more than ten bytes')
      this.at += 1
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
  }

  value(type: number): { value: bigint; bytes: Buffer } {
    const none = Buffer.alloc(0)
    if (type === 0) return { value: this.varint(), bytes: none }
    if (type === 1) return { value: 0n, bytes: this.#pass(8n) }
    if (type === 5) return { value: 0n, bytes: this.#pass(4n) }
    if (type === 2) return { value: 0n, bytes: this.#pass(this.varint()) }
    throw new Fault('a field has an invalid type')
  }

  #pass(bytes: bigint): Buffer {
    const start = this.at
    if (bytes > BigInt(this.#bytes.length - start)) throw new Fault('a value is longer than the message')
    this.at += Number(bytes)
    return this.#bytes.subarray(start, this.at)
  }

  skipGroup(number: number): void {
    const open = [number]
    while (open.length > 0) {
      if (this.at === this.#bytes.length) throw new Fault('a group has no end')
      const [inner, type] = this.tag()
      if (type === START_GROUP && open.length === GROUPS_MAX) throw new Fault('groups are nested too deeply')
      if (type === START_GROUP) open.push(inner)
      else if (type !== END_GROUP) this.value(type)
      else if (open.pop() !== inner) throw new Fault('a field has an invalid type')
    }
  }
}

/** A known field with a value of another type is an unknown field. */
const is = (field: Field, number: number, type: number): boolean =>
  field.number === number && field.type === type
const isBytes = (field: Field, number: number): boolean => is(field, number, 2)

function textOfBytes(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new Fault('a text is not UTF-8')
  return bytes.toString()
}
const stringIn = ({ bytes }: Field): Value => stringOf(textOfBytes(bytes))

function readKeyValue(message: Buffer, members: Members, level: number, budget: Budget): void {
  let name = ''
  let value = nothing
  for (const field of fieldsOf(message)) {
    if (isBytes(field, 1)) name = textOfBytes(field.bytes)
    else if (isBytes(field, 2)) value = readAnyValue(field.bytes, value, level, budget)
  }
  // Written with escapes.
  if (budget.takeMember(name)) setMember(members, JSON.stringify(name), name, value)
}

/** @param previous what a repeated message had before: lists get longer, other values are replaced */
function readAnyValue(message: Buffer, previous: Value, level: number, budget: Budget): Value {
  let result = previous
  for (const field of fieldsOf(message)) {
    if (isBytes(field, 1)) result = stringIn(field)
    else if (is(field, 2, 0)) result = { kind: 'word', raw: String(field.value !== 0n) }
    else if (is(field, 3, 0)) result = { kind: 'number', raw: String(BigInt.asIntN(64, field.value)) }
    else if (is(field, 4, 1)) result = doubleOf(field.bytes.readDoubleLE())
    else if (isBytes(field, 7)) result = { kind: 'word', raw: `"${field.bytes.toString('base64')}"` }
    else if (isBytes(field, 5) || isBytes(field, 6)) {
      const isRead = level + 1 <= limits.metadataDepthMax
      const bytes = isRead ? field.bytes : Buffer.alloc(0)
      result =
        field.number === 5
          ? readList(bytes, result, level + 1, budget)
          : readMembers(bytes, result, level + 1, budget)
    }
  }
  return result
}

const doubleOf = (double: number): Value =>
  Number.isFinite(double)
    ? { kind: 'number', raw: JSON.stringify(double) }
    : { kind: 'word', raw: `"${double}"` }

function readList(message: Buffer, previous: Value, level: number, budget: Budget): Value {
  const elements = previous.kind === 'array' ? [...previous.elements] : []
  for (const field of fieldsOf(message)) {
    if (!isBytes(field, 1)) continue
    if (budget.takeElement()) elements.push(readAnyValue(field.bytes, nothing, level, budget))
  }
  return { kind: 'array', elements }
}

function readMembers(message: Buffer, previous: Value, level: number, budget: Budget): Value {
  const members: Members = previous.kind === 'object' ? previous.members : new Map()
  for (const field of fieldsOf(message))
    if (isBytes(field, 1)) readKeyValue(field.bytes, members, level, budget)
  return { kind: 'object', members }
}

const hex = ({ bytes }: Field): Value => stringOf(bytes.toString('hex'))

function readRecord(message: Buffer): LogRecord {
  const record = emptyRecord()
  const { budget } = record
  for (const field of fieldsOf(message)) {
    if (is(field, 1, 1)) record.time = field.bytes.readBigUInt64LE()
    else if (is(field, 2, 0)) record.severity = Number(BigInt.asIntN(32, field.value))
    else if (isBytes(field, 3)) record.severityText = stringIn(field)
    else if (isBytes(field, 5)) record.body = readAnyValue(field.bytes, record.body, levels.body, budget)
    else if (isBytes(field, 6)) readKeyValue(field.bytes, record.attributes, levels.attributes, budget)
    else if (is(field, 7, 0)) record.dropped = Number(BigInt.asUintN(32, field.value))
    else if (is(field, 8, 5)) record.flags = field.bytes.readUInt32LE()
    else if (isBytes(field, 9)) record.traceId = hex(field)
    else if (isBytes(field, 10)) record.spanId = hex(field)
    else if (is(field, 11, 1)) record.observed = field.bytes.readBigUInt64LE()
    else if (isBytes(field, 12)) record.eventName = stringIn(field)
  }
  return record
}

/** @throws Fault */
export function referenceOfProtobuf(body: Buffer): OtlpOutcome {
  const collector = new Collector()
  for (const resourceLogs of fieldsOf(body))
    if (isBytes(resourceLogs, 1)) readResourceLogs(resourceLogs.bytes, collector)
  return collector.outcome
}

function readResourceLogs(message: Buffer, collector: Collector): void {
  const resource = emptyResource()
  const { budget } = resource
  const rejected = readHead(message, (field) => {
    if (isBytes(field, 3)) resource.schemaUrl = stringIn(field)
    if (!isBytes(field, 1)) return
    for (const part of fieldsOf(field.bytes)) {
      if (isBytes(part, 1)) readKeyValue(part.bytes, resource.attributes, levels.attributes, budget)
      else if (is(part, 2, 0)) resource.dropped = Number(BigInt.asUintN(32, part.value))
    }
  })
  const origin = rejected ?? orRejected(() => originOfResource(resource))
  for (const scopeLogs of fieldsOf(message)) {
    if (!isBytes(scopeLogs, 2)) continue
    const scope = emptyScope()
    const rejectedScope = readHead(scopeLogs.bytes, (field) => {
      if (isBytes(field, 3)) scope.schemaUrl = stringIn(field)
      if (!isBytes(field, 1)) return
      for (const part of fieldsOf(field.bytes)) {
        if (isBytes(part, 1)) scope.name = stringIn(part)
        else if (isBytes(part, 2)) scope.version = stringIn(part)
        else if (isBytes(part, 3))
          readKeyValue(part.bytes, scope.attributes, levels.scopeAttributes, scope.budget)
        else if (is(part, 4, 0)) scope.dropped = Number(BigInt.asUintN(32, part.value))
      }
    })
    const own =
      origin instanceof Rejected ? origin : (rejectedScope ?? orRejected(() => originOf(origin, scope)))
    for (const field of fieldsOf(scopeLogs.bytes)) {
      if (!isBytes(field, 2)) continue
      collector.add(() => {
        const common = checked(own)
        return rowOf(readRecord(field.bytes), common)
      })
    }
  }
}

/** Reads what records have in common. After an error, no further field is read. */
function readHead(message: Buffer, read: (field: Field) => void): Rejected | undefined {
  let rejected: Rejected | undefined
  for (const field of fieldsOf(message)) {
    if (rejected !== undefined) continue
    const result = orRejected(() => read(field))
    if (result instanceof Rejected) rejected = result
  }
  return rejected
}
