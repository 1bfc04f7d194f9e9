import {
  type NotAPromise,
  type Owned,
  ownedRows,
  type Rows,
  RowScanner,
  type ScannedRows,
} from '@sluice/row-scanner'
import { type EntryValidator, type IdSource, makeRowPrefix, type RequestStamp } from '@sluice/rows'
import { LabelledCounts } from '@sluice/ops'
import { entryErrorCodes } from '@sluice/schema'
import type { FieldError } from '../problems.ts'
import { Turns } from '../turns.ts'
import { type BodyFormat, checkBody } from './body.ts'
import { type EntryRow, EntryShaper, invalidEntry, type Stamped } from './entry-shaper.ts'
import { ParseBudget } from './parse-budget.ts'
import { type ReadRecords, readRecords, type ScanRecords, type SourceRecord } from './records.ts'
import { RowText } from './row-text.ts'

/** The rows of a request, and its answer once they are stored. */
export interface ParsedRequest<Scope> {
  /** Number of entries in the body, valid or not. */
  readonly entries: number
  /** The rows of the valid entries. */
  readonly rows: Rows<Scope>
  /** The JSON of the answer. */
  readonly answer: string
  /** The part of the answer that does not follow from the body. Without it, the same body always has the same answer. */
  readonly receipt?: EntryReceipt
}

/** What the answer to a single entry contains. */
export interface EntryReceipt {
  readonly id: string
  /** The entry's own, or the time of receipt. */
  readonly timestamp: string
}

/** The JSON of the answer to a single entry. JSON escapes no character of a UUID or a timestamp. */
export function entryAnswer({ id, timestamp }: EntryReceipt): string {
  return `{"id":"${id}","status":"accepted","timestamp":"${timestamp}"}`
}

/** Scanning this many bytes takes less than a millisecond. */
const STEP_BYTES = 64 * 1024
const errorCodes = Object.keys(entryErrorCodes)

type Ids = Pick<IdSource, 'next' | 'write'>

/** Turns the bodies of requests into rows. */
export class Intake {
  readonly #validator: EntryValidator
  readonly #ids: Ids
  readonly #scanner: Pick<RowScanner, 'scan' | 'scanRecords'>
  /** The last stamp and its prefix. Under high load, many requests of a project share a millisecond. */
  #stamp: RequestStamp = { projectId: '', retentionDays: 0, receivedAtMs: 0 }
  #stamped: Stamped = stampRows(this.#stamp)

  /** Entries that were rejected, by the code of the first error of each. */
  readonly invalidEntries = new LabelledCounts(errorCodes.length, errorCodes)
  readonly #turns: Turns
  readonly #budget = new ParseBudget()

  /** @param scanner bodies that it gives up on are parsed; the result is the same */
  constructor(
    validator: EntryValidator,
    ids: Ids,
    scanner: Pick<RowScanner, 'scan' | 'scanRecords'> = new RowScanner(ids),
    turns = new Turns(),
  ) {
    this.#validator = validator
    this.#ids = ids
    this.#scanner = scanner
    this.#turns = turns
  }

  /**
   * Passes the rows of an ordinary body to `use`, at once. They may be in the scanner's memory: see `RowScanner.scan`.
   *
   * @param format from the media type of the body
   * @returns the result of `use`; undefined for a body that must be parsed
   * @throws Problem if the request as a whole is rejected
   */
  scan<Result extends NotAPromise>(
    body: Buffer,
    stamp: RequestStamp,
    format: BodyFormat,
    use: <Scope>(parsed: ParsedRequest<Scope>) => Result,
  ): Result | undefined {
    checkBody(body)
    const stamped = this.#stampedLike(stamp)
    return this.#scanner.scan(body, stamped.prefix, format.isNdjson, (rows) => use(acceptAll(rows, stamped)))
  }

  /**
   * Parses a body that was not scanned, in slices: a large body leaves the event loop to other requests again and again.
   *
   * @param body must not be empty, and must be UTF-8
   * @returns undefined if the body is an OTLP request
   * @throws Problem if the request as a whole is rejected; `overloaded` if too many bytes are being parsed
   */
  async parse(
    body: Buffer,
    stamp: RequestStamp,
    format: BodyFormat,
  ): Promise<ParsedRequest<Owned> | undefined> {
    const release = this.#budget.reserve(stamp.projectId, body.length)
    try {
      return await this.#parse(body, stamp, format)
    } finally {
      release()
    }
  }

