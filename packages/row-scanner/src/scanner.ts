import { IDS_PER_MS, type IdSource, rowColumns, type RowPrefix, withCounter } from '@sluice/rows'
import { type EntryError, environments, levels, limits } from '@sluice/schema'
import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type BulkItem, describeMalformation, readItems } from './bulk.ts'
import { readErrors, type ScanError } from './errors.ts'
import { describeFault } from './faults.ts'
import type { Exports } from './exports.ts'
import { columns, writeFields } from './fields.ts'
import { messageFault } from './messages.ts'
import { writePowers } from './powers.ts'
import {
  InvalidJson,
  InvalidMessage,
  MalformedAction,
  type RejectedBody,
  TooManyRecords,
  WrongShape,
} from './rejections.ts'
import { type NotAPromise, type Owned, ownedRows, Rows } from './rows.ts'
import { Instance, Module } from './web-assembly.ts'
import { writeWords } from './words.ts'

/** What a body is, in the order of `assembly/index.ts`. */
const kinds = ['invalid', 'entry', 'batch', 'otlp', 'other', 'wrong-logs'] as const

/** What the scanner made of a body. */
export interface Scanned<Scope> {
  /** `entry`: one entry, not in a batch. `other`: neither an object nor an array. `wrong-logs`: "logs" is not an array. */
  readonly kind: Exclude<(typeof kinds)[number], 'invalid'>
  /** The number of entries, valid or not. If there are more than a request may have, the others are only counted. */
  readonly entries: number
  /** The rows of the valid entries, in the scanner's memory. */
  readonly rows: Rows<Scope>
  /** The errors of the others. */
  readonly errors: readonly ScanError[]
  /** The new id of a valid `entry`, and the timestamp that it was sent with. */
  readonly single: { readonly id: string; readonly timestamp: string | undefined } | undefined
}

/** Rows that are stored together. */
export interface Piece {
  readonly rows: Rows<Owned>
  /** The records that the rows were made of: from this index … */
  readonly start: number
  /** … to the one before this index. */
  readonly end: number
}

/** What the scanner made of a body with the records of a shipper. */
export interface ScannedRecords {
  /** The number of records, valid or not. */
  readonly records: number
  /** The error of each rejected record, by the index of the record. */
  readonly rejected: ReadonlyMap<number, EntryError>
  readonly pieces: readonly Piece[]
}

/** What the scanner made of a bulk request: a record for each item. */
export interface ScannedBulk extends ScannedRecords {
  readonly items: readonly BulkItem[]
}

/** What the URL of a request says about all of its lines. */
export interface LinesOrigin {
  /** ISO 8601 */
  readonly timestamp?: string
  readonly metadata: Readonly<Record<string, unknown>>
}

/** Why the records of a body are not read, as in `assembly/records.ts`. */
const TOO_MANY_RECORDS = 1
const ROWS_TOO_LARGE = 2
const INVALID_JSON = 3
const INVALID_MESSAGE = 4
const WRONG_SHAPE = 5

const PAGE_BYTES = 65_536
/** A `Piece` in `assembly/records.ts`: the end of its rows, their number, the number of records up to its end. */
const PIECE_BYTES = 12

/** When a piece ends: `chunkLimits` of the API. */
export interface PieceLimits {
  readonly rowsMax: number
  readonly bytesMax: number
}

/**
 * Makes rows from the bytes of a body, without an object or a string per value. The passes over the bytes are in WebAssembly, which has
 * instructions for sixteen bytes at once (`assembly/`): one checks that the body is JSON and notes where its values are, the others take only
 * the values that they need. Each is linear in the length of the body, whatever it has.
 */
export class Scanner {
  readonly #exports: Exports
  readonly #memory: Buffer
  readonly #body: number
  /** The prefix that is in the scanner's memory. */
  #prefix: RowPrefix | undefined
  readonly #ids: Pick<IdSource, 'reserve'>
  readonly #nowMs: () => number
  /** The id in the scanner's memory, and when it was reserved. */
  #id = ''
  #idMs = Number.NEGATIVE_INFINITY
  /** The body in the scanner's memory, if `scan` has found that it is OTLP. */
  #otlp: Uint8Array | undefined

