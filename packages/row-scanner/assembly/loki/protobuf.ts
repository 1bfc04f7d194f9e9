import { BODY, TAPE } from '../memory'
import { ANY_BYTES, field, INT64, message, MESSAGE, PRESENT, READ_EACH, readFields } from '../messages'
import { readMessage, UINT32 } from '../messages'
import { hashOf, Names } from '../names'
import { Records } from '../records'
import { integerOf } from '../scalars'
import { ESCAPED } from '../strings'
import { NAME, Node, NODE_BYTES, NULL, Tape, TEXT } from '../tape'
import { Wire } from '../wire'
import { readLabelSet } from './label-set'
import { labels, pairs, Stream } from './stream'

// The nodes of a stream and of a line, by their places.
const LABELS: i32 = 0
const HAS_LINES: i32 = 1
const SECONDS: i32 = 0
const NANOS: i32 = 1
const LINE: i32 = 2

const PAIR: i32 = message()
const TIME: i32 = message()
const ENTRY: i32 = message()
// Labels may follow the lines, so a stream is read twice.
const STREAM: i32 = message()
const LINES: i32 = message()
const PUSH_REQUEST: i32 = message()

const NANOS_PER_S: i64 = 1_000_000_000
/** Seconds around the years that a line may have. Nanoseconds add at most two. */
const SECONDS_MIN: i64 = -4
const SECONDS_MAX: i64 = 9_214_646_404

/**
 * Scans a push request in Protocol Buffers.
 *
 * @param bytes the length of the body at `BODY`
 * @param hasRecords whether lines are JSON records
 * @returns 0, or why the request is rejected
 */
export function scanLoki(bytes: i32, hasRecords: bool): i32 {
  Records.clear()
  Stream.hasRecords = hasRecords
  Names.clear()
  Tape.end = TAPE
  Wire.begin(BODY, BODY + bytes)
  readFields(PUSH_REQUEST, 0)
  return Records.close()
}

function readStream(_target: i32, _source: i32): void {
  const start = Wire.at
  const names = Names.mark
  const nodes = addNodes(2)
  readMessage(STREAM, nodes, 0)
  if (Node.of(nodes + HAS_LINES * NODE_BYTES).kind !== NULL) {
    const text = Node.of(nodes)
    Stream.begin()
    Stream.end(text.kind === NULL || readLabelSet(text, labels))
    Wire.at = start
    readMessage(LINES, 0, 0)
  }
  Names.rewind(names)
  Tape.end = nodes
}

/** Adds nodes without values. */
function addNodes(count: i32): i32 {
  const nodes = Tape.end
  for (let i = 0; i < count; i += 1) Tape.add(NULL, 0, 0)
  return nodes
}

function readLine(_target: i32, _source: i32): void {
  if (!Stream.isValid) {
    Wire.bytes()
    return Wire.check(Stream.rejectLine())
  }
  Stream.beginLine()
  const nodes = addNodes(3)
  readMessage(ENTRY, nodes, 0)
  if (Wire.fault !== 0) return
  pairs.numberRepeated()
  const line = nodes + LINE * NODE_BYTES
  Node.of(line).head = TEXT
  Wire.check(Stream.takeLine(nanosOf(nodes), line))
}

/** Times before 1970 are larger than any other one. */
function nanosOf(nodes: i32): u64 {
  const seconds = min(max(integerOf(nodes + SECONDS * NODE_BYTES), SECONDS_MIN), SECONDS_MAX)
  return seconds * NANOS_PER_S + <i32>integerOf(nodes + NANOS * NODE_BYTES)
}

/** Reads structured metadata. */
function readPair(_target: i32, _source: i32): void {
  const address = addNodes(2)
  const name = Node.of(address)
  readMessage(PAIR, address, 0)
  Node.of(address + NODE_BYTES).head = TEXT
  name.head = NAME | ESCAPED | hashOf(name.start, name.end)
  if (!pairs.put(address)) Tape.end = address
}

field(PAIR, 1, 'name', ANY_BYTES, 0)
field(PAIR, 2, 'value', ANY_BYTES, 1)
field(TIME, 1, 'seconds', INT64, SECONDS)
field(TIME, 2, 'nanos', UINT32, NANOS)
field(ENTRY, 1, 'timestamp', MESSAGE, 0, TIME)
field(ENTRY, 2, 'line', ANY_BYTES, LINE)
field(ENTRY, 3, 'structuredMetadata', READ_EACH, 0, changetype<i32>(readPair))
field(STREAM, 1, 'labels', ANY_BYTES, LABELS)
field(STREAM, 2, 'entries', PRESENT, HAS_LINES)
field(LINES, 2, 'entries', READ_EACH, 0, changetype<i32>(readLine))
field(PUSH_REQUEST, 1, 'streams', READ_EACH, 0, changetype<i32>(readStream))
