import { LOWER_A } from '../bytes'
import { Decoded } from '../draft'
import { Literal, literal } from '../literals'
import { TAPE } from '../memory'
import { INVALID_MESSAGE, Records } from '../records'
import { ARRAY, Node, NODE_BYTES, OBJECT, STRING, Tape, TEXT } from '../tape'
import { rejectRecord, takeRecord } from './entry'
import * as faults from './faults'
import {
  ATTRIBUTES as ATTRIBUTES_MEMBER,
  NAME as NAME_MEMBER,
  Origin,
  RESOURCE as RESOURCE_MEMBER,
  SCOPE as SCOPE_MEMBER,
  VERSION as VERSION_MEMBER,
} from './origin'
import { Integer } from './json-numbers'
import { checkKind, isName, Members, readAnyValue, readKeyValues, rejectPart } from './json-values'
import * as parts from './parts'
import { LogRecord, Resource, Scope } from './record'
import {
  addNull,
  ATTRIBUTES_LEVEL,
  BODY_LEVEL,
  Budget,
  close,
  open,
  Rejection,
  SCOPE_ATTRIBUTES_LEVEL,
} from './values'
import { Wire } from '../wire'

const RESOURCE_LOGS: i32 = literal('resourceLogs')
const SCOPE_LOGS: i32 = literal('scopeLogs')
const LOG_RECORDS: i32 = literal('logRecords')
const SCHEMA_URL: i32 = literal('schemaUrl')
const TIME: i32 = literal('timeUnixNano')
const OBSERVED_TIME: i32 = literal('observedTimeUnixNano')
const SEVERITY_NUMBER: i32 = literal('severityNumber')
const SEVERITY_TEXT: i32 = literal('severityText')
const BODY: i32 = literal('body')
const DROPPED: i32 = literal('droppedAttributesCount')
const FLAGS: i32 = literal('flags')
const TRACE_ID: i32 = literal('traceId')
const SPAN_ID: i32 = literal('spanId')
const EVENT_NAME: i32 = literal('eventName')

const INT32_MAX: u64 = 0x7fffffff
const UINT32_MAX: u64 = 0xffffffff

/**
 * Reads the JSON form of an ExportLogsServiceRequest, whose root is on the tape. What is made of its values is on the tape after it.
 *
 * @returns 0, or why the request is rejected
 */
export function readRequest(): i32 {
  Wire.fault = 0
  const resourceLogs = find(TAPE, RESOURCE_LOGS)
  const tapeEnd = Tape.end
  if (resourceLogs !== 0) {
    if (Node.of(resourceLogs).kind !== ARRAY) return fail(parts.RESOURCE_LOGS)
    const end = Node.of(resourceLogs).next
    for (let at = resourceLogs + NODE_BYTES; at < end; at = Node.of(at).next) {
      Tape.end = tapeEnd
      const result = readResourceLogs(at)
      if (result !== 0) return result
    }
  }
  Records.finish()
  return 0
}

function fail(part: i32): i32 {
  Wire.fault = faults.PART_TYPE
  Wire.faultAt = part
  return INVALID_MESSAGE
}

/** The value of a member; 0 if there is none, or if it is null. */
function find(object: i32, known: i32): i32 {
  const end = Node.of(object).next
  for (let at = Members.first(object); at < end; at = Members.after(at, end))
    if (isName(Node.of(at), known)) return Node.of(at).next
  return 0
}

function readResourceLogs(source: i32): i32 {
  if (Node.of(source).kind !== OBJECT) return fail(parts.RESOURCE_LOGS_ELEMENT)
  const scopeLogs = find(source, SCOPE_LOGS)
  if (scopeLogs === 0) return 0
  if (Node.of(scopeLogs).kind !== ARRAY) return fail(parts.SCOPE_LOGS)
  readResource(source)
  Origin.setResource()
  const tapeEnd = Tape.end
  const end = Node.of(scopeLogs).next
  for (let at = scopeLogs + NODE_BYTES; at < end; at = Node.of(at).next) {
    Tape.end = tapeEnd
    const result = readScopeLogs(at)
    if (result !== 0) return result
  }
  return 0
}

