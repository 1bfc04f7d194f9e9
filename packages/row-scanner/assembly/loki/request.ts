// Push requests of Loki, in JSON and in Protocol Buffers. The mapping is documented in docs/sources/loki.md.
import * as codes from '../codes'
import * as columns from '../columns'
import { Decoded, Draft, isSameText, NS_PER_US } from '../draft'
import { ENTRY as AT_LINE } from '../errors'
import { fieldOf } from '../fields'
import { Literal, literal } from '../literals'
import { isExact, levelOf, LOG, PINO, readLevelText, wholeNumber } from '../loggers/levels'
import { kept, Mapper, NAMES_MAX, record, takeEach } from '../loggers/mapper'
import { memberOf, Members, MEMBERS_BYTES, named } from '../loggers/members'
import { NAME_SET_BYTES, NameSet } from '../loggers/name-set'
import { Use } from '../loggers/uses'
import { findEnvironment, levelNode } from '../loggers/words'
import { BODY, TAPE, UNKNOWN } from '../memory'
import {
  ANY_BYTES,
  field,
  INT64,
  message,
  MESSAGE,
  READ_EACH,
  readFields,
  readMessage,
  UINT32,
} from '../messages'
import { Metadata } from '../metadata'
import { hashOf, Names } from '../names'
import { hasAtMostCharacters, INVALID_JSON, Records, WRONG_SHAPE } from '../records'
import { integerOf, keepNumber, setInteger } from '../scalars'
import { ESCAPED, LONE } from '../strings'
import { ARRAY, DIGITS, NAME, Node, NODE_BYTES, NULL, NUMBER } from '../tape'
import { OBJECT, STRING, Tape, TEXT, USED } from '../tape'
import { readInner, readText } from '../text'
import { Wire } from '../wire'
import { readLabelSet } from './label-set'

const STREAMS = literal('streams')
const STREAM = literal('stream')
const VALUES = literal('values')
const NOT_A_LINE: string = 'must be an array of a time, a line and structured metadata'
const INVALID_LABELS: string = 'has a stream without valid labels, such as {"app": "x"} in JSON or {app="x"}'

/**
 * Scans a push request: `{"streams": [{"stream": {"app": "x"}, "values": [["<nanoseconds>", "<line>", {"<name>": "<value>"}]]}]}`.
 *
 * @param bytes the length of the body at `BODY`, which a zero follows
 * @param hasRecords whether lines are JSON records
 * @returns 0, or why the request is rejected
 */
export function scanLokiJson(bytes: i32, hasRecords: bool): i32 {
  Records.clear()
  withRecords = hasRecords
  if (!readText(BODY, BODY + bytes)) return INVALID_JSON
  const result = takeElements(TAPE, STREAMS, takeStream)
  Records.finish()
  return result
}

/** Takes what an array in an object has, or null in its place. Lines that are not found must not be acknowledged: clients drop what was accepted. */
function takeElements(object: i32, name: i32, take: (value: i32) => i32): i32 {
  const array = Node.of(object).kind === OBJECT ? memberOf(object, name) : 0
  if (array !== 0 && Node.of(array).kind === NULL) return 0
  return array !== 0 && Node.of(array).kind === ARRAY ? takeEach(array, take) : WRONG_SHAPE
}

function takeStream(stream: i32): i32 {
  const object = Node.of(stream).kind === OBJECT ? memberOf(stream, STREAM) : 0
  const isObject = object !== 0 && Node.of(object).kind === OBJECT
  beginLabels()
  if (isObject) labels.addAll(object)
  endLabels(isObject || object === 0)
  return takeElements(stream, VALUES, takeLine)
}

