import * as codes from '../codes'
import * as columns from '../columns'
import { Cursor } from '../cursor'
import { Draft } from '../draft'
import { BLANK_EVENT, ENTRY, NO_EVENT } from '../errors'
import { recordsPerRequestMax } from '../limits'
import { Line } from '../lines'
import * as constants from '../loggers/constants'
import { isNamed, Members, Texts } from '../loggers/members'
import { hasTooManyNames, isTooDeep, Mapper } from '../loggers/mapper'
import { Time } from '../loggers/times'
import { BODY, ORIGIN, TAPE } from '../memory'
import { Metadata } from '../metadata'
import { countNames } from '../names'
import { INVALID_JSON, Records, TOO_MANY_RECORDS } from '../records'
import { LONE } from '../strings'
import { ARRAY, Node, NODE_BYTES, NULL, OBJECT, REPEATED, STRING, Tape, TEXT } from '../tape'
import { readNext, readText } from '../text'
import { Timestamp } from '../timestamps'
import { copyWellFormed, isUtf8 } from '../utf8'

/** Scans the events of Splunk's HTTP Event Collector: values one after another, each an event or an array of events. */
export function scanHecEvents(bytes: i32): i32 {
  Records.clear()
  const end = BODY + bytes
  let values = 0
  Cursor.at = BODY
  Cursor.skip()
  while (Cursor.at < end) {
    values += 1
    // A body may have millions of arrays without an event.
    if (values > recordsPerRequestMax) return TOO_MANY_RECORDS
    if (!readNext(Cursor.at, end)) return INVALID_JSON
    const at = Cursor.at
    const result = takeEvents()
    if (result !== 0) return result
    Cursor.at = at
    Cursor.skip()
  }
  Records.finish()
  return 0
}

function takeEvents(): i32 {
  if (Node.of(TAPE).kind !== ARRAY) return takeEvent(TAPE)
  const end = Node.of(TAPE).next
  for (let address = TAPE + NODE_BYTES; address < end; address = Node.of(address).next) {
    const result = takeEvent(address)
    if (result !== 0) return result
  }
  return 0
}

function reject(code: i32, where: i32): i32 {
  Metadata.discard()
  return Records.reject(code, where)
}

/** The names of the members of the envelope that have a meaning; 0 for each that it does not have. */
class Envelope {
  static event: i32 = 0
  static fields: i32 = 0
  static time: i32 = 0

  static read(envelope: i32): void {
    Envelope.event = 0
    Envelope.fields = 0
    Envelope.time = 0
    const end = Node.of(envelope).next
    for (let address = envelope + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
      const name = Node.of(address)
      if (name.has(REPEATED)) continue
      const bytes = name.bytes
      if (bytes === 5 && isNamed(name, 'event')) Envelope.event = address
      else if (bytes === 6 && isNamed(name, 'fields')) Envelope.fields = address
      else if (bytes === 4 && isNamed(name, 'time')) Envelope.time = address
    }
  }
}

/** The values of the members of an event that have a meaning; 0 for each that it does not have. */
class Event {
  static message: i32 = 0
  static line: i32 = 0
  static attrs: i32 = 0
  static source: i32 = 0
  static names: i32 = 0
  private static lineName: i32 = 0

  static read(event: i32): void {
    Event.message = 0
    Event.line = 0
    Event.attrs = 0
    Event.source = 0
    Event.names = 0
    if (!isObject(event)) return
    const end = Node.of(event).next
    for (let address = event + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
      const name = Node.of(address)
      if (name.has(REPEATED)) continue
      Event.names += 1
      const bytes = name.bytes
      if (bytes === 7 && isNamed(name, 'message')) Event.message = name.next
      else if (bytes === 4 && isNamed(name, 'line')) {
        Event.line = name.next
        Event.lineName = address
      } else if (bytes === 5 && isNamed(name, 'attrs')) Event.attrs = name.next
      else if (bytes === 6 && isNamed(name, 'source')) Event.source = name.next
    }
  }

  /** The node of the name of `line`. */
  static get nameOfLine(): i32 {
    return Event.lineName
  }

  /** Whether an object has too many names whose members may become those of the record. */
  static hasTooManyNames(event: i32, fields: i32): bool {
    return (
      isTooLong(event) ||
      isTooLong(fields) ||
      isTooLong(Event.message) ||
      isTooLong(Event.line) ||
      isTooLong(Event.attrs)
    )
  }
}

function isTooLong(value: i32): bool {
  return isObject(value) && hasTooManyNames(value)
}