function readScopeLogs(source: i32): i32 {
  if (Node.of(source).kind !== OBJECT) return fail(parts.SCOPE_LOGS_ELEMENT)
  const logRecords = find(source, LOG_RECORDS)
  if (logRecords === 0) return 0
  if (Node.of(logRecords).kind !== ARRAY) return fail(parts.LOG_RECORDS)
  const end = Node.of(logRecords).next
  if (end === logRecords + NODE_BYTES) return 0
  readScope(source)
  Origin.setScope()
  const tapeEnd = Tape.end
  for (let at = logRecords + NODE_BYTES; at < end; at = Node.of(at).next) {
    Tape.end = tapeEnd
    const result = readRecord(at)
    if (result !== 0) return result
  }
  return 0
}

/** @returns false if its records are rejected */
function readResource(source: i32): bool {
  Resource.clear()
  Budget.begin()
  const resource = find(source, RESOURCE_MEMBER)
  if (resource !== 0) {
    if (!checkKind(resource, OBJECT, parts.RESOURCE)) return false
    const end = Node.of(resource).next
    for (let at = Members.first(resource); at < end; at = Members.after(at, end)) {
      const name = Node.of(at)
      if (isName(name, ATTRIBUTES_MEMBER)) Resource.attributes = readAttributes(name.next, ATTRIBUTES_LEVEL)
      else if (isName(name, DROPPED)) Resource.dropped = readUint32(name.next, parts.DROPPED)
      if (Rejection.code >= 0) return false
    }
  }
  Resource.schemaUrl = readText(find(source, SCHEMA_URL), parts.SCHEMA_URL)
  return true
}

/** @returns false if its records are rejected */
function readScope(source: i32): bool {
  Scope.clear()
  Budget.begin()
  const scope = find(source, SCOPE_MEMBER)
  if (scope !== 0) {
    if (!checkKind(scope, OBJECT, parts.SCOPE)) return false
    const end = Node.of(scope).next
    for (let at = Members.first(scope); at < end; at = Members.after(at, end)) {
      const name = Node.of(at)
      if (isName(name, NAME_MEMBER)) Scope.name = readText(name.next, parts.NAME)
      else if (isName(name, VERSION_MEMBER)) Scope.version = readText(name.next, parts.VERSION)
      else if (isName(name, ATTRIBUTES_MEMBER))
        Scope.attributes = readAttributes(name.next, SCOPE_ATTRIBUTES_LEVEL)
      else if (isName(name, DROPPED)) Scope.dropped = readUint32(name.next, parts.DROPPED)
      if (Rejection.code >= 0) return false
    }
  }
  Scope.schemaUrl = readText(find(source, SCHEMA_URL), parts.SCHEMA_URL)
  return true
}

function readRecord(source: i32): i32 {
  if (Origin.code >= 0) return rejectRecord(Origin.code, Origin.where)
  LogRecord.clear()
  Budget.begin()
  if (checkKind(source, OBJECT, parts.LOG_RECORD)) {
    const end = Node.of(source).next
    for (let at = Members.first(source); at < end; at = Members.after(at, end)) {
      readMember(Node.of(at))
      if (Rejection.code >= 0) break
    }
  }
  return takeRecord()
}

function readMember(name: Node): void {
  const value = name.next
  if (isName(name, TIME)) LogRecord.time = readUint64(value, parts.TIME)
  else if (isName(name, OBSERVED_TIME)) LogRecord.observedTime = readUint64(value, parts.OBSERVED_TIME)
  else if (isName(name, SEVERITY_NUMBER)) LogRecord.severity = readSeverity(value)
  else if (isName(name, SEVERITY_TEXT)) LogRecord.severityText = readText(value, parts.SEVERITY_TEXT)
  else if (isName(name, BODY)) {
    const body = addNull()
    LogRecord.body = body
    if (readAnyValue(value, body, BODY_LEVEL)) close(body)
  } else if (isName(name, ATTRIBUTES_MEMBER)) LogRecord.attributes = readAttributes(value, ATTRIBUTES_LEVEL)
  else if (isName(name, TRACE_ID)) LogRecord.traceId = readId(value, parts.TRACE_ID)
  else if (isName(name, SPAN_ID)) LogRecord.spanId = readId(value, parts.SPAN_ID)
  else if (isName(name, FLAGS)) LogRecord.flags = readUint32(value, parts.FLAGS)
  else if (isName(name, DROPPED)) LogRecord.dropped = readUint32(value, parts.DROPPED)
  else if (isName(name, EVENT_NAME)) LogRecord.eventName = readText(value, parts.EVENT_NAME)
}

