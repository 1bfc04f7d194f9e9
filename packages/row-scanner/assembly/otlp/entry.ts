// The mapping is documented in docs/sources/opentelemetry.md.
import * as codes from '../codes'
import * as columns from '../columns'
import { Decoded, Draft } from '../draft'
import { METADATA as METADATA_FIELD } from '../errors'
import { fieldOf } from '../fields'
import { metadataBytesMax, metadataDepthMax } from '../limits'
import { Literal, literal } from '../literals'
import { isExact, levelOf, LOG, OTEL, PINO, readLevelNumber, readLevelText } from '../loggers/levels'
import { levelNode } from '../loggers/words'
import { COMMON, MESSAGE } from '../memory'
import { Metadata } from '../metadata'
import { Records } from '../records'
import { base64Bytes, writeScalar } from '../scalars'
import { LONE } from '../strings'
import { Path } from '../surrogates'
import { BYTES, DOUBLE, HEX, INTEGER, Node, NODE_BYTES, NULL, REPEATED, Tape, TEXT } from '../tape'
import { ATTRIBUTES, DROPPED, findLone, hasNames, Origin, takeText } from './origin'
import { isFilled, LogRecord } from './record'
import { isList, Rejection } from './values'
import { QUOTE, ZERO } from '../bytes'

const TRACE_ID: i32 = literal('trace_id')
const SPAN_ID: i32 = literal('span_id')
const FLAGS: i32 = literal('flags')
const EVENT_NAME: i32 = literal('event_name')
const SEVERITY_NUMBER: i32 = literal('severity_number')
const SEVERITY_TEXT: i32 = literal('severity_text')
const TIME: i32 = literal('time_unix_nano')
const OBSERVED_TIME: i32 = literal('observed_time_unix_nano')
const BODY: i32 = literal('body')
const MESSAGE_FIELD: i32 = literal('message')
const URL: i32 = literal('url')
const PATHNAME: i32 = literal('pathname')
const STACK: i32 = literal('stack')
const EXCEPTION_STACK: i32 = literal('exception.stacktrace')
const URL_FULL: i32 = literal('url.full')
const URL_PATH: i32 = literal('url.path')

/** The contract has the years up to 2261. */
const END_NS: u64 = 9_214_646_400_000_000_000
const NS_PER_US: u64 = 1_000

/** Makes a row of a record, or rejects it. @returns 0, or why the request is rejected */
export function takeRecord(): i32 {
  if (Rejection.code >= 0) return rejectRecord(Rejection.code, Rejection.where)
  Draft.clear()
  Draft.set(columns.service, Origin.service)
  Draft.set(columns.environment, Origin.environment)
  takeTime()
  takeAttributes()
  const level = levelNode(levelOfRecord(LogRecord.severity, LogRecord.severityText))
  Draft.set(columns.level, level)
  writeMetadata(Node.of(level))
  if (Metadata.bytes + Origin.bytes > metadataBytesMax) return Records.reject(codes.TOO_LARGE, METADATA_FIELD)
  Metadata.addWritten(COMMON, Origin.end)
  Metadata.finish()
  const body = LogRecord.body
  if (body !== 0 && isTooLongAsMessage(Node.of(body)))
    return Records.reject(codes.TOO_LONG, fieldOf(columns.message).index)
  Draft.set(columns.message, messageOf(body))
  if (Metadata.levels <= metadataDepthMax && findLoneInRecord())
    return Records.rejectUnicode(Path.start, Path.end)
  return Records.take()
}

/** Rejects a record that was not read. */
export function rejectRecord(code: i32, where: i32): i32 {
  // It has no metadata, and counts none.
  Metadata.begin()
  return Records.reject(code, where)
}

function isTime(time: u64): bool {
  return time !== 0 && time < END_NS
}

function takeTime(): void {
  const time = isTime(LogRecord.time) ? LogRecord.time : LogRecord.observedTime
  Draft.hasTime = isTime(time)
  Draft.timeUs = time / NS_PER_US
}

function takeAttributes(): void {
  const attributes = LogRecord.attributes
  if (attributes === 0) return
  const end = Node.of(attributes).next
  for (let address = attributes + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    const bytes = name.bytes
    if ((bytes !== 8 && bytes !== 20) || name.has(REPEATED)) continue
    if (Literal.of(URL_FULL).isName(name)) Draft.set(columns.url, takeText(name, columns.url))
    else if (Literal.of(URL_PATH).isName(name)) Draft.set(columns.pathname, takeText(name, columns.pathname))
    else if (Literal.of(EXCEPTION_STACK).isName(name)) Draft.set(columns.stack, takeText(name, columns.stack))
  }
}

function levelOfRecord(severity: i32, text: i32): i32 {
  let reading = readLevelNumber(OTEL, severity)
  if (reading === 0 && text !== 0) {
    Decoded.read(Node.of(text))
    reading = readLevelText(PINO, Decoded.start, Decoded.end)
  }
  return reading === 0 ? LOG : levelOf(reading)
}

