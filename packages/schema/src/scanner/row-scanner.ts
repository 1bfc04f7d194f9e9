import { readFileSync } from 'node:fs'
import { isInexact } from '../exact-json.ts'
import { type IdSource, ID_BYTES } from '../ids.ts'
import { limits } from '../limits.ts'
import { rowColumns, type RowStart } from '../rows.ts'
import { parseTimestamp } from '../timestamps.ts'
import { columns, writeFields } from './fields.ts'
import { type Constant, Instance, type Memory, Module } from './web-assembly.ts'

/** What `RowScanner.scan` makes of a body. */
export interface ScannedRows {
  /** At least one. */
  readonly rows: number
  /** UTF-8, each row a line of ClickHouse's TabSeparated. The scanner's own memory: the next scan writes there again. */
  readonly text: Buffer
  /** Of a body that is an entry, not a batch: the id that it was given, and the timestamp that it came with. */
  readonly single: { readonly id: string; readonly timestamp: string | undefined } | undefined
}

/** What `assembly/index.ts` exports: functions, places in the memory, and sizes in bytes. */
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
}

const PAGE_BYTES = 65_536

/**
 * Makes rows of bodies straight from their bytes, in one pass, without an object or a string for anything in them: a fifth
 * of the time that JSON.parse, the validator and `shapeRow` take, and next to no garbage. The passes over the bytes are
 * WebAssembly, which has instructions for sixteen at once: `packages/schema/assembly`.
 *
 * It knows ordinary entries alone. For all that is out of the ordinary, right or wrong, it gives up on the body, and these
 * three have to say what it is: they define what is right. The scanner gives the very bytes that they give, or nothing.
 */
export class RowScanner {
  readonly #scanner: Scanner
  readonly #memory: Buffer
  readonly #body: number
  readonly #bodyBytesMax: number
  readonly #rows: number
  /** What the rows start with, as it is written in the memory. */
  #start: RowStart = { text: '', receivedAt: '' }
  #startBytes = 0

  constructor(ids: Pick<IdSource, 'write'>) {
    const host = {
      writeId: (to: number): void => ids.write(this.#memory, to),
      writeTimestamp: (from: number, fromEnd: number, to: number): number =>
        this.#write(parseTimestamp(this.#text(from, fromEnd)), to),
      writeNumber: (from: number, fromEnd: number, to: number): number => {
        const number = Number(this.#text(from, fromEnd))
        return this.#write(isInexact(number) ? undefined : JSON.stringify(number), to)
      },
    }
    const { entriesPerBatchMax, metadataBytesMax, metadataDepthMax } = limits
    const { exports } = new Instance(new Module(readFileSync(new URL('scanner.wasm', import.meta.url))), {
      host,
      limits: { entriesPerBatchMax, metadataBytesMax, metadataDepthMax },
      columns,
    })
    this.#scanner = exports as Scanner
    const { memory, FIELDS, FIELDS_BYTES_MAX, BODY, BODY_BYTES_MAX, ROWS, SLACK } = this.#scanner
    const { COLUMNS_MAX, LEVELS_MAX, ROW_OWN_BYTES_MAX } = this.#scanner
    if (rowColumns.length > COLUMNS_MAX.value || metadataDepthMax > LEVELS_MAX.value) {
      throw new Error('the scanner has not enough room: see assembly/memory.ts')
    }
    this.#body = BODY.value
    this.#bodyBytesMax = BODY_BYTES_MAX.value
    this.#rows = ROWS.value
    const rowsBytesMax = 2 * BODY_BYTES_MAX.value + limits.entriesPerBatchMax * ROW_OWN_BYTES_MAX.value
    const bytes = ROWS.value + rowsBytesMax + SLACK.value
    memory.grow(Math.ceil(bytes / PAGE_BYTES) - memory.buffer.byteLength / PAGE_BYTES)
    this.#memory = Buffer.from(memory.buffer)
    writeFields(this.#memory.subarray(0, FIELDS.value + FIELDS_BYTES_MAX.value), FIELDS.value)
  }

  /**
   * @param body UTF-8
   * @param start from `startRows`, and never changed; the same object for the same stamp saves time
   * @param isNdjson whether the body is an entry a line, and not a JSON text
   * @returns undefined for a body that is left to the parser
   */
  scan(body: Uint8Array, start: RowStart, isNdjson: boolean): ScannedRows | undefined {
    if (body.length > this.#bodyBytesMax || !this.#useStart(start)) return undefined
    this.#memory.set(body, this.#body)
    // The scanner stops here.
    this.#memory[this.#body + body.length] = 0
    const rows = this.#scanner.scan(body.length, isNdjson)
    if (rows === 0) return undefined
    return {
      rows: Math.abs(rows),
      text: this.#memory.subarray(this.#rows, this.#scanner.rowsEnd()),
      single: rows < 0 ? this.#single() : undefined,
    }
  }

  #useStart(start: RowStart): boolean {
    if (start === this.#start) return true
    const { ROW_START, ROW_OWN_BYTES_MAX, RECEIVED_AT, setStamp } = this.#scanner
    const bytesMax = ROW_OWN_BYTES_MAX.value / 2
    if (Buffer.byteLength(start.text) > bytesMax || start.receivedAt.length > bytesMax) return false
    this.#start = start
    this.#startBytes = this.#memory.write(start.text, ROW_START.value)
    setStamp(this.#startBytes, this.#memory.write(start.receivedAt, RECEIVED_AT.value))
    return true
  }

  #single(): { id: string; timestamp: string | undefined } {
    const id = this.#rows + this.#startBytes
    const timestamp = this.#scanner.timestampStart()
    return {
      id: this.#text(id, id + ID_BYTES),
      timestamp: timestamp === 0 ? undefined : this.#text(timestamp, this.#scanner.timestampEnd()),
    }
  }

  #text(from: number, to: number): string {
    return this.#memory.toString('latin1', from, to)
  }

  /** @returns how many bytes were written */
  #write(text: string | undefined, to: number): number {
    return text === undefined ? 0 : this.#memory.write(text, to, 'latin1')
  }
}