/** Takes an event, and what its envelope says about it. */
function takeEvent(envelope: i32): i32 {
  if (Node.of(envelope).kind !== OBJECT) return reject(codes.WRONG_TYPE, ENTRY)
  if (isTooDeep(envelope)) return reject(codes.TOO_DEEP, ENTRY)
  if (hasTooManyNames(envelope)) return reject(codes.TOO_MANY_NAMES, ENTRY)
  Envelope.read(envelope)
  const event = Envelope.event === 0 ? 0 : Node.of(Envelope.event).next
  const fields = Envelope.fields === 0 ? 0 : Node.of(Envelope.fields).next
  Event.read(event)
  if (Event.hasTooManyNames(event, fields)) return reject(codes.TOO_MANY_NAMES, ENTRY)
  if (event === 0) return reject(codes.MISSING, NO_EVENT)
  const isBlank =
    Node.of(event).kind === NULL || (Node.of(event).kind === STRING && Node.of(event).bytes === 0)
  if (isBlank) return reject(codes.MISSING, BLANK_EVENT)
  const hasFields = fields !== 0 && Node.of(fields).kind === OBJECT
  const names = countNames(envelope) + namesOfEvent() + (hasFields ? countNames(fields) : 0)
  Mapper.begin(names, Node.of(envelope).has(LONE))
  const record = Mapper.record
  const hasTime = Envelope.time !== 0 && Time.readSeconds(Node.of(Node.of(Envelope.time).next))
  if (hasTime) record.add(constants.named(constants.TIMESTAMP, isoNode()))
  addEvent(record, event)
  if (hasFields) record.addAllFree(fields)
  Mapper.map()
  const kept = Mapper.kept
  const end = Node.of(envelope).next
  for (let address = envelope + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    if (Node.of(address).has(REPEATED)) continue
    if (address !== Envelope.event && address !== Envelope.fields && address !== Envelope.time)
      kept.addFree(address)
  }
  if (fields !== 0 && !hasFields) kept.addFree(Envelope.fields)
  if (Envelope.time !== 0 && !hasTime) kept.addFree(Envelope.time)
  return Mapper.take()
}

function isoNode(): i32 {
  const node = Tape.end
  const start = Texts.end
  Texts.end = Time.writeIso(start)
  Tape.add(TEXT, start, Texts.end)
  return node
}

/** At most: the names of an event, and of the objects in it whose members may become its own. */
function namesOfEvent(): i32 {
  return Event.names + namesAt(Event.message) + namesAt(Event.line) + namesAt(Event.attrs)
}

function namesAt(value: i32): i32 {
  return isObject(value) ? countNames(value) : 0
}

function isObject(value: i32): bool {
  return value !== 0 && Node.of(value).kind === OBJECT
}

function addEvent(record: Members, event: i32): void {
  if (Node.of(event).kind !== OBJECT) {
    const isString = Node.of(event).kind === STRING
    record.addFree(constants.named(constants.MESSAGE, isString ? event : jsonNode(event)))
    return
  }
  const message = Event.message
  const line = Event.line
  // Splunk's library for JavaScript has the fields of a message there.
  if (isObject(message)) {
    record.addAllFree(message)
    addOthers(record, event, false)
    if (line !== 0) record.addFree(Event.nameOfLine)
    return
  }
  // Docker's logging driver has the message there, or its fields if it is JSON.
  const hasLine = line !== 0 && (Node.of(line).kind === STRING || Node.of(line).kind === OBJECT)
  if (message !== 0 || !hasLine || Event.source === 0) {
    record.addAllFree(event)
    return
  }
  if (Node.of(line).kind === STRING) record.addFree(constants.named(constants.MESSAGE, line))
  else record.addAllFree(line)
  if (isObject(Event.attrs)) record.addAllFree(Event.attrs)
  addOthers(record, event, true)
}

/** Adds the members but `message` and `line`, and `attrs`. */
function addOthers(record: Members, event: i32, isDocker: bool): void {
  const end = Node.of(event).next
  for (let address = event + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    if (name.has(REPEATED) || isNamed(name, 'message') || isNamed(name, 'line')) continue
    if (!isDocker || !isNamed(name, 'attrs')) record.addFree(address)
  }
}

/** The JSON of a value, as a string. */
function jsonNode(value: i32): i32 {
  const node = Tape.end
  Metadata.writeValue(value, Texts.end)
  Tape.add(TEXT, Metadata.start, Metadata.end)
  Texts.end = Metadata.end
  return node
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
  const hasTime = time.kind === STRING && Timestamp.read(time.start, time.end)
  const timeUs = Timestamp.us
  const metadata = TAPE + 2 * NODE_BYTES
  const names = countNames(metadata)
  const message = Tape.end
  Tape.add(TEXT, 0, 0)
  const end = BODY + bytes
  for (let at = BODY; Line.find(at, end); at = Line.next) {
    const line = Node.of(message)
    line.start = Line.start
    line.end = Line.end
    if (!isUtf8(Line.start, Line.end)) {
      Texts.clear()
      line.start = Texts.end
      line.end = copyWellFormed(Texts.end, Line.start, Line.end)
    }
    Draft.clear()
    Draft.hasTime = hasTime
    Draft.timeUs = timeUs
    Draft.set(columns.level, constants.levelNode(0))
    Draft.set(columns.message, message)
    Metadata.use(Node.of(metadata))
    Metadata.names = names
    const result = Records.take()
    if (result !== 0) return result
  }
  Records.finish()
  return 0
}
