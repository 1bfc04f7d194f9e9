import { ID_BYTES, type IdSource, isInexact, parseTimestamp, rowColumns, type RowPrefix } from '@sluice/rows'
import { limits } from '@sluice/schema'
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { columns, writeFields } from './fields.ts'
import { textPlaces, writeTexts } from './otlp-texts.ts'
import { partStart } from './parts.ts'
import { type NotAPromise, type Owned, ownedRows, Rows } from './rows.ts'
import { type Constant, Instance, type Memory, Module } from './web-assembly.ts'

/** The rows that `RowScanner.scan` made of a body. */
export interface ScannedRows<Scope> {
  /** At least one row, in the scanner's memory. */
  readonly rows: Rows<Scope>
  /** For a body that is one entry and not a batch: its new id, and the timestamp that it was sent with. */
  readonly single: { readonly id: string; readonly timestamp: string | undefined } | undefined
}

/** The exports of `assembly/index.ts`: functions, addresses, and sizes in bytes. */
interface Scanner {
  readonly memory: Memory
  readonly setStamp: (rowStartBytes: number, receivedAtBytes: number) => void
  readonly scan: (bytes: number, lines: boolean) => number
  readonly rowsEnd: () => number
  readonly timestampStart: () => number
  readonly timestampEnd: () => number
  readonly FIELDS: Constant
  readonly FIELDS_BYTES_MAX: Constant
  readonly ROW_START: Constant
  readonly ROW_OWN_BYTES_MAX: Constant
  readonly RECEIVED_AT: Constant
  readonly COLUMNS_MAX: Constant
  readonly LEVELS_MAX: Constant
  readonly BODY: Constant
  readonly BODY_BYTES_MAX: Constant
  readonly ROWS: Constant
  readonly SLACK: Constant
  readonly setOrigin: (fieldsBytes: number, metadataBytes: number) => void
  readonly transcode: (from: number, to: number, recordsMax: number) => number
  readonly takenTo: () => number
  readonly linesEnd: () => number
  readonly ORIGIN: Constant
  readonly ORIGIN_BYTES_MAX: Constant
  readonly LOG_RECORDS: Constant
  readonly LOG_RECORDS_BYTES_MAX: Constant
  readonly OTLP_TEXTS: Constant
  readonly OTLP_TEXTS_BYTES_MAX: Constant
}

/** What the records of one scope of OTLP have in common, as JSON: the members of an object, without braces. */
export interface RecordOrigin {
  /** Fields of an entry. */
  readonly fields: string
  /** The last members of its metadata. */
  readonly metadata: string
}

/** What came of the fields of ScopeLogs that `RowScanner.scanRecords` has read. */
export interface ScannedRecords {
  /** The rows of their records. Undefined if they are left to the decoder. */
  readonly rows: Rows<Owned> | undefined
  /** The length of the fields. 0 if the next field is left to the decoder, and its length is not known. */
  readonly bytes: number
}

const PAGE_BYTES = 65_536
/**
 * The scanner leaves a body to the parser, which works in slices, if JavaScript has to write more of its numbers: they cost a hundred
 * times as much as others.
 */
const NUMBERS_MAX = 10_000

/**
 * Makes rows directly from the bytes of a body, in one pass and without an object or a string per value. It takes about a sixth of
 * the CPU time of JSON.parse, the validator and `shapeRow`, and makes almost no garbage. The passes over the bytes are in
 * WebAssembly, which has instructions for sixteen bytes at once (`assembly/`).
 *
 * The scanner only handles ordinary entries. It gives up on a body that has anything else, valid or not, and leaves it to the
 * parser, the validator and `shapeRow`, which define what is correct. The scanner makes exactly the bytes that they make, or
 * nothing.
 */
export class RowScanner {
  readonly #scanner: Scanner
  readonly #memory: Buffer
  readonly #body: number
  readonly #bodyBytesMax: number
  readonly #rows: number
  /** The prefix that is in the scanner's memory. */
  #prefix: RowPrefix = { text: '', receivedAt: '' }
  #prefixBytes = 0
  /** The origin that is in the scanner's memory. */
  #origin: RecordOrigin = { fields: '', metadata: '' }
  /** The message that has a part in the scanner's memory, and where that part begins. */
  #records: Buffer | undefined
  #recordsStart = 0
  /** The length of the fields that were transcoded last. */
  #bytesTaken = 0
  /** The numbers of the current body that JavaScript has written. */
  #numbers = 0

