import { isRawJson } from '@sluice/rows'
import { type Members, setMember } from '@sluice/records'
import { MalformedProtobuf, type ProtobufReader, tagOf } from './protobuf-reader.ts'
import type { ValueBudget } from './value-budget.ts'

const key = tagOf(1, 'bytes')
const value = tagOf(2, 'bytes')
const stringValue = tagOf(1, 'bytes')
const boolValue = tagOf(2, 'varint')
const intValue = tagOf(3, 'varint')
const doubleValue = tagOf(4, 'fixed64')
const arrayValue = tagOf(5, 'bytes')
const kvlistValue = tagOf(6, 'bytes')
const bytesValue = tagOf(7, 'bytes')
/** In ArrayValue and KeyValueList. */
const values = tagOf(1, 'bytes')

/**
 * Arrays and key-value lists in one another. Official decoders stop at half of it: they count messages, and each level has two. What is above
 * the limit of metadata is rejected later, with its record alone.
 */
const NESTING_MAX = 100

/** @throws MalformedProtobuf */
function checkNesting(level: number): void {
  if (level > NESTING_MAX) throw new MalformedProtobuf('values are nested too deeply')
}

/**
 * Reads a KeyValue into an object.
 *
 * @param level the level of the object in metadata
 * @throws RecordError
 */
export function readKeyValue(
  reader: ProtobufReader,
  members: Members,
  level: number,
  budget: ValueBudget,
): void {
  let name = ''
  let member: unknown = null
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    budget.takeField()
    if (tag === key) name = reader.string()
    else if (tag === value) member = readAnyValue(reader.message(), member, level, budget)
    else reader.skip()
  }
  budget.takeMember(name)
  setMember(members, name, member)
}

/**
 * Reads an AnyValue as a value of JSON: null if it has no value.
 *
 * @param previous what the field had before. Official decoders merge a repeated message: lists get longer, other values are replaced
 * @param level the level of the object or array that has the value
 * @throws RecordError
 */
export function readAnyValue(
  reader: ProtobufReader,
  previous: unknown,
  level: number,
  budget: ValueBudget,
): unknown {
  let result = previous
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    budget.takeField()
    switch (tag) {
      case stringValue:
        result = reader.string()
        break
      case boolValue:
        result = reader.bool()
        break
      case intValue:
        result = reader.int64()
        if (isRawJson(result)) budget.takeLongInteger()
        break
      case doubleValue:
        result = jsonNumber(reader.double())
        break
      case arrayValue:
        result = readArray(reader.message(), Array.isArray(result) ? result : [], level + 1, budget)
        break
      case kvlistValue:
        result = readKeyValues(reader.message(), isMembers(result) ? result : {}, level + 1, budget)
        break
      case bytesValue:
        result = reader.bytes().toString('base64')
        break
      default:
        reader.skip()
    }
  }
  return result
}

function readArray(
  reader: ProtobufReader,
  elements: unknown[],
  level: number,
  budget: ValueBudget,
): unknown[] {
  checkNesting(level)
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    budget.takeField()
    if (tag !== values) reader.skip()
    else {
      budget.takeElement()
      elements.push(readAnyValue(reader.message(), null, level, budget))
    }
  }
  return elements
}

function readKeyValues(
  reader: ProtobufReader,
  members: Members,
  level: number,
  budget: ValueBudget,
): Members {
  checkNesting(level)
  for (let tag = reader.next(); tag !== -1; tag = reader.next()) {
    budget.takeField()
    if (tag === values) readKeyValue(reader.message(), members, level, budget)
    else reader.skip()
  }
  return members
}

/** JSON has no form for the doubles that are not finite: they become strings. */
function jsonNumber(double: number): number | string {
  return Number.isFinite(double) ? double : String(double)
}

function isMembers(result: unknown): result is Members {
  return typeof result === 'object' && result !== null && !Array.isArray(result) && !isRawJson(result)
}
