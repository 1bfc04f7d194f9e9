import { CLOSE_BRACE, COLON, COMMA, NEWLINE, QUOTE } from '../bytes'
import { BODY, BODY_BYTES_MAX, LINE_OWN_BYTES_MAX, ORIGIN, SPANS } from '../memory'
import { bytesOf, Lines, startOf } from './lines'
import * as texts from './texts'
import { isTimestamp, writeTimestamp } from './times'
import { Key, STRING, writeValue } from './values'
import { Wire } from './wire'

/** The tags of ScopeLogs. */
const SCOPE: u8 = 0x0a
const LOG_RECORD: u8 = 0x12
const SCHEMA_URL: u8 = 0x1a

/** The tags of LogRecord. */
const TIME: u8 = 0x09
const SEVERITY_NUMBER: u8 = 0x10
const SEVERITY_TEXT: u8 = 0x1a
const MESSAGE: u8 = 0x2a
const ATTRIBUTE: u8 = 0x32
const DROPPED_ATTRIBUTES_COUNT: u8 = 0x38
const FLAGS: u8 = 0x45
const TRACE_ID: u8 = 0x4a
const SPAN_ID: u8 = 0x52
const OBSERVED_TIME: u8 = 0x59
const EVENT_NAME: u8 = 0x62

const TRACE_ID_BYTES: i32 = 16
const SPAN_ID_BYTES: i32 = 8
const SEVERITY_MAX: u64 = 24
/** The attributes of a record are on this level of metadata. */
const ATTRIBUTES_LEVEL: i32 = 2
/** A byte takes at most this many as JSON: a control character. A number takes less. */
const BYTES_PER_BYTE_MAX: i32 = 6

/** A text in the input. `start` is 0 if there is none. */
@unmanaged
class Span {
  start!: i32
  end!: i32

  /** @param index below eight */
  static at(index: i32): Span {
    return changetype<Span>(SPANS + (index << 3))
  }

  clear(): void {
    this.start = 0
    this.end = 0
  }

  set(start: i32, end: i32): void {
    this.start = start
    this.end = end
  }

  get isEmpty(): bool {
    return this.start === this.end
  }

  /** Writes a member with a string. */
  write(name: i32): void {
    Lines.text(name)
    Lines.string(this.start, this.end)
    Lines.byte(COMMA)
  }
}

/** The fields of the current record. */
let time: u64 = 0
let observedTime: u64 = 0
let severityNumber: i32 = 0
let droppedAttributesCount: u64 = 0
let flags: u32 = 0
const severityText = Span.at(0)
const body = Span.at(1)
const traceId = Span.at(2)
const spanId = Span.at(3)
const eventName = Span.at(4)
const stack = Span.at(5)
const url = Span.at(6)
const pathname = Span.at(7)

/** The lengths of the two texts at `ORIGIN`: members of the entry, and of its metadata. Each is empty or ends with a comma. */
let originFieldsBytes: i32 = 0
let originMetadataBytes: i32 = 0
let taken: i32 = 0

export function setOrigin(fieldsBytes: i32, metadataBytes: i32): void {
  originFieldsBytes = fieldsBytes
  originMetadataBytes = metadataBytes
}

/**
 * Writes the records in fields of ScopeLogs as lines with entries, to `BODY`. Stops before a field that is not an ordinary record, and
 * where there is no room.
 *
 * @returns the number of lines
 */
export function transcode(from: i32, to: i32, recordsMax: i32): i32 {
  Wire.at = from
  Lines.end = BODY
  taken = from
  let records = 0
  while (records < recordsMax && Wire.at < to) {
    const tag = load<u8>(Wire.at)
    Wire.at += 1
    if (tag !== LOG_RECORD && tag !== SCOPE && tag !== SCHEMA_URL) break
    const end = Wire.contentEnd(to)
    if (end < 0) break
    if (tag === LOG_RECORD) {
      const start = Lines.end
      if (!hasRoom(end - Wire.at) || !writeLine(end)) {
        Lines.end = start
        break
      }
      records += 1
    }
    Wire.at = end
    taken = end
  }
  return records
}

/** The end of the fields that became lines. */
export function takenTo(): i32 {
  return taken
}

export function linesEnd(): i32 {
  return Lines.end
}

