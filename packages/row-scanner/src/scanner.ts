import { IDS_PER_MS, type IdSource, rowColumns, type RowPrefix, withCounter } from '@sluice/rows'
import { type EntryError, limits } from '@sluice/schema'
import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type BulkItem, faultOfIndex, readItems } from './bulk.ts'
import { describeLastFault, readErrors, reasons, RejectedBody, type ScanError } from './errors.ts'
import { columns, writeFields } from './fields.ts'
import { numbersReader, textAt, wordsOf } from './memory.ts'
import { describeMessageFault } from './messages.ts'
import { writePowers } from './powers.ts'
import { type NotAPromise, type Owned, ownedRows, Rows } from './rows.ts'
import { type Exports, instantiate } from './web-assembly.ts'
import { writeWords } from './words.ts'

/** What a body is. */
type Kind = 'invalid' | 'entry' | 'batch' | 'otlp' | 'other' | 'wrong-logs'

/** What the scanner made of a body. */
export interface Scanned<Scope> {
  /** `entry`: one entry, not in a batch. `other`: neither an object nor an array. `wrong-logs`: "logs" is not an array. */
  readonly kind: Exclude<Kind, 'invalid'>
  /** The number of entries, valid or not. If there are more than a request may have, the others are only counted. */
  readonly entries: number
  /** The rows of the valid entries, in the scanner's memory. */
  readonly rows: Rows<Scope>
  /** The errors of the others. */
  readonly errors: readonly ScanError[]
  /** The new id of a valid `entry`, and the timestamp that it was sent with. */
  readonly single: { readonly id: string; readonly timestamp: string | undefined } | undefined
}

/** `Otlp` and `Loki` are their messages in Protocol Buffers, decompressed, and `HecEvents` the events of Splunk's HTTP Event Collector. */
type RecordProtocol = 'Otlp' | 'Loki' | 'LokiJson' | 'HecEvents' | 'Datadog'

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

/** Reads each `Piece` in `assembly/records.ts`. */
const readPieces = numbersReader('rowsEnd rows end')
/** What is left of a scan: the numbers that `outcome` in `assembly/index.ts` writes, in their order. */
const outcomeNames = wordsOf(
  'records rows rowsEnd pieces errors timestampStart timestampEnd malformation malformedLine messageFault messageFaultAt',
)
const PAGE_BYTES = 65_536

/** When a piece ends. */
export interface PieceLimits {
  readonly rowsMax: number
  readonly bytesMax: number
}

/**
 * Makes rows from the bytes of a body, without an object or a string per value. The passes over the bytes are in WebAssembly, which has
 * instructions for sixteen bytes at once (`assembly/`): one checks that the body is JSON and notes where its values are, the others take only
 * the values that they need. Each is linear in the length of the body, whatever it has.
 *
 * A body has at most `limits.bodyBytesMax` bytes. It is UTF-8, except for those in Protocol Buffers and for `scanBulk` and `scanHecLines`, which may
 * have any bytes. The same prefix for the same stamp saves time. A body that is rejected as a whole throws a `RejectedBody`.
 */
export class Scanner {
  readonly #exports: Exports
  readonly #memory: Buffer
  /** The prefix that is in the scanner's memory. */
  #prefix: RowPrefix | undefined
  readonly #ids: Pick<IdSource, 'reserve'>
  readonly #nowMs: () => number
  /** The id in the scanner's memory, and when it was reserved. */
  #id = ''
  readonly #idBytes: Buffer
  #idMs = Number.NEGATIVE_INFINITY
  /** The texts of kinds, by their places in the memory. */
  readonly #kinds = new Map<number, Kind>()
  /** The body in the scanner's memory, if `scan` has found that it is OTLP. */
  #otlp: Uint8Array | undefined

