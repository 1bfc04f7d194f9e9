import { type IdSource, ID_BYTES } from '../ids.ts'
import { limits } from '../limits.ts'
import { rowColumns, type RowStart } from '../rows.ts'
import { isPlainUtc, parseTimestamp } from '../timestamps.ts'
import {
  BACKSLASH,
  characterAt,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  LOWER_U,
  NEWLINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  PLAIN,
  QUOTE,
  SHORT_ESCAPE,
  TAB,
  UNESCAPED,
  writeCharacter,
} from './bytes.ts'
import { Cursor } from './cursor.ts'
import { type Field, FieldGuesser, LEVEL, MESSAGE, METADATA, TIMESTAMP } from './fields.ts'
import { MetadataCopier } from './metadata-copier.ts'

/** What `RowScanner.scan` makes of a body. */
export interface ScannedRows {
  /** At least one. */
  readonly rows: number
  /** UTF-8, each row a line of ClickHouse's TabSeparated. The scanner's own memory: the next scan writes there again. */
  readonly text: Buffer
  /** Of a body that is an entry, not a batch: the id that it was given, and the timestamp that it came with. */
  readonly single: { readonly id: string; readonly timestamp: string | undefined } | undefined
}

/** Larger bodies are left to the parser: few are, and the memory here is five times this. */
const BODY_BYTES_MAX = 1_048_576
/** More than a row has that is not from the body: the columns that the server adds, a timestamp, tabs. */
const ROW_OWN_BYTES_MAX = 1_024
/** From here on the runtime copies faster than a loop. */
const LONG_BYTES = 40

/**
 * Where in the memory everything is, the body first. Nothing takes more than twice its own text: a backslash in metadata,
 * two bytes of JSON, becomes four; nothing else grows more, and no number grows.
 */
const METADATA_COPY = BODY_BYTES_MAX + 1
const ROWS = METADATA_COPY + 2 * BODY_BYTES_MAX
const ROW_START = ROWS + 2 * BODY_BYTES_MAX + limits.entriesPerBatchMax * ROW_OWN_BYTES_MAX
const MEMORY_BYTES = ROW_START + ROW_OWN_BYTES_MAX

/** In the place of a text's start: the field is not there; or it is, and has no text here, being null or the metadata. */
const ABSENT = -1
const WITHOUT_TEXT = -2

const LOGS = Buffer.from('"logs"')
const NULL_TEXT = Buffer.from('null')

/**
 * Makes rows of bodies straight from their bytes, in one pass, without an object or a string for anything in them: half of
 * the time that JSON.parse, the validator and `shapeRow` take, and next to no garbage.
 *
 * It knows ordinary entries alone. For all that is out of the ordinary, right or wrong, it gives up on the body, and these
 * three have to say what it is: they define what is right. The scanner gives the very bytes that they give, or nothing.
 */
export class RowScanner {
  readonly #memory = Buffer.allocUnsafeSlow(MEMORY_BYTES)
  readonly #cursor = new Cursor(this.#memory)
  readonly #metadata = new MetadataCopier(this.#cursor, METADATA_COPY)
  readonly #fields = new FieldGuesser()
  readonly #ids: Pick<IdSource, 'write'>
  /** What the rows start with, as it is written in the memory. */
  #start: RowStart = { text: '', receivedAt: '' }
  #startEnd = ROW_START
  /** By column, of the entry at hand: where the text of its field starts and ends, and whether it has escapes. */
  readonly #starts = new Int32Array(rowColumns.length)
  readonly #ends = new Int32Array(rowColumns.length)
  readonly #escaped = new Uint8Array(rowColumns.length)
  /** Where the rows end. */
  #end = ROWS

  constructor(ids: Pick<IdSource, 'write'>) {
    this.#ids = ids
  }