/** @returns the node of an object */
function readAttributes(source: i32, level: i32): i32 {
  const attributes = addNull()
  open(attributes, OBJECT)
  if (readKeyValues(source, attributes, level, parts.ATTRIBUTES, parts.ATTRIBUTES_ELEMENT)) close(attributes)
  return attributes
}

/** @param address may be 0 */
function readText(address: i32, part: i32): i32 {
  if (address !== 0) checkKind(address, STRING, part)
  return address
}

function readUint64(address: i32, part: i32): u64 {
  if (Integer.read(address) && Integer.isUnsigned(u64.MAX_VALUE)) return Integer.magnitude
  rejectPart(part)
  return 0
}

function readUint32(address: i32, part: i32): u32 {
  if (Integer.read(address) && Integer.isUnsigned(UINT32_MAX)) return <u32>Integer.magnitude
  rejectPart(part)
  return 0
}

const SEVERITY: i32 = literal('SEVERITY_NUMBER_')
const UNSPECIFIED: i32 = literal('UNSPECIFIED')
const TRACE: i32 = literal('TRACE')
const DEBUG: i32 = literal('DEBUG')
const INFO: i32 = literal('INFO')
const WARN: i32 = literal('WARN')
const ERROR: i32 = literal('ERROR')
const FATAL: i32 = literal('FATAL')

/** OTLP requires numbers. Encoders of Protocol Buffers in general also write names. */
function readSeverity(address: i32): i32 {
  if (Node.of(address).kind === STRING) {
    const severity = severityOfName(Node.of(address))
    if (severity >= 0) return severity
  }
  if (Integer.read(address) && Integer.isSigned(INT32_MAX)) return <i32>Integer.signed
  rejectPart(parts.SEVERITY_NUMBER)
  return 0
}

/** @returns a negative number for any other string */
function severityOfName(text: Node): i32 {
  Decoded.read(text)
  const prefix = Literal.of(SEVERITY)
  if (Decoded.end - Decoded.start < prefix.bytes || !prefix.isAt(Decoded.start)) return -1
  const start = Decoded.start + prefix.bytes
  const bytes = Decoded.end - start
  if (isWord(UNSPECIFIED, start, bytes)) return 0
  // The first of a severity has no digit.
  const last = bytes > 0 ? load<u8>(start + bytes - 1) : 0
  const step = last >= DIGIT_TWO && last <= DIGIT_FOUR ? <i32>(last - DIGIT_TWO) + 2 : 1
  const first = firstOf(start, step === 1 ? bytes : bytes - 1)
  return first < 0 ? -1 : first + step - 1
}

const DIGIT_TWO: u8 = 0x32
const DIGIT_FOUR: u8 = 0x34

function firstOf(start: i32, bytes: i32): i32 {
  if (isWord(TRACE, start, bytes)) return 1
  if (isWord(DEBUG, start, bytes)) return 5
  if (isWord(INFO, start, bytes)) return 9
  if (isWord(WARN, start, bytes)) return 13
  if (isWord(ERROR, start, bytes)) return 17
  return isWord(FATAL, start, bytes) ? 21 : -1
}

function isWord(word: i32, start: i32, bytes: i32): bool {
  return Literal.of(word).bytes === bytes && Literal.of(word).isAt(start)
}

/** OTLP writes ids in hexadecimal, which become lower-case. Other texts are kept as they are. @returns the node of a string */
function readId(address: i32, part: i32): i32 {
  if (!checkKind(address, STRING, part)) return 0
  const node = Node.of(address)
  Decoded.read(node)
  const start = Decoded.start
  const end = Decoded.end
  let hasUpper = false
  for (let at = start; at < end; at += 1) {
    const byte = load<u8>(at)
    if (<u8>(byte - 0x30) < 10) continue
    if (<u8>((byte | 0x20) - LOWER_A) >= 6) return address
    if (byte < LOWER_A) hasUpper = true
  }
  if (hasUpper) for (let at = start; at < end; at += 1) store<u8>(at, load<u8>(at) | 0x20)
  // An escaped one is written as it was decoded.
  const text = Tape.end
  Tape.add(TEXT, start, end)
  return text
}
