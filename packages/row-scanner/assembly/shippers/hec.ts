import * as codes from '../codes'
import * as columns from '../columns'
import { Draft } from '../draft'
import { ENTRY } from '../errors'
import { recordsPerRequestMax } from '../limits'
import { Line } from '../lines'
import { literal } from '../literals'
import { LOG } from '../loggers/levels'
import { memberOf, named } from '../loggers/members'
import { jsonOf, kept, Mapper, record, takeEach } from '../loggers/mapper'
import { Time } from '../loggers/times'
import { levelNode } from '../loggers/words'
import { BODY, ORIGIN, TAPE } from '../memory'
import { Metadata } from '../metadata'
import { Names } from '../names'
import { INVALID_JSON, Records, TOO_MANY_RECORDS } from '../records'
import { Node, NODE_BYTES, NULL, OBJECT, STRING, Tape, TEXT } from '../tape'
import { readNext, readText, Text } from '../text'
import { Timestamp } from '../timestamps'
import { copyWellFormed, isUtf8 } from '../utf8'

const TIMESTAMP = literal('timestamp')
const EVENT = literal('event')
const FIELDS = literal('fields')
const TIME = literal('time')
const MESSAGE = literal('message')
const LINE = literal('line')
const ATTRS = literal('attrs')
const SOURCE = literal('source')

/** Scans the events of Splunk's HTTP Event Collector: values one after another, each an event or an array of events. */
export function scanHecEvents(bytes: i32): i32 {
  Records.clear()
  const end = BODY + bytes
  let result = 0
  let at = Text.skip(BODY)
  for (let values = 0; at < end && result === 0; values += 1) {
    // A body may have millions of arrays without an event.
    if (values === recordsPerRequestMax) return TOO_MANY_RECORDS
    at = readNext(at, end)
    if (at === 0) return INVALID_JSON
    at = Text.skip(at)
    result = takeEach(TAPE, takeEvent)
  }
  Records.finish()
  return result
}

/** Takes an event, and what its envelope says about it. */
function takeEvent(envelope: i32): i32 {
  if (Node.of(envelope).kind !== OBJECT) return Records.reject(codes.WRONG_TYPE, ENTRY)
  const event = memberOf(envelope, EVENT)
  if (event === 0) return Records.reject(codes.MISSING, ENTRY, 'has no event')
  const value = Node.of(event)
  const isBlank = value.kind === NULL || (value.kind === STRING && value.bytes === 0)
  if (isBlank) return Records.reject(codes.MISSING, ENTRY, 'has a blank event')
  let fields = memberOf(envelope, FIELDS)
  if (!isObject(fields)) fields = 0
  let time = memberOf(envelope, TIME)
  if (time !== 0 && !Time.read(Node.of(time))) time = 0
  Mapper.begin(envelope)
  if (time !== 0) record.add(named(TIMESTAMP, time))
  if (value.kind === OBJECT) addEvent(event)
  else record.add(named(MESSAGE, value.kind === STRING ? event : jsonOf(event)))
  if (fields !== 0) record.addAll(fields)
  Mapper.map()
  kept.addAll(envelope, event, fields, time)
  return Mapper.take()
}

function isObject(value: i32): bool {
  return value !== 0 && Node.of(value).kind === OBJECT
}

function addEvent(event: i32): void {
  const message = memberOf(event, MESSAGE)
  const line = message === 0 && memberOf(event, SOURCE) !== 0 ? memberOf(event, LINE) : 0
  const isText = line !== 0 && Node.of(line).kind === STRING
  // Docker's logging driver has the message there, or its fields if it is JSON.
  if (isText || isObject(line)) {
    const attrs = memberOf(event, ATTRS)
    if (isText) record.add(named(MESSAGE, line))
    else record.addAll(line)
    if (isObject(attrs)) record.addAll(attrs)
    record.addAll(event, line, attrs)
  } else {
    // Splunk's library for JavaScript has the fields of a message there.
    const isMessage = isObject(message)
    if (isMessage) record.addAll(message)
    record.addAll(event, isMessage ? message : 0)
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
  lineMetadata = TAPE + 2 * NODE_BYTES
  const message = Tape.end
  Tape.add(TEXT, 0, 0)
  const line = Node.of(message)
  Draft.clear()
  Draft.hasTime = time.kind === STRING && Timestamp.read(time.start, time.end)
  Draft.timeUs = Timestamp.us
  Draft.set(columns.level, levelNode(LOG))
  let result = 0
  for (Line.begin(bytes); result === 0 && Line.find();) {
    const isText = isUtf8(Line.start, Line.end)
    line.start = isText ? Line.start : Names.mark
    line.end = isText ? Line.end : copyWellFormed(Names.mark, Line.start, Line.end)
    Draft.set(columns.message, message)
    Metadata.faults = 0
    result = Records.take(writeLineMetadata)
  }
  Records.finish()
  return result
}

let lineMetadata: i32 = 0

function writeLineMetadata(): void {
  Metadata.addMembers(lineMetadata)
}
