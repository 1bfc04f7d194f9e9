import { BODY, TAPE } from '../memory'
import { INVALID_MESSAGE, Records } from '../records'
import { HEX, NODE_BYTES, OBJECT, Tape, TEXT } from '../tape'
import { rejectRecord, takeRecord } from './entry'
import * as faults from './faults'
import { Origin } from './origin'
import { readAnyValue, readKeyValue, readScalar, readText } from './protobuf-values'
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
  setNull,
  setRange,
} from './values'
import { bytesTag, fixed32Tag, fixed64Tag, varintTag, Wire } from '../wire'

/**
 * Reads an ExportLogsServiceRequest in Protocol Buffers. A resource may follow its records, so the fields of ResourceLogs and ScopeLogs are
 * passed twice: first for what the records have in common, and then for the records.
 *
 * @returns 0, or why the request is rejected
 */
export function readRequest(bytes: i32): i32 {
  Wire.begin(BODY, BODY + bytes)
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag !== bytesTag(1)) {
      Wire.skip(tag)
      continue
    }
    const result = readResourceLogs()
    if (result !== 0) return result
  }
  if (Wire.fault !== 0) return INVALID_MESSAGE
  Records.finish()
  return 0
}

function readResourceLogs(): i32 {
  const outer = Wire.enter()
  const start = Wire.at
  readResource()
  if (Wire.fault !== 0) return INVALID_MESSAGE
  Origin.setResource()
  const tapeEnd = Tape.end
  Wire.at = start
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag !== bytesTag(2)) {
      Wire.skip(tag)
      continue
    }
    Tape.end = tapeEnd
    const result = readScopeLogs()
    if (result !== 0) return result
  }
  Wire.leave(outer)
  return Wire.fault === 0 ? 0 : INVALID_MESSAGE
}

/** Official decoders merge a repeated resource. After an error, no further one is read. */
function readResource(): void {
  Tape.end = TAPE
  Resource.clear()
  Budget.begin()
  Resource.schemaUrl = addEmpty()
  Resource.attributes = addObject()
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (Rejection.code >= 0) Wire.skip(tag)
    else if (tag === bytesTag(1)) readResourceFields()
    else if (tag === bytesTag(3)) readText(Resource.schemaUrl)
    else Wire.skip(tag)
  }
  close(Resource.attributes)
}

/** Adds an empty text. */
function addEmpty(): i32 {
  const address = Tape.end
  Tape.add(TEXT, 0, 0)
  return address
}

function addObject(): i32 {
  const address = addNull()
  open(address, OBJECT)
  return address
}

function readResourceFields(): void {
  const outer = Wire.enter()
  const end = Wire.end
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === bytesTag(1)) readKeyValue(Resource.attributes, ATTRIBUTES_LEVEL)
    else if (tag === varintTag(2)) Resource.dropped = <u32>Wire.varint()
    else Wire.skip(tag)
  }
  leaveRejected(end, outer)
}

/** Leaves a message that was not read to its end if it was rejected. */
function leaveRejected(end: i32, outer: i32): void {
  if (Wire.fault === faults.REJECTED) Wire.fault = 0
  Wire.end = end
  Wire.leave(outer)
}

function readScopeLogs(): i32 {
  const outer = Wire.enter()
  const start = Wire.at
  const hasRecords = readScope()
  if (Wire.fault !== 0) return INVALID_MESSAGE
  // A request may have a million scopes without records.
  if (hasRecords) {
    Origin.setScope()
    Wire.at = start
    const result = readRecords()
    if (result !== 0) return result
  }
  Wire.leave(outer)
  return 0
}

/** @returns whether the scope has records */
function readScope(): bool {
  Scope.clear()
  Budget.begin()
  Scope.name = addEmpty()
  Scope.version = addEmpty()
  Scope.schemaUrl = addEmpty()
  Scope.attributes = addObject()
  let hasRecords = false
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === bytesTag(2)) {
      hasRecords = true
      Wire.bytes()
    } else if (Rejection.code >= 0) Wire.skip(tag)
    else if (tag === bytesTag(1)) readScopeFields()
    else if (tag === bytesTag(3)) readText(Scope.schemaUrl)
    else Wire.skip(tag)
  }
  close(Scope.attributes)
  return hasRecords
}

