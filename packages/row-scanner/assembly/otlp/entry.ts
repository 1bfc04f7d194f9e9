// How a record becomes a row.
import { isEqual, QUOTE, ZERO } from '../bytes'
import * as columns from '../columns'
import { Decoded, Draft, isSameText, NS_PER_US } from '../draft'
import { fieldOf } from '../fields'
import { isExact, levelOf, LOG, OTEL, PINO, readLevelNumber, readLevelText } from '../loggers/levels'
import { NAME_SET_BYTES, NameSet } from '../loggers/name-set'
import { findEnvironment, levelNode, toLower } from '../loggers/words'
import { COMMON, SCRATCH } from '../memory'
import { Metadata } from '../metadata'
import { Names } from '../names'
import { hasAtMostCharacters, Records } from '../records'
import { integerOf } from '../scalars'
import { CLEAN, Node, Tape, TEXT } from '../tape'
import * as parts from './request'
import { leaveOut, Origin, valueOf } from './request'
import { close } from './values'

/** The names of attributes that become columns. Of the environment, the current name and the earlier one. */
const NAMES = NameSet.make(
  memory.data(NAME_SET_BYTES, 16),
  'service.name deployment.environment.name deployment.environment url.full url.path exception.stacktrace',
)
const SERVICE: i32 = 0
const ENVIRONMENT: i32 = 1
const EARLIER_ENVIRONMENT: i32 = 2
const URL: i32 = 3
const PATHNAME: i32 = 4
const STACK: i32 = 5

/** Takes what a resource says about all of its records. */
export function takeResource(): void {
  NAMES.find(valueOf(parts.RESOURCE_ATTRIBUTES))
  Draft.clear()
  takeText(SERVICE, columns.service)
  Origin.service = Draft.valueOf(columns.service)
  Origin.environment = takeEnvironment(NAMES.nameOf(ENVIRONMENT))
  if (Origin.environment === 0) Origin.environment = takeEnvironment(NAMES.nameOf(EARLIER_ENVIRONMENT))
}

/** Finds the environment. Takes the attribute out if it says no more than the column. @param address a name; 0 for none */
function takeEnvironment(address: i32): i32 {
  const value = Node.of(Node.of(address).next)
  if (address === 0 || !value.isString) return 0
  Decoded.read(value)
  const choice = findEnvironment(Decoded.start, Decoded.end)
  if (choice !== 0 && isSameText(value, Node.of(choice))) leaveOut(address)
  return choice
}

/** Takes an attribute out that becomes a column. One that is not a string, or is longer than a column with short texts allows, stays where it is. */
function takeText(place: i32, column: i32): void {
  const name = NAMES.nameOf(place)
  if (name === 0) return
  const value = Node.of(valueOf(name))
  if (!value.isString || value.bytes === 0) return
  if (column !== columns.stack && !hasAtMostCharacters(value, fieldOf(column).charactersMax)) return
  leaveOut(name)
  Draft.set(column, valueOf(name))
}

/** Makes a row of the record that was read, or rejects it. @returns 0, or why the request is rejected */
export function takeRecord(): i32 {
  const attributes = valueOf(parts.ATTRIBUTES)
  const body = valueOf(parts.BODY)
  close(attributes)
  close(body)
  NAMES.find(attributes)
  Draft.clear()
  Draft.set(columns.service, Origin.service)
  Draft.set(columns.environment, Origin.environment)
  takeText(URL, columns.url)
  takeText(PATHNAME, columns.pathname)
  takeText(STACK, columns.stack)
  takeTimes()
  Draft.set(columns.level, takeLevel())
  dropZeros(parts.TRACE_ID)
  dropZeros(parts.SPAN_ID)
  if (!Node.of(body).isContainer) leaveOut(parts.BODY)
  Draft.set(columns.message, messageOf(body))
  return Records.take(writeMetadata)
}

/** What the records of a resource have in common stays, and members of the record go. */
function writeMetadata(): void {
  Metadata.reserve(Origin.bytes)
  parts.prune(parts.RECORD, true)
  Metadata.reserve(-Origin.bytes)
  Metadata.addWritten(COMMON, Origin.end)
}

/** Leaves a time out of the metadata if the column or the other time says the same. */
function takeTimes(): void {
  const time = <u64>integerOf(valueOf(parts.TIME))
  const observed = <u64>integerOf(valueOf(parts.OBSERVED_TIME))
  if (!Draft.setTime(time)) Draft.setTime(observed)
  else if (time % NS_PER_US === 0) leaveOut(parts.TIME)
  if (observed === time) leaveOut(parts.OBSERVED_TIME)
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
function dropZeros(id: i32): void {
  const node = Node.of(valueOf(id))
  const end = node.end
  for (let at = node.start; at < end; at += 1) if (load<u8>(at) !== ZERO) return
  leaveOut(id)
}

/** @returns the node of a string; 0 for an empty message */
function messageOf(body: i32): i32 {
  const node = Node.of(body)
  if (node.isContainer) {
    // Its JSON is also in the metadata.
    Metadata.writeValue(body, Names.mark, 1)
    Names.keep(Metadata.end)
    node.head |= CLEAN
    node.start = Metadata.start
    node.end = Metadata.end
    return Tape.add(TEXT, node.start, node.end)
  }
  const quotes = !node.isString && load<u8>(node.start) === QUOTE ? 1 : 0
  if (node.bytes > 2 * quotes)
    return node.isString ? body : Tape.add(TEXT, node.start + quotes, node.end - quotes)
  const event = valueOf(parts.EVENT_NAME)
  return Node.of(event).isString ? event : 0
}