  /** @param ids of rows only @param nowMs the clock of the ids */
  constructor(ids: Pick<IdSource, 'reserve'>, nowMs: () => number, pieces: PieceLimits) {
    this.#ids = ids
    this.#nowMs = nowMs
    const { exports } = new Instance(new Module(readFileSync(new URL('scanner.wasm', import.meta.url))), {
      host: {
        renewId: () => this.#writeId(),
        isLowerCase: (from: number, to: number): boolean => {
          const text = this.#memory.toString('utf8', from, to)
          return text === text.toLowerCase()
        },
      },
      limits: {
        ...limits,
        pieceRowsMax: pieces.rowsMax,
        pieceBytesMax: pieces.bytesMax,
        idsPerMs: IDS_PER_MS,
      },
      columns,
    })
    this.#exports = exports as Exports
    const {
      memory,
      setSeed,
      COLUMNS_MAX,
      FIELDS,
      FIELDS_BYTES_MAX,
      BODY,
      BODY_BYTES_MAX,
      TAPE,
      TAPE_BYTES_MAX,
    } = this.#exports
    if (rowColumns.length > COLUMNS_MAX.value || limits.bodyBytesMax > BODY_BYTES_MAX.value)
      throw new Error('the memory of the scanner is too small: see assembly/memory.ts')
    // Reserved, and used only as far as a body needs it.
    memory.grow(
      Math.ceil((TAPE.value + TAPE_BYTES_MAX.value) / PAGE_BYTES) - memory.buffer.byteLength / PAGE_BYTES,
    )
    this.#memory = Buffer.from(memory.buffer)
    this.#body = BODY.value
    writeFields(this.#memory.subarray(0, FIELDS.value + FIELDS_BYTES_MAX.value), FIELDS.value)
    writePowers(this.#memory, this.#exports.POWERS.value)
    setSeed(randomBytes(8).readBigInt64LE())
    const { WORDS, WORDS_MAX, NUMBERINGS, LETTERS } = this.#exports
    const areas = {
      words: WORDS.value,
      wordsMax: WORDS_MAX.value,
      numberings: NUMBERINGS.value,
      letters: LETTERS.value,
    }
    this.#exports.useWords(...writeWords(this.#memory, areas), levels.length, environments.length)
  }

  /**
   * Scans a body, and passes its rows to `use`. The rows are in the scanner's memory, which the next scan overwrites. The type parameter
   * `Scope` ties them to this call: they cannot be assigned to a variable outside `use`, and an asynchronous `use` does not compile. `Rows.copy`
   * makes rows that can be kept.
   *
   * @param body UTF-8, of at most `limits.bodyBytesMax` bytes
   * @param prefix the same object for the same stamp saves time
   * @param isNdjson whether the body has an entry per line, or is one JSON text
   * @throws InvalidJson
   */
  scan<Result extends NotAPromise>(
    body: Uint8Array,
    prefix: RowPrefix,
    isNdjson: boolean,
    use: <Scope>(scanned: Scanned<Scope>) => Result,
  ): Result {
    this.#take(body, prefix)
    const { scan, scanLines, entryCount, errorCount, rowCount, rowsEnd, ERRORS, ROWS } = this.#exports
    const kind = kinds[isNdjson ? scanLines(body.length) : scan(body.length)] ?? 'invalid'
    if (kind === 'invalid') throw new InvalidJson(this.#fault())
    if (kind === 'otlp') this.#otlp = body
    const rows = new Rows(rowCount(), this.#memory.subarray(ROWS.value, rowsEnd()))
    const errors = readErrors(this.#memory, ERRORS.value, errorCount())
    const single = kind === 'entry' && rows.count === 1 ? this.#single() : undefined
    return use({ kind, entries: entryCount(), rows, errors, single })
  }

  /**
   * Scans OTLP logs in Protocol Buffers.
   *
   * @param body of at most `limits.bodyBytesMax` bytes
   * @throws InvalidMessage, TooManyRecords
   */
  scanOtlp(body: Uint8Array, prefix: RowPrefix): ScannedRecords {
    this.#take(body, prefix)
    return this.#records(this.#exports.scanOtlp(body.length))
  }

  /**
   * Scans OTLP logs in JSON. Straight after `scan` has found that the body is OTLP, the body is not read again.
   *
   * @throws InvalidMessage, TooManyRecords
   */
  scanOtlpJson(body: Uint8Array, prefix: RowPrefix): ScannedRecords {
    if (body !== this.#otlp) this.scan(body, prefix, false, () => ({}))
    if (body !== this.#otlp) throw new Error('the body is not OTLP')
    this.#usePrefix(prefix)
    this.#useIds()
    this.#otlp = undefined
    return this.#records(this.#exports.scanOtlpJson())
  }

  /**
   * Scans the bulk request of Elasticsearch.
   *
   * @param body any bytes
   * @param pathIndex the index of actions that name no other
   * @throws MalformedAction, TooManyRecords
   */
  scanBulk(body: Uint8Array, prefix: RowPrefix, pathIndex: string | null): ScannedBulk {
    this.#take(body, prefix)
    const { scanBulk, recordCount, ITEMS } = this.#exports
    const result = scanBulk(body.length, this.#useOrigin(pathIndex), isUtf8(body))
    const scanned = this.#records(result)
    return { ...scanned, items: readItems(this.#memory, ITEMS.value, recordCount()) }
  }

  /**
   * Scans the events of Splunk's HTTP Event Collector.
   *
   * @param body UTF-8
   * @throws InvalidJson, TooManyRecords
   */
  scanHecEvents(body: Uint8Array, prefix: RowPrefix): ScannedRecords {
    this.#take(body, prefix)
    return this.#records(this.#exports.scanHecEvents(body.length))
  }

  /**
   * Scans lines for Splunk's HTTP Event Collector: each is a message.
   *
   * @param body any bytes. What is not UTF-8 becomes U+FFFD
   * @throws TooManyRecords
   */
  scanHecLines(body: Uint8Array, prefix: RowPrefix, { timestamp, metadata }: LinesOrigin): ScannedRecords {
    this.#take(body, prefix)
    return this.#records(
      this.#exports.scanHecLines(body.length, this.#useOrigin([timestamp ?? null, metadata])),
    )
  }

  /**
   * Scans a body of Datadog's logs API.
   *
   * @param body UTF-8
   * @throws InvalidJson, TooManyRecords
   */
  scanDatadog(body: Uint8Array, prefix: RowPrefix): ScannedRecords {
    this.#take(body, prefix)
    return this.#records(this.#exports.scanDatadog(body.length))
  }

  /**
   * Scans a push request of Loki in Protocol Buffers.
   *
   * @param body any bytes, decompressed
   * @throws InvalidMessage, TooManyRecords
   */
  scanLoki(body: Uint8Array, prefix: RowPrefix): ScannedRecords {
    this.#take(body, prefix)
    return this.#records(this.#exports.scanLoki(body.length))
  }

  /**
   * Scans a push request of Loki in JSON.
   *
   * @param body UTF-8
   * @throws InvalidJson, TooManyRecords, WrongShape
   */
  scanLokiJson(body: Uint8Array, prefix: RowPrefix): ScannedRecords {
    this.#take(body, prefix)
    return this.#records(this.#exports.scanLokiJson(body.length))
  }

  /** Puts a body and a prefix into the scanner's memory. */
  #take(body: Uint8Array, prefix: RowPrefix): void {
    this.#usePrefix(prefix)
    this.#useIds()
    this.#otlp = undefined
    this.#memory.set(body, this.#body)
    // The scanner stops at this byte.
    this.#memory[this.#body + body.length] = 0
  }

  /** @returns its length as JSON */
  #useOrigin(origin: unknown): number {
    const { ORIGIN, ORIGIN_BYTES_MAX } = this.#exports
    const bytes = Buffer.from(JSON.stringify(origin))
    if (bytes.length > ORIGIN_BYTES_MAX.value) throw new RangeError('the URL of a request is too long')
    this.#memory.set(bytes, ORIGIN.value)
    this.#memory[ORIGIN.value + bytes.length] = 0
    return bytes.length
  }

  /**
   * Reads what a scan of records has left in the memory. The rows are copied.
   *
   * @param result why the records are not read, if it is not 0
   * @throws RejectedBody
   */
  #records(result: number): ScannedRecords {
    if (result !== 0) throw this.#rejection(result)
    const { recordCount, pieceCount, errorCount, ERRORS, PIECES, ROWS } = this.#exports
    const pieces: Piece[] = []
    let from = ROWS.value
    let start = 0
    for (let i = 0; i < pieceCount(); i += 1) {
      const piece = PIECES.value + i * PIECE_BYTES
      const to = this.#memory.readInt32LE(piece)
      const end = this.#memory.readInt32LE(piece + 8)
      const rows = ownedRows(
        this.#memory.readInt32LE(piece + 4),
        Buffer.from(this.#memory.subarray(from, to)),
      )
      pieces.push({ rows, start, end })
      from = to
      start = end
    }
    const errors = readErrors(this.#memory, ERRORS.value, errorCount())
    const rejected = new Map(errors.map(({ index, ...error }) => [index, error]))
    return { records: recordCount(), rejected, pieces }
  }

  #rejection(result: number): RejectedBody {
    const {
      recordCount,
      messageFault: fault,
      messageFaultAt: at,
      malformedReason,
      malformedLine,
    } = this.#exports
    const records = recordCount()
    switch (result) {
      case TOO_MANY_RECORDS:
        return new TooManyRecords('records', records)
      case ROWS_TOO_LARGE:
        return new TooManyRecords('bytes', records)
      case INVALID_JSON:
        return new InvalidJson(this.#fault(), records)
      case INVALID_MESSAGE:
        return new InvalidMessage(messageFault(fault(), at(), this.#body), records)
      case WRONG_SHAPE:
        return new WrongShape('the body has no records in the expected place', records)
      default: {
        const reason = describeMalformation(malformedReason(), () => this.#fault())
        return new MalformedAction(malformedLine(), reason, records)
      }
    }
  }

  /** Why the text that was read last is not JSON. */
  #fault(): string {
    const { fault, faultAt, faultLine, faultColumn, textEnd } = this.#exports
    const found = { fault: fault(), at: faultAt(), line: faultLine(), column: faultColumn() }
    return describeFault(this.#memory, textEnd(), found)
  }

  #writeId(): void {
    this.#id = this.#ids.reserve()
    const digits = this.#id.replaceAll('-', '')
    const at = this.#exports.ID.value
    this.#memory.writeBigUInt64LE(BigInt(`0x${digits.slice(0, 16)}`), at)
    this.#memory.writeBigUInt64LE(BigInt(`0x${digits.slice(16)}`), at + 8)
  }

  /** The ids of a millisecond are used for its bodies. */
  #useIds(): void {
    const nowMs = this.#nowMs()
    if (nowMs === this.#idMs) return
    this.#idMs = nowMs
    this.#writeId()
    this.#exports.restartIds()
  }

  #usePrefix(prefix: RowPrefix): void {
    if (prefix === this.#prefix) return
    const { PROJECT, PROJECT_BYTES_MAX, setStamp } = this.#exports
    const { projectId, receivedAtMs, expiresOn } = prefix
    if (Buffer.byteLength(projectId) > PROJECT_BYTES_MAX.value)
      throw new RangeError('the id of a project is too long')
    this.#prefix = prefix
    setStamp(this.#memory.write(projectId, PROJECT.value), BigInt(receivedAtMs), expiresOn)
  }

  #single(): { id: string; timestamp: string | undefined } {
    const { idCounter, timestampStart, timestampEnd } = this.#exports
    const timestamp = timestampStart()
    return {
      id: withCounter(this.#id, idCounter()),
      timestamp: timestamp === 0 ? undefined : this.#memory.toString('latin1', timestamp, timestampEnd()),
    }
  }
}
