import { NEWLINE } from './bytes'
import { Cursor } from './cursor'
import { takeEntry } from './entry'
import { Errors } from './errors'
import { Field, fieldAfter } from './fields'
import { Ids } from './ids'
import { entriesPerRequestMax } from './limits'
import { newlineFrom } from './lines'
import { makeConstants } from './loggers/constants'
import { indexWords } from './loggers/words'
import { BODY, TAPE } from './memory'
import { readRequest as readOtlpJson } from './otlp/json'
import { readRequest as readOtlp } from './otlp/protobuf'
import { Records } from './records'
import { Rows } from './rows'
import { Malformed } from './shippers/bulk'
import { columnOf, lineOf } from './strings'
import { ARRAY, Node, NODE_BYTES, OBJECT, REPEATED } from './tape'
import { readText, Text } from './text'
import { Wire } from './wire'

export {
  BODY,
  BODY_BYTES_MAX,
  COLUMNS_MAX,
  ERRORS,
  FIELDS,
  FIELDS_BYTES_MAX,
  ID,
  ITEMS,
  LETTERS,
  NUMBERINGS,
  ORIGIN,
  ORIGIN_BYTES_MAX,
  PIECES,
  POWERS,
  PROJECT,
  PROJECT_BYTES_MAX,
  ROWS,
  TAPE,
  TAPE_BYTES_MAX,
  WORDS,
  WORDS_MAX,
} from './memory'
export { timestampEnd, timestampStart } from './entry'
export { scanLokiJson } from './loki/json'
export { scanLoki } from './loki/protobuf'
export { setSeed } from './names'
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

export function entryCount(): i32 {
  return entries
}

export function rowCount(): i32 {
  return Rows.count
}

/** The end of the blocks at `ROWS`. */
export function rowsEnd(): i32 {
  Rows.pack()
  return Rows.end
}

export function recordCount(): i32 {
  return Records.count
}

/** The number of pieces at `PIECES`. */
export function pieceCount(): i32 {
  return Records.pieces
}

export function errorCount(): i32 {
  return Errors.count
}

/** What must follow at the place where the body is invalid. */
export function fault(): i32 {
  return Cursor.fault
}

export function faultAt(): i32 {
  return Cursor.at
}

/** The place of the fault in its text, counted from 1. Columns are characters. */
export function faultLine(): i32 {
  return lineOf(Text.start, Cursor.at)
}

export function faultColumn(): i32 {
  return columnOf(Text.start, Cursor.at)
}

export function textEnd(): i32 {
  return Text.end
}

/** Why the body is not the message of the protocol. */
export function messageFault(): i32 {
  return Wire.fault
}

/** The place of the fault in the memory, or the number of the part with a wrong type. */
export function messageFaultAt(): i32 {
  return Wire.faultAt
}

/** Why an action of a bulk request is malformed, and the number of its line. */
export function malformedReason(): i32 {
  return Malformed.reason
}

export function malformedLine(): i32 {
  return Malformed.line
}

/** Called at the start, after JavaScript has written the words of loggers and has set the seed. */
export function useWords(
  names: i32,
  levels: i32,
  environments: i32,
  contractLevels: i32,
  contractEnvironments: i32,
): void {
  indexWords(names, levels, environments)
  makeConstants(contractLevels, contractEnvironments)
}

/** Called after JavaScript has written another project to `PROJECT`. @param expiresOn days since 1970 */
export function setStamp(projectBytes: i32, receivedAtMs: i64, expiresOn: i32): void {
  Rows.stamp(projectBytes, receivedAtMs, expiresOn)
}

/** The last twelve bits of the first number of the id that was written last. */
export function idCounter(): i32 {
  return Ids.counter - 1
}

/** Called after JavaScript has written the first id of another millisecond to `ID`. */
export function restartIds(): void {
  Ids.restart()
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

/**
 * Scans the body at `BODY`: OTLP logs in Protocol Buffers.
 *
 * @returns 0, or why the request is rejected
 */
export function scanOtlp(bytes: i32): i32 {
  Records.clear()
  return readOtlp(bytes)
}

/** Makes records of the body that `scan` has found to be OTLP. @returns 0, or why the request is rejected */
export function scanOtlpJson(): i32 {
  Records.clear()
  return readOtlpJson()
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
    if (isLogs(name)) logs = name.next
    else if (isResourceLogs(name)) hasResourceLogs = true
    else if (isOfEveryEntry(name)) isLikeEntry = true
  }
  if (logs !== 0) return Node.of(logs).kind === ARRAY ? takeEntries(logs) : WRONG_LOGS
  if (hasResourceLogs && !isLikeEntry) return OTLP
  entries = 1
  takeEntry(TAPE, 0)
  return SINGLE
}

/** `logs`, `resource` and `Logs`, as little-endian numbers. */
const LOGS: u32 = 0x73676f6c
const RESOURCE: u64 = 0x656372756f736572
const UPPER_LOGS: u32 = 0x73676f4c

function isLogs(name: Node): bool {
  return name.bytes === 4 && load<u32>(name.start) === LOGS
}

function isResourceLogs(name: Node): bool {
  return name.bytes === 12 && load<u64>(name.start) === RESOURCE && load<u32>(name.start + 8) === UPPER_LOGS
}

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