function hasRoom(recordBytes: i32): bool {
  const bytes =
    recordBytes * BYTES_PER_BYTE_MAX + originFieldsBytes + originMetadataBytes + LINE_OWN_BYTES_MAX
  return Lines.end + bytes <= BODY + BODY_BYTES_MAX
}

function writeLine(end: i32): bool {
  clear()
  Lines.text(texts.metadata)
  Lines.text(texts.attributes)
  const start = Lines.end
  while (Wire.at < end) if (!readField(end)) return false
  // Without attributes, there is no member with attributes.
  if (Lines.end === start) Lines.end -= bytesOf(texts.attributes)
  else {
    Lines.close(CLOSE_BRACE)
    Lines.byte(COMMA)
  }
  if (severityNumber === 0 && !severityText.isEmpty) return false
  const level = levelOf(severityNumber)
  writeMetadata(level)
  Lines.copy(ORIGIN + originFieldsBytes, originMetadataBytes)
  Lines.close(CLOSE_BRACE)
  Lines.byte(COMMA)
  Lines.copy(ORIGIN, originFieldsBytes)
  Lines.text(level)
  if (isTimestamp(time) || isTimestamp(observedTime)) {
    Lines.text(texts.timestamp)
    writeTimestamp(isTimestamp(time) ? time : observedTime)
  }
  if (!stack.isEmpty) stack.write(texts.stack)
  if (!url.isEmpty) url.write(texts.url)
  if (!pathname.isEmpty) pathname.write(texts.pathname)
  const message = body.isEmpty ? eventName : body
  message.write(texts.message)
  Lines.close(CLOSE_BRACE)
  Lines.byte(NEWLINE)
  return true
}

function clear(): void {
  time = 0
  observedTime = 0
  severityNumber = 0
  droppedAttributesCount = 0
  flags = 0
  severityText.clear()
  body.clear()
  traceId.clear()
  spanId.clear()
  eventName.clear()
  stack.clear()
  url.clear()
  pathname.clear()
}

/** Reads a field of the record. Attributes are written at once. @returns false for a field that is not ordinary */
function readField(end: i32): bool {
  const tag = load<u8>(Wire.at)
  Wire.at += 1
  if (tag === ATTRIBUTE) return writeAttribute(Wire.contentEnd(end))
  if (tag === TIME || tag === OBSERVED_TIME) {
    const at = Wire.pass(8, end)
    if (at < 0) return false
    if (tag === TIME) time = load<u64>(at)
    else observedTime = load<u64>(at)
    return true
  }
  if (tag === SEVERITY_NUMBER) {
    if (!Wire.varint(end) || Wire.value > SEVERITY_MAX) return false
    severityNumber = <i32>Wire.value
    return true
  }
  if (tag === FLAGS) {
    const at = Wire.pass(4, end)
    if (at < 0) return false
    flags = load<u32>(at)
    return true
  }
  if (tag === DROPPED_ATTRIBUTES_COUNT) {
    if (!Wire.varint(end) || Wire.value > <u64>u32.MAX_VALUE) return false
    droppedAttributesCount = Wire.value
    return true
  }
  if (tag === MESSAGE) return readBody(Wire.contentEnd(end))
  if (tag === SEVERITY_TEXT) return readText(severityText, end)
  if (tag === EVENT_NAME) return readText(eventName, end)
  if (tag === TRACE_ID) return readId(traceId, TRACE_ID_BYTES, end)
  if (tag === SPAN_ID) return readId(spanId, SPAN_ID_BYTES, end)
  return false
}

/** Reads a text that was not sent before: of two, only the last one would be written, and so be checked for UTF-8. */
function readText(text: Span, end: i32): bool {
  const textEnd = Wire.contentEnd(end)
  if (textEnd < 0 || text.start !== 0) return false
  text.set(Wire.at, textEnd)
  Wire.at = textEnd
  return true
}

/** A body that is a string, or nothing. */
function readBody(end: i32): bool {
  if (end < 0) return false
  if (Wire.at === end) return true
  if (load<u8>(Wire.at) !== STRING) return false
  Wire.at += 1
  return readText(body, end) && Wire.at === end
}

function readId(id: Span, bytes: i32, end: i32): bool {
  if (!readText(id, end)) return false
  return id.isEmpty || id.end - id.start === bytes
}

