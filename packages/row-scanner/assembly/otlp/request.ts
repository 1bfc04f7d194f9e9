// The messages of OTLP logs. The mapping is documented in docs/sources/opentelemetry.md.
import * as codes from '../codes'
import * as columns from '../columns'
import { Decoded, Draft } from '../draft'
import { fieldOf } from '../fields'
import { Literal, literal } from '../literals'
import { findEnvironment } from '../loggers/words'
import { BODY, COMMON, RECORD as NODES_OF_BODY, TAPE } from '../memory'
import {
  CHARACTERS,
  elementOf,
  field,
  FIXED_UINT32,
  ID,
  message,
  MESSAGE,
  NANOS,
  READ,
  READ_ANY,
} from '../messages'
import { READ_EACH, readFields, readMessage, Rejection, SEVERITY, setRange, UINT32 } from '../messages'
import { MARK_BYTES, Metadata } from '../metadata'
import { Names } from '../names'
import { hasAtMostCharacters, Records } from '../records'
import { Node, NODE_BYTES, NULL, OBJECT, REPEATED, Tape } from '../tape'
import { Wire } from '../wire'
import { takeRecord } from './entry'
import * as parts from './parts'
import { ATTRIBUTES_LEVEL, BODY_LEVEL, Budget, close, readAnyValue, readKeyValue } from './values'
import { SCOPE_ATTRIBUTES_LEVEL } from './values'

const RECORD: i32 = message()
const RESOURCE: i32 = message()
const SCOPE: i32 = message()
// A resource and a scope may follow their records, so the messages around them are read twice.
const SCOPE_LOGS: i32 = message()
const LOG_RECORDS: i32 = 2
const RECORDS: i32 = message()
const RESOURCE_LOGS: i32 = message()
const SCOPES: i32 = message()
const REQUEST: i32 = message()

/**
 * What the records of a resource and a scope have in common. It is written once: the last members of their metadata, each with a comma after
 * it, are at `COMMON`, those of the resource first.
 */
export class Origin {
  /** Why all records are rejected; negative if they are not. */
  static code: i32 = -1
  static where: i32 = 0
  static service: i32 = 0
  static environment: i32 = 0
  static end: i32 = COMMON
  /** How they were repaired. */
  static faults: i32 = 0

  static get bytes(): i32 {
    return Origin.end - COMMON
  }

  static reject(code: i32, where: i32): void {
    Origin.code = code
    Origin.where = where
  }

  /** Begins to write members. There is room for the mark of a record after them. */
  static begin(): void {
    Metadata.begin()
    Metadata.reserve(Origin.bytes + MARK_BYTES)
  }

  /** Keeps the members that were written. */
  static keep(): void {
    const from = Metadata.start + 1
    memory.copy(Origin.end, from, Metadata.end - from)
    Origin.end += Metadata.end - from
    Origin.faults = Metadata.faults
  }
}

/**
 * Scans the body at `BODY`: OTLP logs in Protocol Buffers.
 *
 * @returns 0, or why the request is rejected
 */
export function scanOtlp(bytes: i32): i32 {
  Records.clear()
  Names.clear()
  Tape.end = TAPE
  Wire.begin(BODY, BODY + bytes)
  readFields(REQUEST, 0)
  return Records.close()
}

/** Makes records of the body that `scan` has found to be OTLP. @returns 0, or why the request is rejected */
export function scanOtlpJson(): i32 {
  Records.clear()
  Wire.begin(0, 0)
  readMessage(REQUEST, 0, TAPE)
  return Records.close()
}

function readResourceLogs(_target: i32, source: i32): void {
  const tapeEnd = Tape.end
  const start = Wire.at
  parts.begin(parts.RESOURCE, parts.RESOURCE_ATTRIBUTES)
  Budget.begin(ATTRIBUTES_LEVEL)
  Origin.code = -1
  Origin.end = COMMON
  Metadata.faults = 0
  if (Rejection.readAlone(RESOURCE_LOGS, parts.RESOURCE, source)) describeResource()
  else Origin.reject(Rejection.code, Rejection.where)
  Wire.at = start
  readMessage(SCOPES, 0, source)
  Tape.end = tapeEnd
}

