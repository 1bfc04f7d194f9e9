import { NEWLINE } from './bytes'
import { Cursor } from './cursor'
import { takeEntry, timestampEnd, timestampStart } from './entry'
import { Errors } from './errors'
import { Field, fieldAfter } from './fields'
import { Ids } from './ids'
import { entriesPerRequestMax } from './limits'
import { newlineFrom } from './lines'
import { Literal, literal } from './literals'
import { BODY, TAPE } from './memory'
import { Records } from './records'
import { Rows } from './rows'
import { malformation, malformedLine } from './shippers/bulk'
import { ARRAY, Node, NODE_BYTES, OBJECT, REPEATED } from './tape'
import { readText, Text } from './text'
import { Wire } from './wire'

export * from './memory'
export { useWords } from './loggers/words'
export { scanLokiJson } from './loki/json'
export { scanLoki } from './loki/protobuf'
export { setSeed } from './names'
export { scanOtlp, scanOtlpJson } from './otlp/request'
export { scanBulk } from './shippers/bulk'
export { scanDatadog } from './shippers/datadog'
export { scanHecEvents, scanHecLines } from './shippers/hec'

/** What a body is. `kinds` in `src/scanner.ts` has the same order. */
const INVALID_JSON: i32 = 0
const SINGLE: i32 = 1
const BATCH: i32 = 2
const OTLP: i32 = 3
/** Neither an object nor an array. */
const OTHER: i32 = 4
/** An object whose "logs" is not an array. */
const WRONG_LOGS: i32 = 5

/** The number of entries in the body, valid or not. */
let entries: i32 = 0

const numbers = <i32>memory.data(13 * 4)

/** Writes what is left of a scan, in the order of `outcome` in `src/scanner.ts`. @returns its place */
export function outcome(): i32 {
  Rows.pack()
  store<i32>(numbers, entries)
  store<i32>(numbers, Records.count, 4)
  store<i32>(numbers, Rows.count, 8)
  store<i32>(numbers, Rows.end, 12)
  store<i32>(numbers, Records.pieces, 16)
  store<i32>(numbers, Errors.count, 20)
  store<i32>(numbers, Ids.counter - 1, 24)
  store<i32>(numbers, timestampStart, 28)
  store<i32>(numbers, timestampEnd, 32)
  store<i32>(numbers, malformation, 36)
  store<i32>(numbers, malformedLine, 40)
  store<i32>(numbers, Wire.fault, 44)
  store<i32>(numbers, Wire.faultAt, 48)
  return numbers
}

/** Adds why the text that was read last is not JSON to the errors. */
export function addFault(): void {
  Errors.addFault(0, Text.start, Text.end)
}

/** Called after JavaScript has written another project to `PROJECT`. @param expiresOn days since 1970 */
export function setStamp(projectBytes: i32, receivedAtMs: i64, expiresOn: i32): void {
  Rows.stamp(projectBytes, receivedAtMs, expiresOn)
}

/** Called after JavaScript has written the first id of another millisecond to `ID`. */
export function restartIds(): void {
  Ids.counter = 0
}

/**
 * Scans the body at `BODY`, which is followed by a zero.
 *
 * @param bytes the length of the body
 * @returns what the body is
 */
export function scan(bytes: i32): i32 {
  clear()
  if (!readText(BODY, BODY + bytes)) return INVALID_JSON
  const kind = Node.of(TAPE).kind
  if (kind === ARRAY) return takeEntries(TAPE)
  return kind === OBJECT ? takeRoot() : OTHER
}

/** Scans the body at `BODY`, which has an entry per line. Lines end with LF or CRLF, optional for the last one. Blank lines do not count. */
export function scanLines(bytes: i32): i32 {
  clear()
  const end = BODY + bytes
  for (let start = BODY; start < end;) {
    const lineEnd = newlineFrom(start, end)
    // The text ends at this byte.
    store<u8>(lineEnd, 0)
    Cursor.at = start
    Cursor.skip()
    if (Cursor.at < lineEnd) takeLine(start, lineEnd)
    if (lineEnd < end) store<u8>(lineEnd, NEWLINE)
    start = lineEnd + 1
  }
  return BATCH
}

function clear(): void {
  entries = 0
  Rows.clear()
  Errors.clear()
}

function takeLine(start: i32, end: i32): void {
  const index = entries
  entries += 1
  if (index >= entriesPerRequestMax) return
  if (readText(start, end)) takeEntry(TAPE, index)
  else Errors.addFault(index, start, end)
}

/** Takes an object that is an entry, has "logs" with entries, or has records of OTLP. */
function takeRoot(): i32 {
  let logs = 0
  let hasResourceLogs = false
  let isLikeEntry = false
  const end = Node.of(TAPE).next
  for (let address = TAPE + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    if (name.has(REPEATED)) continue
    if (Literal.of(LOGS).isName(name)) logs = name.next
    else if (Literal.of(RESOURCE_LOGS).isName(name)) hasResourceLogs = true
    else if (isOfEveryEntry(name)) isLikeEntry = true
  }
  if (logs !== 0) return Node.of(logs).kind === ARRAY ? takeEntries(logs) : WRONG_LOGS
  if (hasResourceLogs && !isLikeEntry) return OTLP
  entries = 1
  takeEntry(TAPE, 0)
  return SINGLE
}

const LOGS = literal('logs')
const RESOURCE_LOGS = literal('resourceLogs')

function isOfEveryEntry(name: Node): bool {
  const field = fieldAfter(-1, name)
  return field !== 0 && Field.of(field).isRequired
}

function takeEntries(array: i32): i32 {
  const end = Node.of(array).next
  for (let address = array + NODE_BYTES; address < end; address = Node.of(address).next) {
    // More entries are only counted.
    if (entries < entriesPerRequestMax) takeEntry(address, entries)
    entries += 1
  }
  return BATCH
}