function readScopeFields(): void {
  const outer = Wire.enter()
  const end = Wire.end
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === bytesTag(1)) readText(Scope.name)
    else if (tag === bytesTag(2)) readText(Scope.version)
    else if (tag === bytesTag(3)) readKeyValue(Scope.attributes, SCOPE_ATTRIBUTES_LEVEL)
    else if (tag === varintTag(4)) Scope.dropped = <u32>Wire.varint()
    else Wire.skip(tag)
  }
  leaveRejected(end, outer)
}

function readRecords(): i32 {
  const tapeEnd = Tape.end
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag !== bytesTag(2)) {
      Wire.skip(tag)
      continue
    }
    let result = 0
    if (Origin.code >= 0) {
      Wire.bytes()
      result = rejectRecord(Origin.code, Origin.where)
    } else {
      Tape.end = tapeEnd
      readRecord()
      if (Wire.fault !== 0) return INVALID_MESSAGE
      result = takeRecord()
    }
    if (result !== 0) return result
  }
  return Wire.fault === 0 ? 0 : INVALID_MESSAGE
}

/** The nodes before the attributes of a record: its texts and its body, if that is neither an array nor an object. */
const SEVERITY_TEXT: i32 = 0
const TRACE_ID: i32 = NODE_BYTES
const SPAN_ID: i32 = NODE_BYTES * 2
const EVENT_NAME: i32 = NODE_BYTES * 3
const BODY_NODE: i32 = NODE_BYTES * 4
const ATTRIBUTES: i32 = NODE_BYTES * 5

function readRecord(): void {
  const outer = Wire.enter()
  const start = Wire.at
  const end = Wire.end
  LogRecord.clear()
  Budget.begin()
  const nodes = Tape.end
  Tape.end = nodes + ATTRIBUTES
  const attributes = addObject()
  LogRecord.attributes = attributes
  if (!readFields(nodes, attributes)) {
    // The nodes of a list stand together, so they cannot be among those of attributes.
    Wire.at = start
    readBody()
  }
  leaveRejected(end, outer)
  close(attributes)
}

/** @returns whether everything was read: not if the body is an array or an object */
function readFields(nodes: i32, attributes: i32): bool {
  let isWhole = true
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === bytesTag(6)) readKeyValue(attributes, ATTRIBUTES_LEVEL)
    else if (tag === bytesTag(5)) {
      const body = nodes + BODY_NODE
      if (LogRecord.body === 0) setNull(body)
      LogRecord.body = body
      if (!readScalar(body)) isWhole = false
    } else if (tag === fixed64Tag(1)) LogRecord.time = Wire.fixed64()
    else if (tag === varintTag(2)) LogRecord.severity = <i32>Wire.varint()
    else if (tag === bytesTag(3)) LogRecord.severityText = readTextInto(nodes + SEVERITY_TEXT)
    else if (tag === varintTag(7)) LogRecord.dropped = <u32>Wire.varint()
    else if (tag === fixed32Tag(8)) LogRecord.flags = Wire.fixed32()
    else if (tag === bytesTag(9)) LogRecord.traceId = readId(nodes + TRACE_ID)
    else if (tag === bytesTag(10)) LogRecord.spanId = readId(nodes + SPAN_ID)
    else if (tag === fixed64Tag(11)) LogRecord.observedTime = Wire.fixed64()
    else if (tag === bytesTag(12)) LogRecord.eventName = readTextInto(nodes + EVENT_NAME)
    else Wire.skip(tag)
  }
  return isWhole
}

function readTextInto(address: i32): i32 {
  readText(address)
  return address
}

function readId(address: i32): i32 {
  const start = Wire.bytes()
  setRange(address, HEX, start, Wire.at)
  return address
}

function readBody(): void {
  const body = addNull()
  LogRecord.body = body
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === bytesTag(5)) readAnyValue(body, BODY_LEVEL)
    else Wire.skip(tag)
  }
  close(body)
}
