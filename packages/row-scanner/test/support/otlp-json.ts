// The slow definition of how OTLP logs in JSON are read.
import { limits } from '@sluice/schema'
import { type Members, parseText, type Value } from './json.ts'
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
  nameOf,
  nothing,
  originOf,
  originOfResource,
  orRejected,
  type OtlpOutcome,
  Rejected,
  type Resource,
} from './otlp.ts'
import { rowOf, type Scope, setMember, stringOf } from './otlp.ts'

const wrongType = (what: string, type: string): Rejected =>
  new Rejected('wrong_type', `${what} must be ${type}`)

/** The members of a message without those that are null, which stand for the default value. @throws Rejected */
function membersOf(value: Value, what: string): [name: string, value: Value][] {
  if (value.kind !== 'object') throw wrongType(what, 'an object')
  return [...value.members]
    .map(([name, member]): [string, Value] => [name, member.value])
    .filter(([, member]) => !isNull(member))
}

const isNull = (value: Value): boolean => value.kind === 'word' && value.raw === 'null'

function elementsOf(value: Value, what: string): readonly Value[] {
  if (value.kind !== 'array') throw wrongType(what, 'an array')
  return value.elements
}

function readText(value: Value, what: string): Extract<Value, { kind: 'string' }> {
  if (value.kind !== 'string') throw wrongType(what, 'a string')
  return value
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** An integer in any form, as a number or as a string. */
function integerOf(value: Value): bigint | undefined {
  const text = value.kind === 'string' ? value.string : value.kind === 'number' ? value.raw : ''
  const [all, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  if (all === undefined) return undefined
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  const zeros = Number(exponent) - fraction.length + (digits.length - significant.length)
  if (significant === '') return 0n
  return zeros < 0 || zeros > 30 ? undefined : BigInt(`${sign}${significant}${'0'.repeat(zeros)}`)
}

function readInteger(value: Value, what: string, type: string, least: bigint, largest: bigint): bigint {
  const integer = integerOf(value)
  if (integer === undefined || integer < least || integer > largest) throw wrongType(what, type)
  return integer
}

const readUint64 = (value: Value, what: string): bigint =>
  readInteger(value, what, 'an unsigned 64-bit integer', 0n, 2n ** 64n - 1n)
const readUint32 = (value: Value, what: string): number =>
  Number(readInteger(value, what, 'an unsigned 32-bit integer', 0n, 2n ** 32n - 1n))

const SEVERITY_NAME = /^SEVERITY_NUMBER_(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)([234]?)$/

function readSeverity(value: Value): number {
  const text = value.kind === 'string' ? value.string : ''
  const [, name, step] = SEVERITY_NAME.exec(text) ?? []
  if (name !== undefined)
    return ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'].indexOf(name) * 4 + Number(step || 1)
  if (text === 'SEVERITY_NUMBER_UNSPECIFIED') return 0
  return Number(readInteger(value, 'severityNumber', 'a 32-bit integer', -(2n ** 31n), 2n ** 31n - 1n))
}

/** Ids in hexadecimal become lower-case, unless they have escapes. */
function readId(value: Value, what: string): Value {
  const text = readText(value, what)
  return /^"[0-9a-fA-F]+"$/.test(text.raw) ? stringOf(text.string.toLowerCase()) : text
}

function readDouble(value: Value, what: string, type: string): Value {
  const text = value.kind === 'string' ? value.string : value.kind === 'number' ? value.raw : ''
  const isWord = value.kind === 'string' && ['NaN', 'Infinity', '-Infinity'].includes(text)
  if (!isWord && !(DECIMAL.test(text) && Number.isFinite(Number(text)))) throw wrongType(what, type)
  return value
}

function readKeyValues(value: Value, what: string, members: Members, level: number, budget: Budget): Members {
  for (const element of elementsOf(value, what)) {
    let key = { raw: '""', string: '' }
    let member = nothing
    for (const [name, part] of membersOf(element, `an element of ${what}`)) {
      if (name === 'key') key = readText(part, name)
      else if (name === 'value') member = readAnyValue(part, name, level, budget)
    }
    if (budget.takeMember(key.string)) setMember(members, nameOf(key.string, key.raw), key.string, member)
  }
  return members
}

/** The last of several values counts. */
function readAnyValue(value: Value, what: string, level: number, budget: Budget): Value {
  let result = nothing
  for (const [name, part] of membersOf(value, what)) {
    if (name === 'stringValue') result = readText(part, name)
    else if (name === 'boolValue') {
      if (part.kind !== 'word') throw wrongType(name, 'true or false')
      result = part
    } else if (name === 'intValue') {
      const integer = integerOf(part)
      const isInt64 = integer !== undefined && BigInt.asIntN(64, integer) === integer
      result = isInt64 ? { kind: 'number', raw: String(integer) } : readDouble(part, name, 'a 64-bit integer')
    } else if (name === 'doubleValue') result = readDouble(part, name, 'a double')
    else if (name === 'bytesValue') result = readText(part, name)
    else if (name === 'arrayValue' || name === 'kvlistValue') result = readList(part, name, level + 1, budget)
  }
  return result
}

function readList(value: Value, what: 'arrayValue' | 'kvlistValue', level: number, budget: Budget): Value {
  const [, values] = membersOf(value, what).find(([name]) => name === 'values') ?? []
  const isRead = level <= limits.metadataDepthMax && values !== undefined
  const elements: Value[] = []
  const members: Members = new Map()
  if (isRead && what === 'kvlistValue') readKeyValues(values, 'values', members, level, budget)
  else if (isRead) {
    for (const element of elementsOf(values, 'values')) {
      if (budget.takeElement()) elements.push(readAnyValue(element, 'an element of values', level, budget))
    }
  }
  return what === 'arrayValue' ? { kind: 'array', elements } : { kind: 'object', members }
}

function readRecord(value: Value): LogRecord {
  const record = emptyRecord()
  const { budget } = record
  for (const [name, part] of membersOf(value, 'an element of logRecords')) {
    if (name === 'timeUnixNano') record.time = readUint64(part, name)
    else if (name === 'observedTimeUnixNano') record.observed = readUint64(part, name)
    else if (name === 'severityNumber') record.severity = readSeverity(part)
    else if (name === 'severityText') record.severityText = readText(part, name)
    else if (name === 'body') record.body = readAnyValue(part, name, levels.body, budget)
    else if (name === 'attributes') readKeyValues(part, name, record.attributes, levels.attributes, budget)
    else if (name === 'droppedAttributesCount') record.dropped = readUint32(part, name)
    else if (name === 'flags') record.flags = readUint32(part, name)
    else if (name === 'traceId') record.traceId = readId(part, name)
    else if (name === 'spanId') record.spanId = readId(part, name)
    else if (name === 'eventName') record.eventName = readText(part, name)
  }
  return record
}

function readResource(value: Value | undefined, schemaUrl: Value | undefined): Resource {
  const resource = emptyResource()
  for (const [name, part] of value === undefined ? [] : membersOf(value, 'resource')) {
    if (name === 'attributes')
      readKeyValues(part, name, resource.attributes, levels.attributes, resource.budget)
    else if (name === 'droppedAttributesCount') resource.dropped = readUint32(part, name)
  }
  if (schemaUrl !== undefined) resource.schemaUrl = readText(schemaUrl, 'schemaUrl')
  return resource
}

function readScope(value: Value | undefined, schemaUrl: Value | undefined): Scope {
  const scope = emptyScope()
  for (const [name, part] of value === undefined ? [] : membersOf(value, 'scope')) {
    if (name === 'name') scope.name = readText(part, name)
    else if (name === 'version') scope.version = readText(part, name)
    else if (name === 'attributes')
      readKeyValues(part, name, scope.attributes, levels.scopeAttributes, scope.budget)
    else if (name === 'droppedAttributesCount') scope.dropped = readUint32(part, name)
  }
  if (schemaUrl !== undefined) scope.schemaUrl = readText(schemaUrl, 'schemaUrl')
  return scope
}

/** The elements of an array in a message. @throws Fault */
function partsOf(message: Value, name: string): readonly Value[] {
  const value = memberOf(message, name)
  if (value === undefined) return []
  if (value.kind !== 'array') throw new Fault(`${name} must be an array`)
  if (name !== 'logRecords' && value.elements.some((element) => element.kind !== 'object'))
    throw new Fault(`an element of ${name} must be an object`)
  return value.elements
}

function memberOf(message: Value, name: string): Value | undefined {
  const value = message.kind === 'object' ? message.members.get(name)?.value : undefined
  return value === undefined || isNull(value) ? undefined : value
}

/** @param body must be JSON @throws Fault */
export function referenceOfJson(body: Buffer): OtlpOutcome {
  const root = parseText(body.toString())
  if (typeof root === 'string') throw new Error(root)
  const collector = new Collector()
  for (const group of partsOf(root, 'resourceLogs')) {
    const scopeLogs = partsOf(group, 'scopeLogs')
    const origin = orRejected(() =>
      originOfResource(readResource(memberOf(group, 'resource'), memberOf(group, 'schemaUrl'))),
    )
    for (const one of scopeLogs) {
      const read = (): Scope => readScope(memberOf(one, 'scope'), memberOf(one, 'schemaUrl'))
      const own = origin instanceof Rejected ? origin : orRejected(() => originOf(origin, read()))
      for (const record of partsOf(one, 'logRecords')) {
        collector.add(() => {
          const common = checked(own)
          return rowOf(readRecord(record), common)
        })
      }
    }
  }
  return collector.outcome
}