  /**
   * @param body UTF-8
   * @param start from `startRows`, and never changed; the same object for the same stamp saves time
   * @param isNdjson whether the body is an entry a line, and not a JSON text
   * @returns undefined for a body that is left to the parser
   */
  scan(body: Uint8Array, start: RowStart, isNdjson: boolean): ScannedRows | undefined {
    if (body.length > BODY_BYTES_MAX || !this.#useStart(start)) return undefined
    this.#memory.set(body)
    // Every loop ends here.
    this.#memory[body.length] = 0
    this.#cursor.at = 0
    this.#end = ROWS
    const isSingle = !isNdjson && this.#cursor.next() === OPEN_BRACE && !this.#isAtLogs()
    const rows = isNdjson ? this.#scanLines(body) : isSingle ? Number(this.#scanEntry()) : this.#scanBatch()
    this.#cursor.next()
    if (rows === 0 || this.#cursor.at !== body.length) return undefined
    return {
      rows,
      text: this.#memory.subarray(ROWS, this.#end),
      single: isSingle ? this.#single() : undefined,
    }
  }

  #useStart(start: RowStart): boolean {
    if (start === this.#start) return true
    if (Buffer.byteLength(start.text) > ROW_OWN_BYTES_MAX / 2) return false
    this.#start = start
    this.#startEnd = ROW_START + this.#memory.write(start.text, ROW_START)
    return true
  }

  #single(): { id: string; timestamp: string | undefined } {
    const idStart = ROWS + this.#startEnd - ROW_START
    const timestampStart = this.#starts[TIMESTAMP] ?? ABSENT
    return {
      id: this.#memory.toString('latin1', idStart, idStart + ID_BYTES),
      timestamp:
        timestampStart < 0
          ? undefined
          : this.#memory.toString('latin1', timestampStart, this.#ends[TIMESTAMP]),
    }
  }

  /** Whether the object that the cursor is at begins with "logs": it is a batch, then. Leaves the cursor where it is. */
  #isAtLogs(): boolean {
    const start = this.#cursor.at
    const isBatch = this.#cursor.skip() === QUOTE && this.#cursor.has(LOGS, this.#cursor.at)
    this.#cursor.at = start
    return isBatch
  }

  /** Scans an array of entries, or one in an object with "logs". @returns how many they are; 0 to give up */
  #scanBatch(): number {
    const cursor = this.#cursor
    const isWrapped = cursor.next() === OPEN_BRACE
    if (isWrapped) {
      cursor.skip()
      cursor.at += LOGS.length
      if (cursor.next() !== COLON) return 0
      cursor.skip()
    }
    if (cursor.next() !== OPEN_BRACKET) return 0
    let rows = 0
    for (let byte = COMMA; byte !== CLOSE_BRACKET; rows += 1) {
      if (byte !== COMMA || rows === limits.entriesPerBatchMax) return 0
      if (cursor.skip() !== OPEN_BRACE || !this.#scanEntry()) return 0
      byte = cursor.next()
    }
    if (isWrapped && cursor.skip() !== CLOSE_BRACE) return 0
    cursor.at += 1
    return rows
  }

  /** Scans lines, each of them an entry or blank. @returns how many entries they are; 0 to give up */
  #scanLines(body: Uint8Array): number {
    const cursor = this.#cursor
    let rows = 0
    for (let lineEnd = -1; cursor.next() === OPEN_BRACE; rows += 1) {
      // An entry begins behind the end of the line before it, and ends on its own.
      if (cursor.at <= lineEnd || rows === limits.entriesPerBatchMax) return 0
      lineEnd = body.indexOf(NEWLINE, cursor.at)
      if (lineEnd === -1) lineEnd = body.length
      if (!this.#scanEntry() || cursor.at > lineEnd) return 0
    }
    return rows
  }

  /** Scans the entry that the cursor is at into a row, and leaves the cursor behind it. */
  #scanEntry(): boolean {
    const cursor = this.#cursor
    const starts = this.#starts
    starts.fill(ABSENT)
    this.#metadata.clear()
    this.#fields.start()
    for (let byte = COMMA; byte !== CLOSE_BRACE; byte = cursor.next()) {
      if (byte !== COMMA || cursor.skip() !== QUOTE) return false
      const field = this.#fields.next(cursor, cursor.at + 1)
      if (field === undefined || starts[field.column] !== ABSENT) return false
      cursor.at += field.name.length + 2
      if (cursor.next() !== COLON) return false
      cursor.skip()
      if (!this.#scanValue(field)) return false
    }
    cursor.at += 1
    return (starts[LEVEL] ?? ABSENT) >= 0 && (starts[MESSAGE] ?? ABSENT) >= 0 && this.#writeRow()
  }