/** @param line the node of an array with a time, a line, and perhaps structured metadata */
function takeLine(line: i32): i32 {
  const end = Node.of(line).next
  const time = line + NODE_BYTES
  const text = time < end ? Node.of(time).next : end
  const metadata = text < end ? Node.of(text).next : end
  const isObject = metadata < end && Node.of(metadata).kind === OBJECT && Node.of(metadata).next === end
  const isLine = Node.of(line).kind === ARRAY && text < end && Node.of(text).kind === STRING
  if (!isLine || (metadata < end && !isObject)) return Records.reject(codes.WRONG_TYPE, AT_LINE, NOT_A_LINE)
  beginLine()
  if (isObject) pairs.addAll(metadata)
  // Clients send a string, because the number has more digits than a double.
  const kind = Node.of(time).kind
  Decoded.read(Node.of(time))
  const nanos =
    kind === STRING || kind === NUMBER ? wholeNumber(Decoded.start, Decoded.end, NANOS_DIGITS) : -1
  return takeRecord(nanos, text)
}

// The nodes of a line, by their places.
const SECONDS: i32 = 0
const NANOS: i32 = 1
const LINE: i32 = 2

const PAIR: i32 = message()
const TIME: i32 = message()
const ENTRY: i32 = message()
// Labels may follow the lines, so a stream is read twice.
const LABELS: i32 = message()
const LINES: i32 = message()
const PUSH_REQUEST: i32 = message()

/** As many as a time of the contract has. Larger numbers with so many are negative, and no times. */
const NANOS_DIGITS: i32 = 19
const NANOS_PER_S: i64 = 1_000_000_000
/** Seconds around the years that a line may have. Nanoseconds add at most two. */
const SECONDS_MIN: i64 = -4
const SECONDS_MAX: i64 = 9_214_646_404

/** Scans a push request in Protocol Buffers, as `scanLokiJson` does. */
export function scanLoki(bytes: i32, hasRecords: bool): i32 {
  Records.clear()
  withRecords = hasRecords
  Names.clear()
  Tape.end = TAPE
  Wire.begin(BODY, BODY + bytes)
  readFields(PUSH_REQUEST, 0)
  return Records.close()
}

function readStream(_target: i32, _source: i32): void {
  const start = Wire.at
  const names = Names.mark
  const text = addTexts(1)
  readMessage(LABELS, text, 0)
  beginLabels()
  endLabels(Node.of(text).start === 0 || readLabelSet(Node.of(text), labels))
  Wire.at = start
  readMessage(LINES, 0, 0)
  Names.rewind(names)
  Tape.end = text
}

/** Adds empty texts, which are also zeros. */
function addTexts(count: i32): i32 {
  const nodes = Tape.end
  for (let i = 0; i < count; i += 1) Tape.add(TEXT, 0, 0)
  return nodes
}

function readLine(_target: i32, _source: i32): void {
  const names = Names.mark
  const nodes = addTexts(3)
  beginLine()
  readMessage(ENTRY, nodes, 0)
  // Times before 1970 are larger than any other one.
  const seconds = min(max(integerOf(nodes + SECONDS * NODE_BYTES), SECONDS_MIN), SECONDS_MAX)
  const nanos = seconds * NANOS_PER_S + <i32>integerOf(nodes + NANOS * NODE_BYTES)
  if (Wire.fault === 0) Wire.check(takeRecord(nanos, nodes + LINE * NODE_BYTES))
  Names.rewind(names)
  Tape.end = nodes
}

/** Reads structured metadata. */
function readPair(_target: i32, _source: i32): void {
  const address = addTexts(2)
  const name = Node.of(address)
  readMessage(PAIR, address, 0)
  name.head = NAME | ESCAPED | hashOf(name.start, name.end)
  if (!pairs.add(address)) Tape.end = address
}

/** The labels of a stream are in the row of each of its lines. Loki's own default is 15 labels. */
const LABELS_MAX: i32 = 64
/** Loki's own limits allow about 46 KiB. */
const LABELS_BYTES_MAX: i32 = 16_384
/** How many numbers are tried for a line, and for the labels of a stream: each of 16,384 short lines may have names that its labels have. */
const NUMBERS_MAX: i32 = 16
const TIME_UNIX_NANO: i32 = literal('timeUnixNano')
const ORIGINAL_LEVEL: i32 = literal('originalLevel')
/** Promtail and Loki write this name if they know none. */
const UNKNOWN_SERVICE: i32 = literal('unknown_service')

