import { isRawJson, keepInexact } from '@sluice/rows'
import { type Members, setMember } from '@sluice/records'
import { RecordError } from './log-record.ts'
import type { ValueBudget } from './value-budget.ts'

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n
const UINT64_MAX = 2n ** 64n - 1n
const UINT32_MAX = 2 ** 32 - 1
const INT32_MIN = -(2 ** 31)
const INT32_MAX = 2 ** 31 - 1

/** An integer as a text: the JSON form of 64-bit numbers. Longer texts are not numbers of 64 bits. */
const INTEGER = /^-?\d{1,20}$/
/** A number of JSON that may be an integer of 64 bits: digits, a fraction and an exponent. */
const DECIMAL = /^(-?\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,2}))?$/
/** More zeros make a number of more than 64 bits. */
const ZEROS_MAX = 20
const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/
/** Both alphabets. */
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/
const NOT_FINITE: ReadonlySet<string> = new Set(['NaN', 'Infinity', '-Infinity'])

/** The members of a message, without those that are null: they stand for the default value. @throws RecordError */
export function membersOf(value: unknown, what: string): [name: string, value: unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawJson(value))
    throw wrongType(what, 'an object')
  return Object.entries(value).filter(([, member]) => member !== null)
}

/** @throws RecordError */
export function readText(value: unknown, what: string): string {
  if (typeof value === 'string') return value
  throw wrongType(what, 'a string')
}

/** An integer of at most 64 bits, as a number or a text. Undefined for anything else. */
function toInteger(value: unknown): bigint | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : undefined
  if (isRawJson(value)) return integerOf(value.rawJSON)
  return typeof value === 'string' && INTEGER.test(value) ? BigInt(value) : undefined
}

/** The exact value of a number beyond 2^53. It has at least 16 digits before its point. */
function integerOf(number: string): bigint | undefined {
  const [, whole, fraction = '', exponent = '0'] = DECIMAL.exec(number) ?? []
  if (whole === undefined) return undefined
  const digits = whole + fraction
  const zeros = Number(exponent) - fraction.length
  if (zeros >= 0) return zeros > ZEROS_MAX ? undefined : BigInt(digits + '0'.repeat(zeros))
  return /^0+$/.test(digits.slice(zeros)) ? BigInt(digits.slice(0, zeros)) : undefined
}

/** @throws RecordError */
export function readUint64(value: unknown, what: string): bigint {
  const integer = toInteger(value)
  if (integer !== undefined && integer >= 0n && integer <= UINT64_MAX) return integer
  throw wrongType(what, 'an unsigned 64-bit integer')
}

/** @throws RecordError */
export function readUint32(value: unknown, what: string): number {
  const integer = toInteger(value)
  if (integer !== undefined && integer >= 0n && integer <= UINT32_MAX) return Number(integer)
  throw wrongType(what, 'an unsigned 32-bit integer')
}

/** @throws RecordError */
export function readInt32(value: unknown, what: string): number {
  const integer = toInteger(value)
  if (integer !== undefined && integer >= INT32_MIN && integer <= INT32_MAX) return Number(integer)
  throw wrongType(what, 'a 32-bit integer')
}

function readInt64(value: unknown): unknown {
  const integer = toInteger(value)
  if (integer === undefined || integer < INT64_MIN || integer > INT64_MAX)
    throw wrongType('intValue', 'a 64-bit integer')
  return keepInexact(String(integer))
}

function readDouble(value: unknown): number | string {
  if (typeof value === 'number') return value
  const text = isRawJson(value) ? value.rawJSON : value
  if (typeof text === 'string' && NOT_FINITE.has(text)) return text
  const number = typeof text === 'string' && NUMBER.test(text) ? Number(text) : undefined
  // A number that is too large for a double is not infinite.
  if (number !== undefined && Number.isFinite(number)) return number
  throw wrongType('doubleValue', 'a double')
}

function readBytes(value: unknown): string {
  if (typeof value === 'string' && BASE64.test(value)) return Buffer.from(value, 'base64').toString('base64')
  throw wrongType('bytesValue', 'a base64 string')
}

/**
 * Reads an array of KeyValues into an object.
 *
 * @param level the level of the object in metadata
 * @throws RecordError
 */
export function readKeyValues(
  value: unknown,
  what: string,
  members: Members,
  level: number,
  budget: ValueBudget,
): Members {
  for (const element of elementsOf(value, what)) {
    let key = ''
    let member: unknown = null
    for (const [name, part] of membersOf(element, `an element of ${what}`)) {
      if (name === 'key') key = readText(part, 'key')
      else if (name === 'value') member = readAnyValue(part, level, budget)
    }
    budget.takeMember(key)
    setMember(members, key, member)
  }
  return members
}

/** Reads an AnyValue as a value of JSON: null if it has no value. The last of several values counts. @throws RecordError */
export function readAnyValue(value: unknown, level: number, budget: ValueBudget): unknown {
  let result: unknown = null
  for (const [name, part] of membersOf(value, 'a value')) {
    switch (name) {
      case 'stringValue':
        result = readText(part, name)
        break
      case 'boolValue':
        if (typeof part !== 'boolean') throw wrongType(name, 'true or false')
        result = part
        break
      case 'intValue':
        result = readInt64(part)
        if (isRawJson(result)) budget.takeLongInteger()
        break
      case 'doubleValue':
        result = readDouble(part)
        break
      case 'arrayValue':
        result = readList(part, level + 1, budget)
        break
      case 'kvlistValue':
        result = readObject(part, level + 1, budget)
        break
      case 'bytesValue':
        result = readBytes(part)
        break
      default:
    }
  }
  return result
}

function readList(value: unknown, level: number, budget: ValueBudget): unknown[] {
  budget.enter(level)
  const list: unknown[] = []
  for (const [name, part] of membersOf(value, 'arrayValue')) {
    if (name !== 'values') continue
    for (const element of elementsOf(part, name)) {
      budget.takeElement()
      list.push(readAnyValue(element, level, budget))
    }
  }
  return list
}

function readObject(value: unknown, level: number, budget: ValueBudget): Members {
  budget.enter(level)
  const members: Members = {}
  for (const [name, part] of membersOf(value, 'kvlistValue')) {
    if (name === 'values') readKeyValues(part, name, members, level, budget)
  }
  return members
}

function elementsOf(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value as readonly unknown[]
  throw wrongType(what, 'an array')
}

function wrongType(what: string, type: string): RecordError {
  return new RecordError('wrong_type', `${what} must be ${type}`)
}
