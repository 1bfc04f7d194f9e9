// Requests of OTLP, in JSON and in Protocol Buffers. The mapping is documented in docs/sources/opentelemetry.md.
import * as codes from '../codes'
import { Literal, literals, literalsEnd } from '../literals'
import { BODY as AT_BODY, COMMON, LITERAL_BYTES, RECORD as NODES_OF_BODY, TAPE } from '../memory'
import {
  CHARACTERS,
  FIXED_UINT32,
  ID,
  MESSAGE,
  NANOS,
  READ,
  READ_ANY,
  READ_EACH,
  SEVERITY,
} from '../messages'
import { elementOf, field, message, readAlone, readFields, readMessage, UINT32 } from '../messages'
import { MARK_BYTES, Metadata } from '../metadata'
import { countNames, Names } from '../names'
import { Records } from '../records'
import { integerOf, keepNumber, setInteger, setRange } from '../scalars'
import { CLEAN, INTEGER, NAME, Node, NODE_BYTES, NULL, OBJECT, REPEATED, Tape } from '../tape'
import { Wire } from '../wire'
import { takeRecord, takeResource } from './entry'
import { ATTRIBUTES_LEVEL, BODY_LEVEL, Budget, close, readAnyValue, readAttribute } from './values'
import { SCOPE_ATTRIBUTES_LEVEL } from './values'

/**
 * Scans the body at `BODY`: OTLP logs in Protocol Buffers.
 *
 * @returns 0, or why the request is rejected
 */
export function scanOtlp(bytes: i32): i32 {
  Names.clear()
  Tape.end = TAPE
  return scan(0, AT_BODY, AT_BODY + bytes)
}

/** Makes records of the body that `scan` has found to be OTLP. @returns 0, or why the request is rejected */
export function scanOtlpJson(): i32 {
  return scan(TAPE, 0, 0)
}

function scan(source: i32, from: i32, end: i32): i32 {
  Records.clear()
  Wire.begin(from, end)
  if (source === 0) readFields(REQUEST, 0)
  else readMessage(REQUEST, 0, source)
  return Records.close()
}

// Records, resources and scopes are objects whose members are those of the metadata, in their order. Their nodes are at fixed addresses.
const MEMBER_BYTES: i32 = 2 * NODE_BYTES
let next: i32 = <i32>memory.data(4 * NODE_BYTES + 20 * MEMBER_BYTES, 16)

const RESOURCE: i32 = part('resource resource_schema_url resource_dropped_attributes_count')
const SCOPE: i32 = part('name version attributes schema_url dropped_attributes_count')
export const RECORD: i32 = part(
  'attributes dropped_attributes_count trace_id span_id flags event_name severity_number severity_text time_unix_nano observed_time_unix_nano body',
)
/** The scope as a member. */
const SCOPE_OF_METADATA: i32 = part('scope') + NODE_BYTES
Node.of(SCOPE_OF_METADATA).next = SCOPE

// The messages around resources and scopes are read twice, since these may follow their records.
const REQUEST: i32 = message()
const RESOURCE_LOGS: i32 = message()
const SCOPES: i32 = message()
const SCOPE_LOGS: i32 = message()
const RECORDS: i32 = message()
const FIELDS: i32 = message()
const RESOURCE_FIELDS: i32 = message()
const SCOPE_FIELDS: i32 = message()
const LOG_RECORDS: i32 = 2

field(RESOURCE_LOGS, 1, 'resource', MESSAGE, 0, RESOURCE_FIELDS)
field(SCOPE_LOGS, 1, 'scope', MESSAGE, 0, SCOPE_FIELDS)

const EACH: i32 = changetype<i32>(readAttribute)
export const RESOURCE_ATTRIBUTES = member(RESOURCE, RESOURCE_FIELDS, 1, 'attributes', READ_EACH, 0, EACH)
member(RESOURCE, RESOURCE_LOGS, 3, 'schemaUrl', CHARACTERS, 1)
member(RESOURCE, RESOURCE_FIELDS, 2, 'droppedAttributesCount', UINT32, 2)

