import { isDigit, ZERO } from '../bytes'
import * as codes from '../codes'
import { Decoded } from '../draft'
import { LINE } from '../errors'
import { memberOf } from '../loggers/members'
import { BODY, TAPE } from '../memory'
import { countNames, Names } from '../names'
import { INVALID_JSON, Records, WRONG_SHAPE } from '../records'
import { ARRAY, Node, NODE_BYTES, NULL, NUMBER, OBJECT, REPEATED, STRING, Tape } from '../tape'
import { readText } from '../text'
import { LABELS_BYTES_MAX, NAMES_MAX, rejectForLabels, Stream } from './stream'

/** The digits of a number that is read. */
const DIGITS_MAX: i32 = 19

/**
 * Scans a push request: `{"streams": [{"stream": {"app": "x"}, "values": [["<nanoseconds>", "<line>", {"<name>": "<value>"}]]}]}`.
 *
 * @param bytes the length of the body at `BODY`, which a zero follows
 * @returns 0, or why the request is rejected
 */
export function scanLokiJson(bytes: i32): i32 {
  Records.clear()
  if (!readText(BODY, BODY + bytes)) return INVALID_JSON
  if (Node.of(TAPE).kind !== OBJECT) return WRONG_SHAPE
  Stream.clear()
  const streams = memberOf(TAPE, 'streams')
  if (!isArray(streams)) return WRONG_SHAPE
  const end = Node.of(streams).next
  for (let address = streams + NODE_BYTES; address < end; address = Node.of(address).next) {
    const result = takeStream(address)
    if (result !== 0) return result
  }
  Records.finish()
  return 0
}

/** Whether a value is an array, or null in its place: it is as if it had no elements. */
function isArray(address: i32): bool {
  if (address === 0) return false
  const kind = Node.of(address).kind
  return kind === ARRAY || kind === NULL
}

/** Lines that are not found must not be acknowledged: clients drop what was accepted. */
function takeStream(stream: i32): i32 {
  if (Node.of(stream).kind !== OBJECT) return WRONG_SHAPE
  const values = memberOf(stream, 'values')
  if (!isArray(values)) return WRONG_SHAPE
  const end = Node.of(values).next
  if (values + NODE_BYTES === end) return 0
  const names = Names.mark
  const nodes = Tape.end
  const hasLabels = readLabels(memberOf(stream, 'stream'))
  const namesOfLines = Names.mark
  const nodesOfLines = Tape.end
  for (let line = values + NODE_BYTES; line < end; line = Node.of(line).next) {
    const result = hasLabels ? takeLine(line) : rejectForLabels()
    if (result !== 0) return result
    Names.rewind(namesOfLines)
    Tape.end = nodesOfLines
  }
  Names.rewind(names)
  Tape.end = nodes
  return 0
}

function readLabels(object: i32): bool {
  Stream.beginLabels()
  if (object !== 0) {
    if (Node.of(object).kind !== OBJECT || countNames(object) > NAMES_MAX) return false
    const end = Node.of(object).next
    for (let name = object + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next)
      if (!Node.of(name).has(REPEATED)) Stream.addLabel(name)
  }
  return Stream.endLabels() < LABELS_BYTES_MAX
}

/** @param address the node of an array with a time, a line, and perhaps structured metadata */
function takeLine(address: i32): i32 {
  Stream.beginLine()
  const end = Node.of(address).next
  const time = address + NODE_BYTES
  if (Node.of(address).kind !== ARRAY || time >= end) return rejectLine()
  const message = Node.of(time).next
  if (message >= end || Node.of(message).kind !== STRING) return rejectLine()
  const metadata = Node.of(message).next
  const hasMetadata = metadata < end
  if (hasMetadata && (Node.of(metadata).kind !== OBJECT || Node.of(metadata).next < end)) return rejectLine()
  const isTime = readNanos(Node.of(time))
  return Stream.takeLine(nanos, isTime, message, hasMetadata && !isEmpty(metadata) ? metadata : 0)
}

function isEmpty(object: i32): bool {
  return Node.of(object).next === object + NODE_BYTES
}

function rejectLine(): i32 {
  return Records.reject(codes.WRONG_TYPE, LINE)
}

let nanos: u64 = 0

/** Reads digits. Clients send a string, because the number has more digits than a double. */
function readNanos(time: Node): bool {
  nanos = 0
  if (time.kind === STRING) Decoded.read(time)
  else if (time.kind === NUMBER) {
    Decoded.start = time.start
    Decoded.end = time.end
  } else return false
  const end = Decoded.end
  const digits = end - Decoded.start
  if (digits === 0 || digits > DIGITS_MAX) return false
  for (let at = Decoded.start; at < end; at += 1) {
    const byte = load<u8>(at)
    if (!isDigit(byte)) return false
    nanos = nanos * 10 + (byte - ZERO)
  }
  return true
}
