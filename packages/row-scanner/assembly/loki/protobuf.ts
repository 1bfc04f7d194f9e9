import { BODY, TAPE } from '../memory'
import { hashOf, Names } from '../names'
import { INVALID_MESSAGE, Records } from '../records'
import { ESCAPED } from '../strings'
import { NAME, Node, OBJECT, Tape, TEXT } from '../tape'
import { copyWellFormed, isUtf8 } from '../utf8'
import { bytesTag, varintTag, Wire } from '../wire'
import { readLabelSet } from './label-set'
import { NAMES_MAX, rejectForLabels, Stream } from './stream'

// Fields of logproto.PushRequest, StreamAdapter, EntryAdapter, Timestamp and LabelPairAdapter.
const STREAM: i32 = bytesTag(1)
const STREAM_LABELS: i32 = bytesTag(1)
const STREAM_ENTRY: i32 = bytesTag(2)
const ENTRY_TIME: i32 = bytesTag(1)
const ENTRY_LINE: i32 = bytesTag(2)
const ENTRY_METADATA: i32 = bytesTag(3)
const TIME_SECONDS: i32 = varintTag(1)
const TIME_NANOS: i32 = varintTag(2)
const PAIR_NAME: i32 = bytesTag(1)
const PAIR_VALUE: i32 = bytesTag(2)

const NANOS_PER_S: i64 = 1_000_000_000
/** Seconds around the years that a line may have. Nanoseconds add at most two. */
const SECONDS_MIN: i64 = -4
const SECONDS_MAX: i64 = 9_214_646_404

/**
 * Scans a push request in Protocol Buffers.
 *
 * @param bytes the length of the body at `BODY`
 * @returns 0, or why the request is rejected
 */
export function scanLoki(bytes: i32): i32 {
  Records.clear()
  Names.clear()
  Tape.end = TAPE
  Stream.clear()
  Wire.begin(BODY, BODY + bytes)
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag !== STREAM) {
      Wire.skip(tag)
      continue
    }
    const outer = Wire.enter()
    const names = Names.mark
    const nodes = Tape.end
    const result = takeStream()
    if (result !== 0) return result
    Names.rewind(names)
    Tape.end = nodes
    Wire.leave(outer)
  }
  if (Wire.fault !== 0) return INVALID_MESSAGE
  Records.finish()
  return 0
}

function takeStream(): i32 {
  const start = Wire.at
  // The labels may follow the lines. The last ones count.
  let labels = 0
  let labelsEnd = 0
  let hasLines = false
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === STREAM_LABELS) {
      labels = Wire.bytes()
      labelsEnd = Wire.at
    } else {
      if (tag === STREAM_ENTRY) hasLines = true
      Wire.skip(tag)
    }
  }
  if (Wire.fault !== 0 || !hasLines) return 0
  Stream.beginLabels()
  const hasLabels = labels === 0 || readLabelSet(labels, labelsEnd)
  Stream.endLabels()
  const names = Names.mark
  const nodes = Tape.end
  Wire.at = start
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag !== STREAM_ENTRY) {
      Wire.skip(tag)
      continue
    }
    const outer = Wire.enter()
    const result = hasLabels ? takeLine() : rejectForLabels()
    if (result !== 0) return result
    Names.rewind(names)
    Tape.end = nodes
    Wire.leave(outer)
  }
  return 0
}

let nanos: i64 = 0

function takeLine(): i32 {
  Stream.beginLine()
  nanos = 0
  let line = 0
  let lineEnd = 0
  let count = 0
  const metadata = Tape.end
  Tape.add(OBJECT, 0, 0)
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === ENTRY_TIME) readTime()
    else if (tag === ENTRY_LINE) {
      line = Wire.bytes()
      lineEnd = Wire.at
    } else if (tag === ENTRY_METADATA) {
      count += 1
      readPair(count <= NAMES_MAX + 1)
    } else Wire.skip(tag)
  }
  if (Wire.fault !== 0) return 0
  Node.of(metadata).next = Tape.end
  const message = addText(TEXT, line, lineEnd)
  return Stream.takeLine(nanos, nanos >= 0, message, count > 0 ? metadata : 0)
}

/** Negative before 1970. */
function readTime(): void {
  let seconds: i64 = 0
  let rest: i64 = 0
  const outer = Wire.enter()
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === TIME_SECONDS) seconds = Wire.varint()
    else if (tag === TIME_NANOS) rest = <i32>Wire.varint()
    else Wire.skip(tag)
  }
  Wire.leave(outer)
  nanos = min(max(seconds, SECONDS_MIN), SECONDS_MAX) * NANOS_PER_S + rest
}

/** Reads structured metadata. Its texts are needed only if the line may become a record. */
function readPair(isNeeded: bool): void {
  let name = 0
  let nameEnd = 0
  let value = 0
  let valueEnd = 0
  const outer = Wire.enter()
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === PAIR_NAME) {
      name = Wire.bytes()
      nameEnd = Wire.at
    } else if (tag === PAIR_VALUE) {
      value = Wire.bytes()
      valueEnd = Wire.at
    } else Wire.skip(tag)
  }
  Wire.leave(outer)
  if (Wire.fault !== 0 || !isNeeded) return
  const address = addName(name, nameEnd)
  addText(TEXT, value, valueEnd)
  Stream.addMetadata(address)
}

/** Adds a name whose bytes may not be UTF-8. @returns its node */
export function addName(start: i32, end: i32): i32 {
  const address = addText(NAME | ESCAPED, start, end)
  const name = Node.of(address)
  name.head |= hashOf(name.start, name.end)
  return address
}

/** Lines of files may have bytes that are not UTF-8, which become U+FFFD. */
export function addText(head: i32, start: i32, end: i32): i32 {
  const address = Tape.end
  if (isUtf8(start, end)) Tape.add(head, start, end)
  else {
    const copy = Names.mark
    Names.keep(copyWellFormed(copy, start, end))
    Tape.add(head, copy, Names.end)
  }
  return address
}