member(SCOPE, SCOPE_FIELDS, 1, 'name', CHARACTERS, 0)
member(SCOPE, SCOPE_FIELDS, 2, 'version', CHARACTERS, 1)
const SCOPE_ATTRIBUTES = member(SCOPE, SCOPE_FIELDS, 3, 'attributes', READ_EACH, 2, EACH)
member(SCOPE, SCOPE_LOGS, 3, 'schemaUrl', CHARACTERS, 3)
member(SCOPE, SCOPE_FIELDS, 4, 'droppedAttributesCount', UINT32, 4)

export const TIME = member(RECORD, FIELDS, 1, 'timeUnixNano', NANOS, 8)
export const OBSERVED_TIME = member(RECORD, FIELDS, 11, 'observedTimeUnixNano', NANOS, 9)
export const SEVERITY_NUMBER = member(RECORD, FIELDS, 2, 'severityNumber', SEVERITY, 6)
export const SEVERITY_TEXT = member(RECORD, FIELDS, 3, 'severityText', CHARACTERS, 7)
/** What is in the body is not on the tape: it may alternate with attributes. */
let bodyEnd: i32 = NODES_OF_BODY
export const BODY = member(RECORD, FIELDS, 5, 'body', READ, 10, changetype<i32>(readBody))
Node.of(BODY).next = NODES_OF_BODY
export const ATTRIBUTES = member(RECORD, FIELDS, 6, 'attributes', READ_EACH, 0, EACH)
member(RECORD, FIELDS, 7, 'droppedAttributesCount', UINT32, 1)
member(RECORD, FIELDS, 8, 'flags', FIXED_UINT32, 4)
export const TRACE_ID = member(RECORD, FIELDS, 9, 'traceId', ID, 2)
export const SPAN_ID = member(RECORD, FIELDS, 10, 'spanId', ID, 3)
export const EVENT_NAME = member(RECORD, FIELDS, 12, 'eventName', CHARACTERS, 5)

/** Makes an object with members. @param names of them in the metadata */
function part(names: string): i32 {
  const object = next
  let name = literals(names)
  for (next += NODE_BYTES; name < literalsEnd; next += MEMBER_BYTES, name += LITERAL_BYTES) {
    setRange(next, NAME, Literal.of(name).start, Literal.of(name).end)
    Node.of(next).next = next + NODE_BYTES
    Node.of(next + NODE_BYTES).next = next + MEMBER_BYTES
  }
  Node.of(object).head = OBJECT
  Node.of(object).next = next
  return object
}

/** Adds a field that is a member of a part. @param place of the member @returns the node of its name */
function member(part: i32, table: i32, number: i32, name: string, type: u8, place: i32, read: i32 = 0): i32 {
  field(table, number, name, type, 2 + 2 * place, read)
  return part + NODE_BYTES + place * MEMBER_BYTES
}

/** The address of a value. It is null if there is none. */
export function valueOf(name: i32): i32 {
  return Node.of(name).next
}

export function leaveOut(name: i32): void {
  Node.of(name).head |= REPEATED
}

/** Begins to read a part: all of its values are null. Its attributes are the last object of the tape. */
function begin(part: i32, attributes: i32): void {
  const end = Node.of(part).next
  for (let name = part + NODE_BYTES; name < end; name += MEMBER_BYTES) {
    Node.of(name).head = NAME
    setInteger(name + NODE_BYTES, NULL, 0)
  }
  Node.of(attributes).next = Tape.end
  Tape.add(OBJECT, 0, 0)
}

/**
 * Leaves out the members with the default values of Protocol Buffers.
 *
 * @param isWritten whether the others are added to the metadata
 * @returns whether there are others
 */
export function prune(part: i32, isWritten: bool): bool {
  let hasMembers = false
  const end = Node.of(part).next
  for (let name = part + NODE_BYTES; name < end; name += MEMBER_BYTES) {
    const address = valueOf(name)
    const value = Node.of(address)
    if (Node.of(name).has(REPEATED)) continue
    if (value.kind >= INTEGER && integerOf(address) !== 0) keepNumber(address)
    // A body that is an object without names is kept.
    const isObject = value.kind === OBJECT && !value.has(CLEAN)
    if (isObject ? countNames(address) === 0 : value.kind >= INTEGER || value.bytes === 0) leaveOut(name)
    else {
      hasMembers = true
      if (isWritten) Metadata.addMember(name)
    }
  }
  return hasMembers
}

