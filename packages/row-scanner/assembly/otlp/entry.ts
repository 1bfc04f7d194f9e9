// How a record becomes a row.
import * as codes from '../codes'
import * as columns from '../columns'
import { Decoded, Draft } from '../draft'
import { fieldOf } from '../fields'
import { Literal, literal } from '../literals'
import { isExact, levelOf, LOG, OTEL, PINO, readLevelNumber, readLevelText } from '../loggers/levels'
import { levelNode, toLower } from '../loggers/words'
import { COMMON, MESSAGE, SCRATCH } from '../memory'
import { Metadata } from '../metadata'
import { Names } from '../names'
import { Records } from '../records'
import { integerOf, writeScalar } from '../scalars'
import { BYTES, CLEAN, DOUBLE, HEX, INTEGER, Node, NODE_BYTES, REPEATED, Tape, TEXT } from '../tape'
import { isEqual, QUOTE, ZERO } from '../bytes'
import * as parts from './parts'
import { Origin, takeText } from './request'
import { close } from './values'

const EXCEPTION_STACK: i32 = literal('exception.stacktrace')
const URL_FULL: i32 = literal('url.full')
const URL_PATH: i32 = literal('url.path')

/** The contract has the years up to 2261. */
const END_NS: u64 = 9_214_646_400_000_000_000
const NS_PER_US: u64 = 1_000

/** Makes a row of the record that was read, or rejects it. @returns 0, or why the request is rejected */
export function takeRecord(): i32 {
  const attributes = valueOf(parts.ATTRIBUTES)
  const body = valueOf(parts.BODY)
  close(attributes)
  close(body)
  Draft.clear()
  Draft.set(columns.service, Origin.service)
  Draft.set(columns.environment, Origin.environment)
  takeAttributes(attributes)
  takeTimes()
  Draft.set(columns.level, takeLevel())
  dropZeros(parts.TRACE_ID)
  dropZeros(parts.SPAN_ID)
  leaveOut(parts.BODY)
  Draft.set(columns.message, messageOf(body))
  return Records.take(writeMetadata)
}

/** What the records of a resource have in common stays, and members of the record go. */
function writeMetadata(): void {
  Metadata.reserve(Origin.bytes)
  parts.prune(parts.RECORD, true)
  if (Node.of(valueOf(parts.BODY)).isContainer) {
    const name = parts.nameOf(parts.RECORD, parts.BODY)
    name.head &= ~REPEATED
    Metadata.addMember(changetype<i32>(name))
    name.head |= REPEATED
  }
  Metadata.reserve(-Origin.bytes)
  Metadata.addWritten(COMMON, Origin.end)
}

function valueOf(place: i32): i32 {
  return parts.valueOf(parts.RECORD, place)
}

function leaveOut(place: i32): void {
  parts.nameOf(parts.RECORD, place).head |= REPEATED
}

function takeAttributes(attributes: i32): void {
  const end = Node.of(attributes).next
  for (let address = attributes + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    const bytes = name.bytes
    if ((bytes !== 8 && bytes !== 20) || name.has(REPEATED)) continue
    if (Literal.of(URL_FULL).isName(name)) takeText(name, columns.url)
    else if (Literal.of(URL_PATH).isName(name)) takeText(name, columns.pathname)
    else if (Literal.of(EXCEPTION_STACK).isName(name)) takeText(name, columns.stack)
  }
}

/** Leaves a time out of the metadata if the column or the other time says the same. */
function takeTimes(): void {
  const time = <u64>integerOf(valueOf(parts.TIME))
  const observed = <u64>integerOf(valueOf(parts.OBSERVED_TIME))
  if (isTime(time) && time % NS_PER_US === 0) leaveOut(parts.TIME)
  if (observed === time) leaveOut(parts.OBSERVED_TIME)
  const taken = isTime(time) ? time : observed
  Draft.hasTime = isTime(taken)
  Draft.timeUs = taken / NS_PER_US
}

function isTime(time: u64): bool {
  return time !== 0 && time < END_NS
}

/** Leaves the severity out of the metadata if it says no more than the level. @returns the node of the level */
function takeLevel(): i32 {
  let reading = readLevelNumber(OTEL, <i32>integerOf(valueOf(parts.SEVERITY_NUMBER)))
  if (isExact(reading)) leaveOut(parts.SEVERITY_NUMBER)
  Decoded.read(Node.of(valueOf(parts.SEVERITY_TEXT)))
  const bytes = Decoded.end - Decoded.start
  if (reading === 0 && bytes > 0) reading = readLevelText(PINO, Decoded.start, Decoded.end)
  const level = levelNode(reading === 0 ? LOG : levelOf(reading))
  const word = Node.of(level)
  if (bytes !== word.bytes) return level
  toLower(Decoded.start, bytes, SCRATCH)
  if (isEqual(SCRATCH, word.start, bytes)) leaveOut(parts.SEVERITY_TEXT)
  return level
}

/** Leaves out an id of zeros, which stand for no id. */
function dropZeros(place: i32): void {
  const node = Node.of(valueOf(place))
  const zero: u8 = node.kind === HEX ? 0 : ZERO
  const end = node.end
  for (let at = node.start; at < end; at += 1) if (load<u8>(at) !== zero) return
  leaveOut(place)
}

/** @returns the node of a string; 0 for an empty message */
function messageOf(body: i32): i32 {
  const node = Node.of(body)
  const kind = node.kind
  if (node.isContainer) return jsonOf(body)
  if (kind !== INTEGER && kind !== DOUBLE && node.bytes === 0) {
    const event = valueOf(parts.EVENT_NAME)
    return Node.of(event).isString ? event : 0
  }
  if (node.isString) return body
  if (kind !== INTEGER && kind !== DOUBLE && kind !== BYTES) return addText(node.start, node.end)
  const bytesMax = (fieldOf(columns.message).charactersMax / 4) * 3
  if (kind === BYTES && node.bytes > bytesMax) {
    Metadata.note(codes.TOO_LONG)
    node.end = node.start + bytesMax
  }
  const end = writeScalar(MESSAGE, body)
  return load<u8>(MESSAGE) === QUOTE ? addText(MESSAGE + 1, end - 1) : addText(MESSAGE, end)
}

function addText(start: i32, end: i32): i32 {
  const address = Tape.end
  Tape.add(TEXT, start, end)
  return address
}

/** The JSON of a list, which is also in the metadata. */
function jsonOf(list: i32): i32 {
  Metadata.writeValue(list, Names.mark, 1)
  Names.keep(Metadata.end)
  const node = Node.of(list)
  node.head |= CLEAN
  node.start = Metadata.start
  node.end = Metadata.end
  return addText(node.start, node.end)
}