/** The place of the body in the metadata. */
let bodyStart: i32 = 0
let bodyEnd: i32 = 0

/** Writes the members of the record itself. */
function writeMetadata(level: Node): void {
  Metadata.begin()
  if (hasNames(LogRecord.attributes)) Metadata.addKnown(ATTRIBUTES, LogRecord.attributes)
  if (LogRecord.dropped !== 0) Metadata.addInteger(DROPPED, LogRecord.dropped)
  if (isId(LogRecord.traceId)) Metadata.addKnown(TRACE_ID, LogRecord.traceId)
  if (isId(LogRecord.spanId)) Metadata.addKnown(SPAN_ID, LogRecord.spanId)
  if (LogRecord.flags !== 0) Metadata.addInteger(FLAGS, LogRecord.flags)
  if (isFilled(LogRecord.eventName)) Metadata.addKnown(EVENT_NAME, LogRecord.eventName)
  const severity = LogRecord.severity
  if (severity !== 0 && !isExact(readLevelNumber(OTEL, severity)))
    Metadata.addInteger(SEVERITY_NUMBER, severity)
  const text = LogRecord.severityText
  if (isFilled(text) && !isNameOf(level, Node.of(text))) Metadata.addKnown(SEVERITY_TEXT, text)
  const time = LogRecord.time
  if (time !== 0 && !(isTime(time) && time % NS_PER_US === 0)) Metadata.addDigits(TIME, time)
  const observed = LogRecord.observedTime
  if (observed !== 0 && observed !== time) Metadata.addDigits(OBSERVED_TIME, observed)
  const body = LogRecord.body
  if (body === 0 || !isList(body)) return
  bodyStart = Metadata.end + Literal.of(BODY).bytes + 3
  Metadata.addKnown(BODY, body)
  bodyEnd = Metadata.end - 1
}

/** Whether a text is the name of a level, in any case. */
function isNameOf(level: Node, text: Node): bool {
  Decoded.read(text)
  const bytes = level.bytes
  if (Decoded.end - Decoded.start !== bytes) return false
  for (let i = 0; i < bytes; i += 1)
    if ((load<u8>(Decoded.start + i) | 0x20) !== load<u8>(level.start + i)) return false
  return true
}

/** Whether an id is not only zeros, which stand for no id. */
function isId(address: i32): bool {
  if (address === 0) return false
  const node = Node.of(address)
  const zero: u8 = node.kind === HEX ? 0 : ZERO
  const end = node.end
  for (let at = node.start; at < end; at += 1) if (load<u8>(at) !== zero) return true
  return false
}

function isTooLongAsMessage(body: Node): bool {
  return body.kind === BYTES && base64Bytes(body.bytes) > fieldOf(columns.message).charactersMax
}

/** @returns the node of a string; 0 for an empty message */
function messageOf(body: i32): i32 {
  if (body === 0) return LogRecord.eventName
  const node = Node.of(body)
  const kind = node.kind
  if (kind === NULL) return LogRecord.eventName
  if (node.isString || kind === BYTES) {
    if (node.bytes === 0) return LogRecord.eventName
    if (kind !== BYTES) return body
  }
  if (isList(body)) return addText(bodyStart, bodyEnd)
  if (kind !== INTEGER && kind !== DOUBLE && kind !== BYTES) return addText(node.start, node.end)
  const end = writeScalar(MESSAGE, body)
  return load<u8>(MESSAGE) === QUOTE ? addText(MESSAGE + 1, end - 1) : addText(MESSAGE, end)
}

function addText(start: i32, end: i32): i32 {
  const address = Tape.end
  Tape.add(TEXT, start, end)
  return address
}

/** Finds half of a surrogate pair, which has no UTF-8 form, and makes its path. Only JSON can have one. */
function findLoneInRecord(): bool {
  if (
    findLone(0, MESSAGE_FIELD, Draft.valueOf(columns.message)) ||
    findLone(0, URL, Draft.valueOf(columns.url)) ||
    findLone(0, PATHNAME, Draft.valueOf(columns.pathname)) ||
    findLone(0, STACK, Draft.valueOf(columns.stack)) ||
    findLone(1, ATTRIBUTES, LogRecord.attributes) ||
    findLone(1, TRACE_ID, LogRecord.traceId) ||
    findLone(1, SPAN_ID, LogRecord.spanId) ||
    findLone(1, EVENT_NAME, LogRecord.eventName) ||
    findLone(1, SEVERITY_TEXT, LogRecord.severityText) ||
    findLone(1, BODY, LogRecord.body)
  )
    return true
  if (!Origin.hasLone) return false
  Path.start = Origin.loneStart
  Path.end = Origin.loneEnd
  return true
}
