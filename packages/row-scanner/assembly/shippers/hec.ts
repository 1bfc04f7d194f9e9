import * as codes from '../codes'
import * as columns from '../columns'
import { Cursor } from '../cursor'
import { Draft } from '../draft'
import { BLANK_EVENT, ENTRY, NO_EVENT } from '../errors'
import { recordsPerRequestMax } from '../limits'
import { Line } from '../lines'
import { literal } from '../literals'
import { LOG } from '../loggers/levels'
import { memberOf, named } from '../loggers/members'
import { faultOf, keepWritten, kept, Mapper, record, reject } from '../loggers/mapper'
import { Time } from '../loggers/times'
import { levelNode } from '../loggers/words'
import { BODY, ORIGIN, TAPE } from '../memory'
import { Metadata } from '../metadata'
import { countNames, Names } from '../names'
import { INVALID_JSON, Records, TOO_MANY_RECORDS } from '../records'
import { ARRAY, Node, NODE_BYTES, NULL, OBJECT, REPEATED, STRING, Tape, TEXT } from '../tape'
import { readNext, readText } from '../text'
import { Timestamp } from '../timestamps'
import { copyWellFormed, isUtf8 } from '../utf8'

const TIMESTAMP = literal('timestamp')
const MESSAGE = literal('message')

/** Scans the events of Splunk's HTTP Event Collector: values one after another, each an event or an array of events. */
export function scanHecEvents(bytes: i32): i32 {
  Records.clear()
  const end = BODY + bytes
  let result = 0
  Cursor.at = BODY
  Cursor.skip()
  for (let values = 0; Cursor.at < end && result === 0; values += 1) {
    // A body may have millions of arrays without an event.
    if (values === recordsPerRequestMax) return TOO_MANY_RECORDS
    if (!readNext(Cursor.at, end)) return INVALID_JSON
    const isArray = Node.of(TAPE).kind === ARRAY
    const last = Node.of(TAPE).next
    const at = Cursor.at
    for (
      let event = isArray ? TAPE + NODE_BYTES : TAPE;
      event < last && result === 0;
      event = Node.of(event).next
    )
      result = takeEvent(event)
    Cursor.at = at
    Cursor.skip()
  }
  Records.finish()
  return result
}

/** Takes an event, and what its envelope says about it. */
function takeEvent(envelope: i32): i32 {
  const fault = faultOf(envelope)
  if (fault !== 0) return reject(fault, ENTRY)
  const event = memberOf(envelope, 'event')
  if (event === 0) return reject(codes.MISSING, NO_EVENT)
  const value = Node.of(event)
  const isBlank = value.kind === NULL || (value.kind === STRING && value.bytes === 0)
  if (isBlank) return reject(codes.MISSING, BLANK_EVENT)
  let fields = memberOf(envelope, 'fields')
  if (!isObject(fields)) fields = 0
  let time = memberOf(envelope, 'time')
  if (time !== 0 && !Time.read(Node.of(time))) time = 0
  Mapper.begin(envelope)
  if (time !== 0) add(TIMESTAMP, time)
  if (value.kind === OBJECT) addEvent(event)
  else add(MESSAGE, value.kind === STRING ? event : jsonOf(event))
  if (fields !== 0) record.addAll(fields)
  Mapper.map()
  const end = Node.of(envelope).next
  for (let address = envelope + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const member = Node.of(address).next
    const isUsed = member === event || member === fields || member === time
    if (!isUsed && !Node.of(address).has(REPEATED)) kept.add(address, kept.last)
  }
  return Mapper.take()
}

function isObject(value: i32): bool {
  return value !== 0 && Node.of(value).kind === OBJECT
}

function add(name: i32, value: i32): void {
  record.add(named(name, value), record.last)
}

/** The JSON of a value, as a string. */
function jsonOf(value: i32): i32 {
  Metadata.writeValue(value, Names.mark)
  return keepWritten()
}

function addEvent(event: i32): void {
  const message = memberOf(event, 'message')
  const line = memberOf(event, 'line')
  const attrs = memberOf(event, 'attrs')
  const isLine = line !== 0 && (Node.of(line).kind === STRING || isObject(line))
  // Docker's logging driver has the message there, or its fields if it is JSON.
  const isOfDocker = message === 0 && isLine && memberOf(event, 'source') !== 0
  if (isOfDocker) {
    if (isObject(line)) record.addAll(line)
    else add(MESSAGE, line)
    if (isObject(attrs)) record.addAll(attrs)
  } else if (isObject(message)) {
    // Splunk's library for JavaScript has the fields of a message there.
    record.addAll(message)
  } else return record.addAll(event)
  const known = record.last
  const end = Node.of(event).next
  for (let address = event + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const member = Node.of(address).next
    const isAdded = isOfDocker ? member === line || member === attrs : member === message
    if (!isAdded && !Node.of(address).has(REPEATED)) record.add(address, known)
  }
}

/**
 * Scans lines, each the message of a record.
 *
 * @param origin the length of the JSON at `ORIGIN`: an array of the time of all records, or null, and of their metadata
 */
export function scanHecLines(bytes: i32, origin: i32): i32 {
  Records.clear()
  if (!readText(ORIGIN, ORIGIN + origin)) return INVALID_JSON
  const time = Node.of(TAPE + NODE_BYTES)
  const metadata = TAPE + 2 * NODE_BYTES
  const message = Tape.end
  Tape.add(TEXT, 0, 0)
  const line = Node.of(message)
  Draft.clear()
  Draft.hasTime = time.kind === STRING && Timestamp.read(time.start, time.end)
  Draft.timeUs = Timestamp.us
  Draft.set(columns.level, levelNode(LOG))
  Draft.set(columns.message, message)
  Metadata.use(Node.of(metadata))
  Metadata.names = countNames(metadata)
  const end = BODY + bytes
  let result = 0
  for (let at = BODY; result === 0 && Line.find(at, end); at = Line.next) {
    const isText = isUtf8(Line.start, Line.end)
    line.start = isText ? Line.start : Names.mark
    line.end = isText ? Line.end : copyWellFormed(Names.mark, Line.start, Line.end)
    result = Records.take()
  }
  Records.finish()
  return result
}