  #scanValue(field: Field): boolean {
    const cursor = this.#cursor
    const { column } = field
    const byte = this.#memory[cursor.at]
    if (byte === QUOTE) return column !== METADATA && this.#scanText(field)
    this.#starts[column] = WITHOUT_TEXT
    if (byte === OPEN_BRACE) return column === METADATA && this.#metadata.copy()
    if (!cursor.has(NULL_TEXT, cursor.at)) return false
    cursor.at += NULL_TEXT.length
    return true
  }

  #scanText({ column, bytesMax, choices }: Field): boolean {
    const memory = this.#memory
    const start = this.#cursor.at + 1
    let at = start
    let escaped = 0
    for (;;) {
      while (PLAIN[memory[at] ?? 0] === 1) at += 1
      const byte = memory[at]
      if (byte === QUOTE) break
      // What is escaped is looked at when it is written; the zero at the end of the body must not be passed.
      if (byte !== BACKSLASH || memory[at + 1] === 0) return false
      escaped = 1
      at += 2
    }
    this.#starts[column] = start
    this.#ends[column] = at
    this.#escaped[column] = escaped
    this.#cursor.at = at + 1
    return at - start <= bytesMax && (choices === undefined || this.#isOneOf(choices, start, at))
  }

  #isOneOf(choices: readonly Uint8Array[], start: number, end: number): boolean {
    for (const choice of choices) {
      if (choice.length === end - start && this.#cursor.has(choice, start)) return true
    }
    return false
  }

  #writeRow(): boolean {
    const memory = this.#memory
    this.#copy(ROW_START, this.#startEnd)
    this.#ids.write(memory, this.#end)
    this.#end += ID_BYTES
    memory[this.#end++] = TAB
    if (!this.#writeTimestamp()) return false
    for (let column = TIMESTAMP + 1; column < METADATA; column += 1) {
      memory[this.#end++] = TAB
      if (!this.#writeText(column)) return false
    }
    memory[this.#end++] = TAB
    this.#copy(METADATA_COPY, this.#metadata.end)
    memory[this.#end++] = NEWLINE
    return true
  }

  #writeTimestamp(): boolean {
    const start = this.#starts[TIMESTAMP] ?? ABSENT
    const end = this.#ends[TIMESTAMP] ?? 0
    if (start >= 0 && isPlainUtc(this.#memory, start, end)) {
      this.#copy(start, end)
      return true
    }
    const time =
      start < 0 ? this.#start.receivedAt : parseTimestamp(this.#memory.toString('latin1', start, end))
    if (time === undefined) return false
    this.#end += this.#memory.write(time, this.#end, 'latin1')
    return true
  }

  #writeText(column: number): boolean {
    const start = this.#starts[column] ?? ABSENT
    if (start < 0) return true
    const end = this.#ends[column] ?? 0
    if (this.#escaped[column] === 1) return this.#writeUnescaped(start, end)
    this.#copy(start, end)
    return true
  }

  #writeUnescaped(start: number, textEnd: number): boolean {
    const memory = this.#memory
    let end = this.#end
    for (let at = start; at < textEnd; at += 1) {
      const byte = memory[at] ?? 0
      if (byte !== BACKSLASH) {
        memory[end++] = byte
        continue
      }
      at += 1
      const escape = memory[at] ?? 0
      const character = escape === LOWER_U ? characterAt(memory, at + 1) : UNESCAPED[escape] || -1
      if (character === -1) return false
      if (escape === LOWER_U) at += 4
      if (character === BACKSLASH || character === TAB || character === NEWLINE) {
        memory[end++] = BACKSLASH
        // TabSeparated escapes these three as JSON does.
        memory[end++] = SHORT_ESCAPE[character] ?? 0
      } else end = writeCharacter(memory, end, character)
    }
    this.#end = end
    return true
  }

  #copy(start: number, end: number): void {
    const memory = this.#memory
    if (end - start < LONG_BYTES) {
      for (let from = start, to = this.#end; from < end; from += 1, to += 1) memory[to] = memory[from] ?? 0
    } else memory.copyWithin(this.#end, start, end)
    this.#end += end - start
  }
}