function describeResource(): void {
  const attributes = parts.valueOf(parts.RESOURCE, parts.RESOURCE_ATTRIBUTES)
  close(attributes)
  takeResourceColumns(attributes)
  Origin.begin()
  parts.prune(parts.RESOURCE, true)
  Origin.keep()
}

function readScopeLogs(_target: i32, source: i32): void {
  const tapeEnd = Tape.end
  const start = Wire.at
  const code = Origin.code
  const end = Origin.end
  const faults = Origin.faults
  Metadata.faults = faults
  parts.begin(parts.SCOPE, parts.SCOPE_ATTRIBUTES)
  Budget.begin(SCOPE_ATTRIBUTES_LEVEL)
  if (code < 0) {
    if (Rejection.readAlone(SCOPE_LOGS, parts.SCOPE, source)) describeScope()
    else Origin.reject(Rejection.code, Rejection.where)
  }
  Wire.at = start
  readMessage(RECORDS, 0, source)
  Origin.code = code
  Origin.end = end
  Origin.faults = faults
  Tape.end = tapeEnd
}

function describeScope(): void {
  close(parts.valueOf(parts.SCOPE, parts.SCOPE_ATTRIBUTES))
  Origin.begin()
  if (parts.prune(parts.SCOPE, false)) Metadata.addMembers(parts.SCOPE_OF_METADATA)
  Origin.keep()
}

function readRecord(_target: i32, source: i32): void {
  const tapeEnd = Tape.end
  const names = Names.mark
  Metadata.faults = Origin.faults
  parts.begin(parts.RECORD, parts.ATTRIBUTES)
  setRange(NODES_OF_BODY, NULL, 0, 0)
  bodyEnd = NODES_OF_BODY + NODE_BYTES
  Budget.begin(ATTRIBUTES_LEVEL)
  if (Origin.code >= 0) {
    if (source === 0) Wire.bytes()
    Wire.check(Records.reject(Origin.code, Origin.where))
  } else if (source !== 0 && Node.of(source).kind !== OBJECT)
    Wire.check(Records.reject(codes.WRONG_TYPE, elementOf(RECORDS, LOG_RECORDS)))
  else if (!Rejection.readAlone(RECORD, parts.RECORD, source))
    Wire.check(Records.reject(Rejection.code, Rejection.where))
  else if (Wire.fault === 0) Wire.check(takeRecord())
  Tape.end = tapeEnd
  Names.rewind(names)
}

let bodyEnd: i32 = NODES_OF_BODY

function readBody(_target: i32, source: i32): void {
  const tapeEnd = Tape.end
  Tape.end = bodyEnd
  Budget.level = BODY_LEVEL
  readAnyValue(NODES_OF_BODY, source)
  Budget.level = ATTRIBUTES_LEVEL
  bodyEnd = Tape.end
  Tape.end = tapeEnd
}

/** @param value the place of the attributes in their part */
function readAttribute(value: i32, source: i32): void {
  readKeyValue(Node.of(value - NODE_BYTES).next, source)
}

const SERVICE_NAME: i32 = literal('service.name')
/** The current name and the earlier one. */
const ENVIRONMENT_NAME: i32 = literal('deployment.environment.name')
const EARLIER_ENVIRONMENT_NAME: i32 = literal('deployment.environment')

function takeResourceColumns(attributes: i32): void {
  Draft.clear()
  const service = memberOf(attributes, SERVICE_NAME)
  if (service !== 0) takeText(Node.of(service), columns.service)
  Origin.service = Draft.valueOf(columns.service)
  Origin.environment = takeEnvironment(memberOf(attributes, ENVIRONMENT_NAME))
  if (Origin.environment === 0)
    Origin.environment = takeEnvironment(memberOf(attributes, EARLIER_ENVIRONMENT_NAME))
}