  async #parse(
    body: Buffer,
    stamp: RequestStamp,
    format: BodyFormat,
  ): Promise<ParsedRequest<Owned> | undefined> {
    const pace = this.#turns.begin(stamp.projectId)
    // Small bodies are not worth a wait, unless many of them arrive in one turn.
    await (body.length > STEP_BYTES ? pace.nextSlice() : pace.pause())
    const finder = format.findEntries(body)
    let found = finder.step(STEP_BYTES)
    while (found === undefined) {
      await pace.pause()
      found = finder.step(STEP_BYTES)
    }
    if (found.kind === 'otlp') return undefined
    const shaper = this.#shaper(this.#stampedLike(stamp))
    const rows = new RowText()
    const errors: FieldError[] = []
    for (const [index, entry] of found.entries.entries()) {
      const pause = pace.pause()
      if (pause !== undefined) await pause
      const shaped = shaper.shape(entry, body)
      if ('row' in shaped) {
        if (found.kind === 'entry') return acceptEntry(shaped)
        rows.add(shaped.row)
      } else {
        this.invalidEntries.add(shaped.errors[0]?.code ?? 'invalid_json')
        if (found.kind === 'entry') throw invalidEntry(shaped.errors)
        for (const error of shaped.errors) errors.push({ index, ...error })
      }
    }
    const { length } = found.entries
    const answer = batchAnswer(rows.count, length - rows.count, errors)
    return { entries: length, rows: rows.take(), answer }
  }

  /**
   * Makes rows of records, in slices.
   *
   * @param records gets a function that makes rows of some records at once
   * @param body the body of the records; it is held in the budget of bodies that are being parsed
   * @param hold called with the bytes of rows that were made. It may throw
   * @throws Problem `overloaded` if too many bytes are being parsed; what `hold` and the records throw
   */
  async readRecords(
    records: (scan: ScanRecords) => Iterable<SourceRecord | undefined>,
    body: Buffer,
    stamp: RequestStamp,
    hold: (bytes: number) => void,
  ): Promise<ReadRecords> {
    const release = this.#budget.reserve(stamp.projectId, body.length)
    try {
      const pace = this.#turns.begin(stamp.projectId)
      await (body.length > STEP_BYTES ? pace.nextSlice() : pace.pause())
      const stamped = this.#stampedLike(stamp)
      const scan: ScanRecords = (scopeLogs, at, origin) =>
        this.#scanner.scanRecords(scopeLogs, at, origin, stamped.prefix)
      const read = await readRecords(records(scan), this.#shaper(stamped), pace, hold)
      for (const { code } of read.rejected.values()) this.invalidEntries.add(code)
      return read
    } finally {
      release()
    }
  }

  #shaper(stamped: Stamped): EntryShaper {
    return new EntryShaper(this.#validator, () => this.#ids.next(), stamped)
  }

  #stampedLike(next: RequestStamp): Stamped {
    const { projectId, retentionDays, receivedAtMs } = this.#stamp
    const isSame =
      next.receivedAtMs === receivedAtMs &&
      next.projectId === projectId &&
      next.retentionDays === retentionDays
    if (!isSame) {
      this.#stamp = next
      this.#stamped = stampRows(next)
    }
    return this.#stamped
  }
}

function stampRows(stamp: RequestStamp): Stamped {
  return { prefix: makeRowPrefix(stamp), receivedAt: new Date(stamp.receivedAtMs).toISOString() }
}

/** For a body without an invalid entry. */
function acceptAll<Scope>(
  { rows, single }: ScannedRows<Scope>,
  { receivedAt }: Stamped,
): ParsedRequest<Scope> {
  if (single === undefined) return { entries: rows.count, rows, answer: batchAnswer(rows.count, 0, []) }
  const receipt = { id: single.id, timestamp: single.timestamp ?? receivedAt }
  return { entries: 1, rows, answer: entryAnswer(receipt), receipt }
}

function batchAnswer(accepted: number, rejected: number, errors: readonly FieldError[]): string {
  const counts = { success: true, accepted, rejected }
  return JSON.stringify(errors.length === 0 ? counts : { ...counts, errors })
}

/** For a body that is one entry. */
function acceptEntry({ row, id, timestamp }: EntryRow): ParsedRequest<Owned> {
  const receipt = { id, timestamp }
  return { entries: 1, rows: ownedRows(1, row), answer: entryAnswer(receipt), receipt }
}
