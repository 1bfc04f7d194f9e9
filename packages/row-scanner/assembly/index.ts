import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  copy,
  NEWLINE,
  NULL,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  TAB,
} from './bytes'
import * as columns from './columns'
import { Cursor } from './cursor'
import { Field, fieldAfter } from './fields'
import { writeId, writeTimestamp } from './host'
import { entriesPerRequestMax } from './limits'
import { BODY, METADATA, RECEIVED_AT, ROW_START, ROWS } from './memory'
import { Metadata } from './metadata'
import { ABSENT, Text, WITHOUT_TEXT } from './texts'
import { isPlainUtc } from './timestamps'

export {
  BODY,
  BODY_BYTES_MAX,
  COLUMNS_MAX,
  FIELDS,
  FIELDS_BYTES_MAX,
  LEVELS_MAX,
  LOG_RECORDS,
  LOG_RECORDS_BYTES_MAX,
  ORIGIN,
  ORIGIN_BYTES_MAX,
  OTLP_TEXTS,
  OTLP_TEXTS_BYTES_MAX,
  RECEIVED_AT,
  ROW_OWN_BYTES_MAX,
  ROW_START,
  ROWS,
  SLACK,
} from './memory'

export { linesEnd, setOrigin, takenTo, transcode } from './otlp/index'

/** `logs`, the field of an object with a batch of entries, as one little-endian number. */
const LOGS: u32 = 0x73676f6c
/** The length of `"logs"`, including both quotes. */
const LOGS_BYTES: i32 = 6

/** The length of a UUID. */
const ID_BYTES: i32 = 36

let end: i32 = ROWS
let rowStartBytes: i32 = 0
let receivedAtBytes: i32 = 0

/** Called after JavaScript has written another prefix: the lengths of the texts at `ROW_START` and `RECEIVED_AT`. */
export function setStamp(rowStart: i32, receivedAt: i32): void {
  rowStartBytes = rowStart
  receivedAtBytes = receivedAt
}

/**
 * Scans the body at `BODY`, which is followed by a zero, into the rows at `ROWS`.
 *
 * @param bytes the length of the body
 * @param lines whether the body has an entry per line, or is one JSON text
 * @returns the number of rows; -1 for one entry that is not a batch; 0 if the body is left to the parser
 */
export function scan(bytes: i32, lines: bool): i32 {
  Cursor.at = BODY
  end = ROWS
  let rows: i32
  if (lines) rows = scanLines()
  else if (Cursor.next() === OPEN_BRACE && !isAtLogs()) rows = scanEntry() ? -1 : 0
  else rows = scanBatch()
  Cursor.next()
  return Cursor.at === BODY + bytes ? rows : 0
}

/** The end of the rows. */
export function rowsEnd(): i32 {
  return end
}

/** The start of the timestamp in the last entry; 0 if the entry has none. */
export function timestampStart(): i32 {
  const timestamp = Text.of(columns.timestamp)
  return timestamp.isThere ? timestamp.start : 0
}

export function timestampEnd(): i32 {
  return Text.of(columns.timestamp).end
}

/** Whether the object at the cursor begins with "logs", and is therefore a batch. Does not move the cursor. */
function isAtLogs(): bool {
  const start = Cursor.at
  const isBatch =
    Cursor.skip() === QUOTE &&
    load<u32>(Cursor.at + 1) === LOGS &&
    load<u8>(Cursor.at + LOGS_BYTES - 1) === QUOTE
  Cursor.at = start
  return isBatch
}

/** Scans an array of entries, alone or in an object with "logs". @returns their number; 0 to give up */
function scanBatch(): i32 {
  const isWrapped = Cursor.next() === OPEN_BRACE
  if (isWrapped) {
    Cursor.skip()
    Cursor.at += LOGS_BYTES
    if (Cursor.next() !== COLON) return 0
    Cursor.skip()
  }
  if (Cursor.next() !== OPEN_BRACKET) return 0
  let rows = 0
  for (let byte = COMMA; byte !== CLOSE_BRACKET; rows += 1) {
    if (byte !== COMMA || rows === entriesPerRequestMax) return 0
    if (Cursor.skip() !== OPEN_BRACE || !scanEntry()) return 0
    byte = Cursor.next()
  }
  if (isWrapped && Cursor.skip() !== CLOSE_BRACE) return 0
  Cursor.at += 1
  return rows
}

/** Scans lines, each of them an entry or blank. @returns the number of entries; 0 to give up */
function scanLines(): i32 {
  let rows = 0
  let last = BODY
  // The first entry needs no newline before it.
  Cursor.lineEnd = BODY
  for (; Cursor.next() === OPEN_BRACE; rows += 1) {
    if (Cursor.lineEnd < last || rows === entriesPerRequestMax) return 0
    const start = Cursor.at
    if (!scanEntry() || Cursor.lineEnd > start) return 0
    last = Cursor.at
  }
  return rows
}

/** Scans the entry at the cursor into a row, and moves the cursor after it. */
function scanEntry(): bool {
  for (let column = 0; column <= columns.metadata; column += 1) Text.of(column).start = ABSENT
  Metadata.clear()
  let column = -1
  for (let byte = COMMA; byte !== CLOSE_BRACE; byte = Cursor.next()) {
    if (byte !== COMMA || Cursor.skip() !== QUOTE) return false
    Cursor.at += 1
    const field = fieldAfter(column)
    if (field === null) return false
    column = field.column
    if (Text.of(column).start !== ABSENT) return false
    Cursor.at += field.bytes + 1
    if (Cursor.next() !== COLON || !scanValue(field, Cursor.skip())) return false
  }
  Cursor.at += 1
  return Text.of(columns.level).isThere && Text.of(columns.message).isThere && writeRow()
}

function scanValue(field: Field, byte: u8): bool {
  const isMetadata = field.column === columns.metadata
  const text = Text.of(field.column)
  if (byte === QUOTE) {
    return !isMetadata && text.scan() && text.bytes <= field.bytesMax && field.allows(text.start)
  }
  text.start = WITHOUT_TEXT
  if (byte === OPEN_BRACE) return isMetadata && Metadata.copy()
  if (load<u32>(Cursor.at) !== NULL) return false
  Cursor.at += 4
  return true
}

function writeRow(): bool {
  let to = copy(end, ROW_START, rowStartBytes)
  writeId(to)
  to += ID_BYTES
  store<u8>(to, TAB)
  to = writeTime(to + 1)
  if (to === 0) return false
  for (let column = columns.timestamp + 1; column < columns.metadata; column += 1) {
    store<u8>(to, TAB)
    to = Text.of(column).write(to + 1)
    if (to === 0) return false
  }
  store<u8>(to, TAB)
  to = copy(to + 1, METADATA, Metadata.end - METADATA)
  store<u8>(to, NEWLINE)
  end = to + 1
  return true
}

/** @returns the end of the timestamp; 0 if the text is not a timestamp */
function writeTime(to: i32): i32 {
  const timestamp = Text.of(columns.timestamp)
  if (!timestamp.isThere) return copy(to, RECEIVED_AT, receivedAtBytes)
  if (isPlainUtc(timestamp.start, timestamp.end)) return copy(to, timestamp.start, timestamp.bytes)
  const bytes = writeTimestamp(timestamp.start, timestamp.end, to)
  return bytes === 0 ? 0 : to + bytes
}
