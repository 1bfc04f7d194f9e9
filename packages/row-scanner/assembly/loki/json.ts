import { isDigit, ZERO } from '../bytes'
import * as codes from '../codes'
import { Decoded } from '../draft'
import { LINE } from '../errors'
import { literal } from '../literals'
import { memberOf } from '../loggers/members'
import { BODY, TAPE } from '../memory'
import { INVALID_JSON, Records, WRONG_SHAPE } from '../records'
import { ARRAY, Node, NODE_BYTES, NULL, NUMBER, OBJECT, STRING } from '../tape'
import { readText } from '../text'
import { labels, pairs, Stream } from './stream'

const STREAMS = literal('streams')
const STREAM = literal('stream')
const VALUES = literal('values')
/** The digits of a number that is read. */
const DIGITS_MAX: i32 = 19

/**
 * Scans a push request: `{"streams": [{"stream": {"app": "x"}, "values": [["<nanoseconds>", "<line>", {"<name>": "<value>"}]]}]}`.
 *
 * @param bytes the length of the body at `BODY`, which a zero follows
 * @param hasRecords whether lines are JSON records
 * @returns 0, or why the request is rejected
 */
export function scanLokiJson(bytes: i32, hasRecords: bool): i32 {
  Records.clear()
  Stream.hasRecords = hasRecords
  if (!readText(BODY, BODY + bytes)) return INVALID_JSON
  if (Node.of(TAPE).kind !== OBJECT) return WRONG_SHAPE
  const streams = memberOf(TAPE, STREAMS)
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
  const values = memberOf(stream, VALUES)
  if (!isArray(values)) return WRONG_SHAPE
  const end = Node.of(values).next
  if (values + NODE_BYTES === end) return 0
  const object = memberOf(stream, STREAM)
  const isObject = object !== 0 && Node.of(object).kind === OBJECT
  Stream.begin()
  if (isObject) labels.addAll(object)
  Stream.end(isObject || object === 0)
  for (let line = values + NODE_BYTES; line < end; line = Node.of(line).next) {
    const result = takeLine(line)
    if (result !== 0) return result
  }
  return 0
}

/** @param address the node of an array with a time, a line, and perhaps structured metadata */
function takeLine(address: i32): i32 {
  if (!Stream.isValid) return Stream.rejectLine()
  const end = Node.of(address).next
  const time = address + NODE_BYTES
  if (Node.of(address).kind !== ARRAY || time >= end) return Records.reject(codes.WRONG_TYPE, LINE)
  const message = Node.of(time).next
  if (message >= end || Node.of(message).kind !== STRING) return Records.reject(codes.WRONG_TYPE, LINE)
  const metadata = Node.of(message).next
  const isObject = metadata < end && Node.of(metadata).kind === OBJECT && Node.of(metadata).next === end
  if (metadata < end && !isObject) return Records.reject(codes.WRONG_TYPE, LINE)
  Stream.beginLine()
  if (isObject) pairs.addAll(metadata)
  return Stream.takeLine(nanosOf(Node.of(time)), message)
}

/** Reads digits. Clients send a string, because the number has more digits than a double. @returns more than any time if it is another value */
function nanosOf(time: Node): u64 {
  Decoded.read(time)
  const end = Decoded.end
  const digits = end - Decoded.start
  const isText = time.kind === STRING || time.kind === NUMBER
  if (!isText || digits === 0 || digits > DIGITS_MAX) return u64.MAX_VALUE
  let nanos: u64 = 0
  for (let at = Decoded.start; at < end; at += 1) {
    const byte = load<u8>(at)
    if (!isDigit(byte)) return u64.MAX_VALUE
    nanos = nanos * 10 + (byte - ZERO)
  }
  return nanos
}