  /** @param ids of rows only @param nowMs the clock of the ids */
  constructor(ids: Pick<IdSource, 'reserve'>, nowMs: () => number, pieces: PieceLimits) {
    this.#ids = ids
    this.#nowMs = nowMs
    this.#exports = instantiate(readFileSync(new URL('scanner.wasm', import.meta.url)), {
      host: {
        renewId: () => this.#writeId(),
        isIndexName: (from: number, to: number) =>
          faultOfIndex(this.#memory.toString('utf8', from, to)) === undefined,
      },
      limits: {
        ...limits,
        pieceRowsMax: pieces.rowsMax,
        pieceBytesMax: pieces.bytesMax,
        idsPerMs: IDS_PER_MS,
      },
      columns,
    })
    const { memory, TAPE, TAPE_BYTES_MAX, FIELDS, POWERS } = this.#exports
    const { COLUMNS_MAX, BODY_BYTES_MAX, ID, PATHS_MAX, ROWS_ROOM } = this.#exports
    // What is larger than its area would overwrite the next one. A row is smaller than a body.
    if (
      rowColumns.length > COLUMNS_MAX ||
      limits.entriesPerRequestMax > PATHS_MAX ||
      Math.max(limits.bodyBytesMax, pieces.bytesMax) > BODY_BYTES_MAX ||
      limits.rowBytesPerRequestMax + BODY_BYTES_MAX > ROWS_ROOM
    )
      throw new Error('the memory of the scanner is too small: see assembly/memory.ts')
    // Only the pages that are touched become resident.
    memory.grow(Math.ceil((TAPE + TAPE_BYTES_MAX - memory.buffer.byteLength) / PAGE_BYTES))
    this.#memory = Buffer.from(memory.buffer)
    this.#idBytes = this.#memory.subarray(ID, ID + 16)
    writeFields(this.#memory, FIELDS)
    writePowers(this.#memory, POWERS)
    this.#exports.setSeed(randomBytes(8).readBigInt64LE())
    this.#exports.useWords(writeWords(this.#memory, this.#exports))
  }

  /**
   * Scans entries, and passes their rows to `use`. The rows are in the scanner's memory, which the next scan overwrites. The type parameter
   * `Scope` ties them to this call: they cannot be assigned to a variable outside `use`, and an asynchronous `use` does not compile. `Rows.copy`
   * makes rows that can be kept.
   *
   * @param isNdjson whether the body has an entry per line, or is one JSON text
   */
  scan<Result extends NotAPromise>(
    body: Uint8Array,
    prefix: RowPrefix,
    isNdjson: boolean,
    use: <Scope>(scanned: Scanned<Scope>) => Result,
  ): Result {
    this.#take(body, prefix)
    const { scan, scanLines, ROWS, ID } = this.#exports
    const kindAt = isNdjson ? scanLines(body.length) : scan(body.length)
    const kind = this.#kinds.get(kindAt) ?? (textAt(this.#memory, kindAt) as Kind)
    this.#kinds.set(kindAt, kind)
    if (kind === 'invalid') throw new RejectedBody('json', this.#fault())
    if (kind === 'otlp') this.#otlp = body
    const found = this.#outcome()
    const rows = new Rows(found('rows'), this.#memory.subarray(ROWS, found('rowsEnd')))
    const from = found('timestampStart')
    const timestamp = from === 0 ? undefined : this.#memory.toString('latin1', from, found('timestampEnd'))
    const isSingle = kind === 'entry' && rows.count === 1
    const single = isSingle
      ? { id: withCounter(this.#id, this.#memory.readInt32LE(ID + 16) - 1), timestamp }
      : undefined
    return use({ kind, entries: found('records'), rows, errors: this.#errors(found('errors')), single })
  }

  /** Scans the records of a protocol that says all of them in the body. @param hasRecords whether lines of Loki are JSON records */
  scanRecords(
    protocol: RecordProtocol,
    body: Uint8Array,
    prefix: RowPrefix,
    hasRecords = false,
  ): ScannedRecords {
    this.#take(body, prefix)
    return this.#records(this.#exports[`scan${protocol}`](body.length, hasRecords))
  }

  /** Scans OTLP logs in JSON. Straight after `scan` has found that the body is OTLP, the body is not read again. */
  scanOtlpJson(body: Uint8Array, prefix: RowPrefix): ScannedRecords {
    if (body !== this.#otlp) this.scan(body, prefix, false, () => ({}))
    if (body !== this.#otlp) throw new Error('the body is not OTLP')
    this.#usePrefix(prefix)
    this.#otlp = undefined
    return this.#records(this.#exports.scanOtlpJson())
  }

  /** Scans the bulk request of Elasticsearch. @param pathIndex the index of actions that name no other */
  scanBulk(body: Uint8Array, prefix: RowPrefix, pathIndex: string | null): ScannedBulk {
    this.#take(body, prefix)
    const { scanBulk, ITEMS } = this.#exports
    const scanned = this.#records(scanBulk(body.length, this.#useOrigin(pathIndex), isUtf8(body)))
    return { ...scanned, items: readItems(this.#memory, ITEMS, scanned.records) }
  }

  /** Scans lines for Splunk's HTTP Event Collector: each is a message. What is not UTF-8 becomes U+FFFD. */
  scanHecLines(body: Uint8Array, prefix: RowPrefix, { timestamp, metadata }: LinesOrigin): ScannedRecords {
    this.#take(body, prefix)
    const origin = this.#useOrigin([timestamp ?? null, metadata])
    return this.#records(this.#exports.scanHecLines(body.length, origin))
  }

  /** Puts a body and a prefix into the scanner's memory. */
  #take(body: Uint8Array, prefix: RowPrefix): void {
    this.#usePrefix(prefix)
    this.#otlp = undefined
    this.#memory.set(body, this.#exports.BODY)
    // The scanner stops at this byte.
    this.#memory[this.#exports.BODY + body.length] = 0
  }

  /** @returns its length as JSON */
  #useOrigin(origin: unknown): number {
    const { ORIGIN, ORIGIN_BYTES_MAX } = this.#exports
    const json = JSON.stringify(origin)
    if (Buffer.byteLength(json) > ORIGIN_BYTES_MAX) throw new RangeError('the URL of a request is too long')
    const bytes = this.#memory.write(json, ORIGIN)
    this.#memory[ORIGIN + bytes] = 0
    return bytes
  }

  /** Reads what is left of a scan. */
  #outcome() {
    const start = this.#exports.outcome()
    return (name: (typeof outcomeNames)[number]): number =>
      this.#memory.readInt32LE(start + 4 * outcomeNames.indexOf(name))
  }

  #errors(count: number): ScanError[] {
    return readErrors(this.#memory, this.#exports.ERRORS, count)
  }

  /**
   * Reads what a scan of records has left in the memory. The rows are copied.
   *
   * @param result why the records are not read, if it is not 0
   */
  #records(result: number): ScannedRecords {
    const found = this.#outcome()
    if (result !== 0) throw this.#rejection(reasons[result - 1] ?? 'json')
    let from = this.#exports.ROWS
    let start = 0
    const pieces = readPieces(this.#memory, this.#exports.PIECES, found('pieces')).map(
      ({ rowsEnd, rows, end }): Piece => {
        const copy = ownedRows(rows, Buffer.from(this.#memory.subarray(from, rowsEnd)))
        const piece = { rows: copy, start, end }
        from = rowsEnd
        start = end
        return piece
      },
    )
    const rejected = this.#errors(found('errors')).map(({ index, ...error }) => [index, error] as const)
    return { records: found('records'), rejected: new Map(rejected), pieces }
  }

  #rejection(reason: RejectedBody['reason']): RejectedBody {
    const found = this.#outcome()
    const describe = {
      records: () => 'the request has too many records',
      bytes: () => 'the request has too many bytes',
      json: () => this.#fault(),
      message: () =>
        describeMessageFault(
          this.#memory,
          found('messageFault'),
          found('messageFaultAt'),
          this.#exports.BODY,
        ),
      shape: () => 'the body has no records in the expected place',
      action: () =>
        `Malformed action/metadata line [${found('malformedLine')}]. ${textAt(this.#memory, found('malformation')) || `It is not JSON: ${this.#fault()}.`}`,
    } satisfies Record<RejectedBody['reason'], () => string>
    return new RejectedBody(reason, describe[reason](), found('records'))
  }

  /** Why the text that was read last is not JSON. */
  #fault(): string {
    this.#exports.addFault()
    return describeLastFault(this.#memory, this.#exports.ERRORS, this.#outcome()('errors'))
  }

  #writeId(): void {
    this.#id = this.#ids.reserve()
    this.#idBytes.write(this.#id.replaceAll('-', ''), 'hex')
    this.#idBytes.swap64()
    this.#memory.writeInt32LE(0, this.#exports.ID + 16)
  }

  #usePrefix(prefix: RowPrefix): void {
    // The ids of a millisecond are used for its bodies.
    const nowMs = this.#nowMs()
    if (nowMs !== this.#idMs) {
      this.#idMs = nowMs
      this.#writeId()
    }
    if (prefix === this.#prefix) return
    const { STAMP, PROJECT, PROJECT_BYTES_MAX } = this.#exports
    const { projectId, receivedAtMs, expiresOn } = prefix
    if (Buffer.byteLength(projectId) > PROJECT_BYTES_MAX)
      throw new RangeError('the id of a project is too long')
    this.#prefix = prefix
    this.#memory.writeBigInt64LE(BigInt(receivedAtMs), STAMP)
    this.#memory.writeInt32LE(expiresOn, STAMP + 8)
    this.#memory.writeInt32LE(this.#memory.write(projectId, PROJECT), STAMP + 12)
  }
}