  constructor(ids: Pick<IdSource, 'write'>) {
    const host = {
      writeId: (to: number): void => ids.write(this.#memory, to),
      writeTimestamp: (from: number, fromEnd: number, to: number): number =>
        this.#write(parseTimestamp(this.#text(from, fromEnd)), to),
      writeNumber: (from: number, fromEnd: number, to: number): number => {
        this.#numbers += 1
        if (this.#numbers > NUMBERS_MAX) return 0
        const number = Number(this.#text(from, fromEnd))
        return this.#write(isInexact(number) ? undefined : JSON.stringify(number), to)
      },
      writeDouble: (from: number, to: number): number => {
        const number = this.#memory.readDoubleLE(from)
        const text = JSON.stringify(number)
        return this.#write(Number.isFinite(number) && !text.includes('e') ? text : undefined, to)
      },
    }
    const { entriesPerRequestMax, metadataBytesMax, metadataDepthMax } = limits
    const { exports } = new Instance(new Module(readFileSync(new URL('scanner.wasm', import.meta.url))), {
      host,
      limits: { entriesPerRequestMax, metadataBytesMax, metadataDepthMax },
      columns,
      texts: textPlaces,
    })
    this.#scanner = exports as Scanner
    const { memory, FIELDS, FIELDS_BYTES_MAX, BODY, BODY_BYTES_MAX, ROWS, SLACK } = this.#scanner
    const { COLUMNS_MAX, LEVELS_MAX, ROW_OWN_BYTES_MAX } = this.#scanner
    if (rowColumns.length > COLUMNS_MAX.value || metadataDepthMax > LEVELS_MAX.value) {
      throw new Error(
        `scanner memory too small for ${rowColumns.length} columns or ${metadataDepthMax} levels; see assembly/memory.ts`,
      )
    }
    this.#body = BODY.value
    this.#bodyBytesMax = BODY_BYTES_MAX.value
    this.#rows = ROWS.value
    const rowsBytesMax = 2 * BODY_BYTES_MAX.value + limits.entriesPerRequestMax * ROW_OWN_BYTES_MAX.value
    const bytes = ROWS.value + rowsBytesMax + SLACK.value
    memory.grow(Math.ceil(bytes / PAGE_BYTES) - memory.buffer.byteLength / PAGE_BYTES)
    this.#memory = Buffer.from(memory.buffer)
    writeFields(this.#memory.subarray(0, FIELDS.value + FIELDS_BYTES_MAX.value), FIELDS.value)
    const { OTLP_TEXTS, OTLP_TEXTS_BYTES_MAX } = this.#scanner
    writeTexts(this.#memory.subarray(OTLP_TEXTS.value, OTLP_TEXTS.value + OTLP_TEXTS_BYTES_MAX.value))
  }

  /**
   * Scans a body, and passes its rows to `use`. The rows are in the scanner's memory, which the next scan overwrites. The type
   * parameter `Scope` ties them to this call: they cannot be assigned to a variable outside `use`, and an asynchronous `use`
   * does not compile. `Rows.copy` makes rows that can be kept.
   *
   * @param body UTF-8
   * @param prefix from `makeRowPrefix`; the same object for the same stamp saves time
   * @param isNdjson whether the body has an entry per line, or is one JSON text
   * @returns the result of `use`; undefined if the body is left to the parser
   */
  scan<Result extends NotAPromise>(
    body: Uint8Array,
    prefix: RowPrefix,
    isNdjson: boolean,
    use: <Scope>(scanned: ScannedRows<Scope>) => Result,
  ): Result | undefined {
    if (body.length > this.#bodyBytesMax || !this.#usePrefix(prefix)) return undefined
    this.#memory.set(body, this.#body)
    // The scanner stops at this byte.
    this.#memory[this.#body + body.length] = 0
    this.#numbers = 0
    const count = this.#scanner.scan(body.length, isNdjson)
    if (count === 0) return undefined
    const text = this.#memory.subarray(this.#rows, this.#scanner.rowsEnd())
    return use({ rows: new Rows(Math.abs(count), text), single: count < 0 ? this.#single() : undefined })
  }

  /**
   * Makes rows of records of OTLP in Protocol Buffers: as many as one step should have. The records become lines with entries, which are
   * scanned like a body. As with `scan`, these are exactly the rows that the decoder makes, or nothing.
   *
   * The result follows from the arguments alone, and not from what was scanned before: the pieces of a request are made of these groups,
   * and a retry must have the same pieces.
   *
   * @param at where a field of ScopeLogs begins
   * @param origin the same object for the same origin saves time
   */
  scanRecords(scopeLogs: Buffer, at: number, origin: RecordOrigin, prefix: RowPrefix): ScannedRecords {
    if (!this.#usePrefix(prefix) || !this.#useOrigin(origin))
      return { rows: undefined, bytes: scopeLogs.length - at }
    const start = partStart(scopeLogs, at, this.#scanner.LOG_RECORDS_BYTES_MAX.value)
    const count = this.#transcode(at, this.#useRecords(scopeLogs, start))
    return { rows: count === 0 ? undefined : this.#scanLines(count), bytes: this.#bytesTaken }
  }

  #scanLines(count: number): Rows<Owned> | undefined {
    const end = this.#scanner.linesEnd()
    // A text may end within a character. A quote follows it, so the character is not completed by another text.
    if (!isUtf8(this.#memory.subarray(this.#body, end))) return undefined
    this.#memory[end] = 0
    this.#numbers = 0
    if (this.#scanner.scan(end - this.#body, true) !== count) return undefined
    return ownedRows(count, Buffer.from(this.#memory.subarray(this.#rows, this.#scanner.rowsEnd())))
  }

  /** @param part what is in the scanner's memory */
  #transcode(at: number, part: Buffer): number {
    const { transcode, takenTo, LOG_RECORDS } = this.#scanner
    const from = LOG_RECORDS.value + at - this.#recordsStart
    const count = transcode(from, LOG_RECORDS.value + part.length, limits.entriesPerRequestMax)
    this.#bytesTaken = takenTo() - from
    return count
  }

  /** Writes an origin, unless it is in the memory already. */
  #useOrigin(origin: RecordOrigin): boolean {
    if (origin === this.#origin) return true
    const { ORIGIN, ORIGIN_BYTES_MAX, setOrigin } = this.#scanner
    const fields = origin.fields === '' ? '' : `${origin.fields},`
    const metadata = origin.metadata === '' ? '' : `${origin.metadata},`
    const text = Buffer.from(fields + metadata)
    if (text.length > ORIGIN_BYTES_MAX.value) return false
    this.#memory.set(text, ORIGIN.value)
    const fieldsBytes = Buffer.byteLength(fields)
    setOrigin(fieldsBytes, text.length - fieldsBytes)
    this.#origin = origin
    return true
  }

  /** Writes the part of a message that begins at a place, unless it is in the memory already. @returns the part */
  #useRecords(scopeLogs: Buffer, start: number): Buffer {
    const { LOG_RECORDS, LOG_RECORDS_BYTES_MAX } = this.#scanner
    const part = scopeLogs.subarray(start, start + LOG_RECORDS_BYTES_MAX.value)
    if (scopeLogs !== this.#records || start !== this.#recordsStart) {
      this.#memory.set(part, LOG_RECORDS.value)
      this.#records = scopeLogs
      this.#recordsStart = start
    }
    return part
  }

  #usePrefix(prefix: RowPrefix): boolean {
    if (prefix === this.#prefix) return true
    const { ROW_START, ROW_OWN_BYTES_MAX, RECEIVED_AT, setStamp } = this.#scanner
    const bytesMax = ROW_OWN_BYTES_MAX.value / 2
    if (Buffer.byteLength(prefix.text) > bytesMax || prefix.receivedAt.length > bytesMax) return false
    this.#prefix = prefix
    this.#prefixBytes = this.#memory.write(prefix.text, ROW_START.value)
    setStamp(this.#prefixBytes, this.#memory.write(prefix.receivedAt, RECEIVED_AT.value))
    return true
  }

  #single(): { id: string; timestamp: string | undefined } {
    const id = this.#rows + this.#prefixBytes
    const timestamp = this.#scanner.timestampStart()
    return {
      id: this.#text(id, id + ID_BYTES),
      timestamp: timestamp === 0 ? undefined : this.#text(timestamp, this.#scanner.timestampEnd()),
    }
  }

  #text(from: number, to: number): string {
    return this.#memory.toString('latin1', from, to)
  }

  /** @returns the number of bytes written */
  #write(text: string | undefined, to: number): number {
    return text === undefined ? 0 : this.#memory.write(text, to, 'latin1')
  }
}