/** Finds the environment. Takes the attribute out if it says no more than the column. @param address a name; 0 for none */
function takeEnvironment(address: i32): i32 {
  if (address === 0) return 0
  const name = Node.of(address)
  const value = Node.of(name.next)
  if (!value.isString) return 0
  Decoded.read(value)
  const choice = findEnvironment(Decoded.start, Decoded.end)
  if (choice === 0) return 0
  if (isSameText(choice)) name.head |= REPEATED
  return choice
}

/** Whether the string that was decoded last is that of a node of text. */
function isSameText(address: i32): bool {
  const node = Node.of(address)
  const bytes = node.bytes
  return Decoded.end - Decoded.start === bytes && memory.compare(node.start, Decoded.start, bytes) === 0
}

/** The member of an object with a name; 0 if there is none. */
function memberOf(object: i32, known: i32): i32 {
  const end = Node.of(object).next
  for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next)
    if (Literal.of(known).isName(Node.of(address)) && !Node.of(address).has(REPEATED)) return address
  return 0
}

/** Takes an attribute out that becomes a column. One that is not a string, or is longer than a column with short texts allows, stays where it is. */
export function takeText(name: Node, column: i32): void {
  const value = Node.of(name.next)
  if (!value.isString || value.bytes === 0) return
  if (column !== columns.stack && !hasAtMostCharacters(value, fieldOf(column).charactersMax)) return
  name.head |= REPEATED
  Draft.set(column, name.next)
}

field(RECORD, 1, 'timeUnixNano', NANOS, parts.TIME)
field(RECORD, 11, 'observedTimeUnixNano', NANOS, parts.OBSERVED_TIME)
field(RECORD, 2, 'severityNumber', SEVERITY, parts.SEVERITY_NUMBER)
field(RECORD, 3, 'severityText', CHARACTERS, parts.SEVERITY_TEXT)
field(RECORD, 5, 'body', READ, parts.BODY, changetype<i32>(readBody))
field(RECORD, 6, 'attributes', READ_EACH, parts.ATTRIBUTES, changetype<i32>(readAttribute))
field(RECORD, 7, 'droppedAttributesCount', UINT32, parts.DROPPED)
field(RECORD, 8, 'flags', FIXED_UINT32, parts.FLAGS)
field(RECORD, 9, 'traceId', ID, parts.TRACE_ID)
field(RECORD, 10, 'spanId', ID, parts.SPAN_ID)
field(RECORD, 12, 'eventName', CHARACTERS, parts.EVENT_NAME)
field(RESOURCE, 1, 'attributes', READ_EACH, parts.RESOURCE_ATTRIBUTES, changetype<i32>(readAttribute))
field(RESOURCE, 2, 'droppedAttributesCount', UINT32, parts.RESOURCE_DROPPED)
field(SCOPE, 1, 'name', CHARACTERS, parts.SCOPE_NAME)
field(SCOPE, 2, 'version', CHARACTERS, parts.SCOPE_VERSION)
field(SCOPE, 3, 'attributes', READ_EACH, parts.SCOPE_ATTRIBUTES, changetype<i32>(readAttribute))
field(SCOPE, 4, 'droppedAttributesCount', UINT32, parts.SCOPE_DROPPED)
field(SCOPE_LOGS, 1, 'scope', MESSAGE, 0, SCOPE)
field(SCOPE_LOGS, 3, 'schemaUrl', CHARACTERS, parts.SCOPE_SCHEMA_URL)
field(RECORDS, LOG_RECORDS, 'logRecords', READ_ANY, 0, changetype<i32>(readRecord))
field(RESOURCE_LOGS, 1, 'resource', MESSAGE, 0, RESOURCE)
field(RESOURCE_LOGS, 3, 'schemaUrl', CHARACTERS, parts.RESOURCE_SCHEMA_URL)
field(SCOPES, 2, 'scopeLogs', READ_EACH, 0, changetype<i32>(readScopeLogs))
field(REQUEST, 1, 'resourceLogs', READ_EACH, 0, changetype<i32>(readResourceLogs))