/** The names of labels and of structured metadata that may become columns. The first with a usable value counts. */
const ROLES = NameSet.make(
  memory.data(NAME_SET_BYTES, 16),
  'level detected_level severity severity_text service_name service app application app_kubernetes_io_name job environment env deployment_environment deployment_environment_name',
)
const LEVEL_ROLES: i32 = 0
const SERVICE_ROLES: i32 = 4
const ENVIRONMENT_ROLES: i32 = 10
const ROLES_END: i32 = 14

/** The labels of the stream; and after them the structured metadata of the line. */
const labels: Members = changetype<Members>(memory.data(MEMBERS_BYTES))
const pairs: Members = changetype<Members>(memory.data(MEMBERS_BYTES))
/** Whether a line that is a JSON object is read as the record of a logger. Otherwise it stays the message. */
let withRecords: bool = false
/** Whether the stream has valid labels, and how they were repaired. */
let isValid: bool = false
let faults: i32 = 0

/** Begins the labels of a stream. They are added to `labels`. */
function beginLabels(): void {
  labels.clear(UNKNOWN, LABELS_MAX, NUMBERS_MAX)
  Metadata.faults = 0
}

/** Ends the labels. The first that fit stay. */
function endLabels(areValid: bool): void {
  let left = LABELS_BYTES_MAX
  const end = labels.last
  labels.last = labels.first
  for (let at = labels.first; at < end; at += 4) {
    const name = Node.of(load<i32>(at))
    const bytes = name.bytes + Node.of(name.next).bytes
    if (bytes <= left) {
      labels.put(load<i32>(at))
      left -= bytes
    } else Metadata.note(codes.TOO_LARGE)
  }
  isValid = areValid
  faults = Metadata.faults
}

/** Begins a line. Its structured metadata is added to `pairs`. */
function beginLine(): void {
  Mapper.open()
  Metadata.faults = faults
  pairs.clear(labels.last, NAMES_MAX, NUMBERS_MAX)
}

/**
 * Takes the line as the next record.
 *
 * @param nanos since 1970; 0 if the line has no time
 * @param message the node of a string
 * @returns 0, or why the request is rejected
 */
function takeRecord(nanos: u64, message: i32): i32 {
  if (!isValid) return Records.reject(codes.WRONG_TYPE, AT_LINE, INVALID_LABELS)
  if (nanos !== 0 && !Draft.setTime(nanos)) {
    Metadata.note(codes.INVALID_TIMESTAMP)
    nanos = 0
  }
  ROLES.clear()
  for (let at = labels.first; at < labels.last; at += 4) ROLES.note(load<i32>(at))
  for (let at = pairs.first; at < pairs.last; at += 4) ROLES.note(load<i32>(at))
  mapLine(message, nanos / NS_PER_US)
  if (nanos !== 0) Draft.setTime(nanos)
  const level = use(columns.level, LEVEL_ROLES, SERVICE_ROLES)
  use(columns.service, SERVICE_ROLES, ENVIRONMENT_ROLES)
  use(columns.environment, ENVIRONMENT_ROLES, ROLES_END)
  if (Draft.valueOf(columns.level) === 0) Draft.set(columns.level, levelNode(LOG))
  kept.numbersLeft = pairs.numbersLeft
  join(pairs)
  join(labels)
  if (nanos % NS_PER_US !== 0) {
    const digits = Tape.add(DIGITS, 0, 0)
    setInteger(digits, DIGITS, nanos)
    keepNumber(digits)
    kept.add(named(TIME_UNIX_NANO, digits))
  }
  if (level !== 0 && !isExact(reading)) kept.add(named(ORIGINAL_LEVEL, Node.of(level).next))
  const result = Mapper.take()
  // Other lines have the same labels.
  for (let role = 0; role < ROLES_END; role += 1)
    if (ROLES.nameOf(role) !== 0) Node.of(ROLES.nameOf(role)).head &= ~USED
  return result
}