/** Writes the KeyValue up to `end` as a member of the attributes, unless it becomes a column. */
function writeAttribute(end: i32): bool {
  if (end < 0) return false
  const key = Key.read(end)
  if (key < 0) return false
  const keyEnd = Key.end
  const column = columnOf(key, keyEnd)
  if (column !== null) {
    if (Wire.at === end || load<u8>(Wire.at) !== STRING) return false
    Wire.at += 1
    // An empty text does not become a column.
    return readText(column, end) && !column.isEmpty && Wire.at === end
  }
  Lines.string(key, keyEnd)
  Lines.byte(COLON)
  return writeValue(end, ATTRIBUTES_LEVEL)
}

function columnOf(key: i32, keyEnd: i32): Span | null {
  if (isText(key, keyEnd, texts.keyOfStack)) return stack
  if (isText(key, keyEnd, texts.keyOfUrl)) return url
  return isText(key, keyEnd, texts.keyOfPathname) ? pathname : null
}

function isText(from: i32, fromEnd: i32, text: i32): bool {
  const bytes = bytesOf(text)
  return fromEnd - from === bytes && memory.compare(from, startOf(text), bytes) === 0
}

function writeMetadata(level: i32): void {
  if (droppedAttributesCount !== 0) {
    Lines.text(texts.droppedAttributesCount)
    Lines.digits(droppedAttributesCount)
    Lines.byte(COMMA)
  }
  writeId(traceId, texts.traceId)
  writeId(spanId, texts.spanId)
  if (flags !== 0) {
    Lines.text(texts.flags)
    Lines.digits(flags)
    Lines.byte(COMMA)
  }
  if (!eventName.isEmpty) eventName.write(texts.eventName)
  if (severityNumber !== usualSeverity(severityNumber)) {
    Lines.text(texts.severityNumber)
    Lines.digits(severityNumber)
    Lines.byte(COMMA)
  }
  if (!severityText.isEmpty && !isName(severityText, level)) severityText.write(texts.severityText)
  if (time !== 0 && !(isTimestamp(time) && time % 1_000 === 0)) writeTime(texts.timeUnixNano, time)
  if (observedTime !== 0 && observedTime !== time) writeTime(texts.observedTimeUnixNano, observedTime)
}

function writeId(id: Span, name: i32): void {
  let bits: u64 = 0
  for (let at = id.start; at < id.end; at += 8) bits |= load<u64>(at)
  // An id of zeros is no id.
  if (bits === 0) return
  Lines.text(name)
  Lines.byte(QUOTE)
  Lines.hex(id.start, id.end)
  Lines.byte(QUOTE)
  Lines.byte(COMMA)
}

function writeTime(name: i32, unixNano: u64): void {
  Lines.text(name)
  Lines.byte(QUOTE)
  Lines.digits(unixNano)
  Lines.byte(QUOTE)
  Lines.byte(COMMA)
}

/** The text of the member "level" for a severity. */
function levelOf(severity: i32): i32 {
  if (severity === 0) return texts.levelLog
  if (severity >= 17) return texts.levelError
  if (severity >= 13) return texts.levelWarn
  return severity >= 9 ? texts.levelInfo : texts.levelDebug
}

/** The number that stands for the level of a severity. */
function usualSeverity(severity: i32): i32 {
  if (severity === 0) return 0
  if (severity >= 17) return 17
  if (severity >= 13) return 13
  return severity >= 9 ? 9 : 5
}

/** The bytes around the name in `"level":"info",`. */
const LEVEL_HEAD_BYTES: i32 = 9
const LEVEL_TAIL_BYTES: i32 = 2

/** Whether a text is the name of a level, in any case. */
function isName(text: Span, level: i32): bool {
  const bytes = bytesOf(level) - LEVEL_HEAD_BYTES - LEVEL_TAIL_BYTES
  if (text.end - text.start !== bytes) return false
  const name = startOf(level) + LEVEL_HEAD_BYTES
  for (let i = 0; i < bytes; i += 1) {
    // Lower-case letters differ from upper-case letters in this bit.
    if ((load<u8>(text.start + i) | 0x20) !== load<u8>(name + i)) return false
  }
  return true
}