/**
 * What the records of a resource and a scope have in common. It is written once: the last members of their metadata, each with a comma after
 * it, are at `COMMON`, those of the resource first.
 */
export class Origin {
  /** Where all records have a wrong type; 0 if they do not. */
  static where: i32 = 0
  static service: i32 = 0
  static environment: i32 = 0
  static end: i32 = COMMON
  /** How they were repaired. */
  static faults: i32 = 0

  static get bytes(): i32 {
    return Origin.end - COMMON
  }
}

function readResourceLogs(_target: i32, source: i32): void {
  readShared(RESOURCE, RESOURCE_ATTRIBUTES, ATTRIBUTES_LEVEL, RESOURCE_LOGS, SCOPES, source)
}

function readScopeLogs(_target: i32, source: i32): void {
  readShared(SCOPE, SCOPE_ATTRIBUTES, SCOPE_ATTRIBUTES_LEVEL, SCOPE_LOGS, RECORDS, source)
}

/**
 * Reads what records have in common, and then what has the records.
 *
 * @param level of the attributes
 * @param fields the message, with the fields of the part alone
 * @param others the same message, with the other fields
 */
function readShared(part: i32, attributes: i32, level: i32, fields: i32, others: i32, source: i32): void {
  const tapeEnd = Tape.end
  const start = Wire.at
  const where = Origin.where
  const end = Origin.end
  const faults = Origin.faults
  if (where === 0) {
    Metadata.faults = faults
    begin(part, attributes)
    Budget.begin(level)
    Origin.where = readAlone(fields, part, source)
    close(valueOf(attributes))
    writeShared(part)
    Wire.at = start
  }
  readMessage(others, 0, source)
  Origin.where = where
  Origin.end = end
  Origin.faults = faults
  Tape.end = tapeEnd
}

/** Adds the members of a part to those of the records. There is room for the mark of a record after them. */
function writeShared(part: i32): void {
  const isResource = part === RESOURCE
  if (isResource) takeResource()
  Metadata.begin()
  Metadata.reserve(Origin.bytes + MARK_BYTES)
  if (prune(part, isResource) && !isResource) Metadata.addMember(SCOPE_OF_METADATA)
  const from = Metadata.start + 1
  memory.copy(Origin.end, from, Metadata.end - from)
  Origin.end += Metadata.end - from
  Origin.faults = Metadata.faults
}

function readRecord(_target: i32, source: i32): void {
  const tapeEnd = Tape.end
  const names = Names.mark
  Metadata.faults = Origin.faults
  begin(RECORD, ATTRIBUTES)
  setInteger(NODES_OF_BODY, NULL, 0)
  bodyEnd = NODES_OF_BODY + NODE_BYTES
  Budget.begin(ATTRIBUTES_LEVEL)
  let where = Origin.where
  if (where === 0) {
    const isMessage = source === 0 || Node.of(source).kind === OBJECT
    where = isMessage ? readAlone(FIELDS, RECORD, source) : elementOf(RECORDS, LOG_RECORDS)
  }
  if (where !== 0) Wire.check(Records.reject(codes.WRONG_TYPE, where))
  else if (Wire.fault === 0) Wire.check(takeRecord())
  Tape.end = tapeEnd
  Names.rewind(names)
}

function readBody(_target: i32, source: i32): void {
  const tapeEnd = Tape.end
  Tape.end = bodyEnd
  Budget.level = BODY_LEVEL
  readAnyValue(NODES_OF_BODY, source)
  Budget.level = ATTRIBUTES_LEVEL
  bodyEnd = Tape.end
  Tape.end = tapeEnd
}

field(RECORDS, LOG_RECORDS, 'logRecords', READ_ANY, 0, changetype<i32>(readRecord))
field(SCOPES, 2, 'scopeLogs', READ_EACH, 0, changetype<i32>(readScopeLogs))
field(REQUEST, 1, 'resourceLogs', READ_EACH, 0, changetype<i32>(readResourceLogs))