/** Makes the draft of a line, with what it says itself. */
function mapLine(message: i32, timeUs: i64): void {
  const line = withRecords ? recordIn(Node.of(message)) : 0
  const names = line === 0 ? 0 : (Node.of(line).next - line) / NODE_BYTES
  Mapper.clear(names + pairs.count + labels.count)
  Draft.clear()
  if (line === 0) return Draft.set(columns.message, message)
  record.addAll(line)
  Mapper.map(timeUs)
  if (!Use.of(columns.level).isFound) Draft.set(columns.level, 0)
}

/** The node of the object that a line is; 0 if it is none. */
function recordIn(message: Node): i32 {
  if (message.has(LONE)) return 0
  Decoded.read(message)
  const value = readInner(Decoded.start, Decoded.end)
  return value !== 0 && Node.of(value).kind === OBJECT ? value : 0
}

/** Adds members to the metadata, except those that only repeat one: clients repeat labels and records in structured metadata. */
function join(members: Members): void {
  const known = kept.last
  let bits: u64 = 0
  for (let at = kept.first; at < known; at += 4) bits |= bitOf(load<i32>(at))
  for (let at = members.first; at < members.last; at += 4) {
    const name = Node.of(load<i32>(at))
    // If there is a table, it gets each new name: a number could make the same one.
    const isNew = !kept.isIndexed && (bits & bitOf(load<i32>(at))) === 0
    const same = isNew ? 0 : kept.same(load<i32>(at), known)
    // One that is used is compared with those after it, but not written.
    if (same === 0) kept.put(load<i32>(at))
    else if (!name.has(USED) && !isSameText(Node.of(name.next), Node.of(Node.of(same).next)))
      kept.putNumbered(load<i32>(at))
  }
}

/** One bit of a hash tells most names from a few others. */
function bitOf(name: i32): u64 {
  return (<u64>1) << ((<u64>Node.of(name).head >>> 8) & 63)
}

/** Uses the first usable value of some roles for a column, or leaves it out if it says no more than the line. @returns its name; 0 if there is none */
function use(column: i32, role: i32, end: i32): i32 {
  const given = Draft.valueOf(column)
  for (; role < end; role += 1) {
    const node = nodeFor(column, ROLES.valueOf(role))
    if (node === 0) continue
    const isLess = column === columns.level && !isExact(reading)
    if (given !== 0 && (isLess || !isSameText(Node.of(given), Node.of(node)))) return 0
    Draft.set(column, node)
    Node.of(ROLES.nameOf(role)).head |= USED
    return ROLES.nameOf(role)
  }
  return 0
}

/** What the last level says. */
let reading: i32 = 0

/** The node of a column for a value; 0 if it is not usable. */
function nodeFor(column: i32, address: i32): i32 {
  const value = Node.of(address)
  if (address === 0 || !value.isString) return 0
  Decoded.peek(value)
  const start = Decoded.start
  const end = Decoded.end
  if (column === columns.environment) return findEnvironment(start, end)
  if (column === columns.level) {
    reading = readLevelText(PINO, start, end)
    return reading === 0 ? 0 : levelNode(levelOf(reading))
  }
  const isUnknown = start === end || Literal.of(UNKNOWN_SERVICE).isText(start, end)
  return !isUnknown && hasAtMostCharacters(value, fieldOf(column).charactersMax) ? address : 0
}

field(PAIR, 1, 'name', ANY_BYTES, 0)
field(PAIR, 2, 'value', ANY_BYTES, 1)
field(TIME, 1, 'seconds', INT64, SECONDS)
field(TIME, 2, 'nanos', UINT32, NANOS)
field(ENTRY, 1, 'timestamp', MESSAGE, 0, TIME)
field(ENTRY, 2, 'line', ANY_BYTES, LINE)
field(ENTRY, 3, 'structuredMetadata', READ_EACH, 0, changetype<i32>(readPair))
field(LABELS, 1, 'labels', ANY_BYTES, 0)
field(LINES, 2, 'entries', READ_EACH, 0, changetype<i32>(readLine))
field(PUSH_REQUEST, 1, 'streams', READ_EACH, 0, changetype<i32>(readStream))
