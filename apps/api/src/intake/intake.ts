import {
  type NotAPromise,
  type Owned,
  ownedRows,
  type Rows,
  RowScanner,
  type ScannedRows,
} from '@sluice/row-scanner'
import {
  type EntryValidator,
  type IdSource,
  InexactNumberError,
  makeRowPrefix,
  type RequestStamp,
  type RowPrefix,
  shapeRow,
} from '@sluice/rows'
import type { EntryError } from '@sluice/schema'
import { Problem, type FieldError } from '../problems.ts'
import { checkBody, type BodyFormat, type Submission } from './body.ts'
import { InvalidLine } from './ndjson.ts'

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

/** An escaped half of a surrogate pair: the only form in which valid UTF-8 can contain one. */
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/

type Ids = Pick<IdSource, 'next' | 'write'>

/** Turns the bodies of requests into rows. */
export class Intake {
  readonly #validator: EntryValidator
  readonly #ids: Ids
  readonly #scanner: Pick<RowScanner, 'scan'>
  /** The last stamp and its prefix. Under high load, many requests of a project share a millisecond. */
  #stamp: RequestStamp = { projectId: '', retentionDays: 0, receivedAtMs: 0 }
  #stamped: Stamped = stampRows(this.#stamp)

  /** @param scanner bodies that it gives up on are parsed; the result is the same */
  constructor(validator: EntryValidator, ids: Ids, scanner: Pick<RowScanner, 'scan'> = new RowScanner(ids)) {
    this.#validator = validator
    this.#ids = ids
    this.#scanner = scanner
  }

  /**
   * Parses a body, and passes the result to `use`. Its rows may be in the scanner's memory: see `RowScanner.scan`.
   *
   * @param format from the media type of the body
   * @returns the result of `use`
   * @throws Problem if the request as a whole is rejected
   */
  parse<Result extends NotAPromise>(
    body: Buffer,
    stamp: RequestStamp,
    format: BodyFormat,
    use: <Scope>(parsed: ParsedRequest<Scope>) => Result,
  ): Result {
    checkBody(body)
    const stamped = this.#stampedLike(stamp)
    const scanned = this.#scanner.scan(body, stamped.prefix, format.isNdjson, (rows) =>
      use(acceptAll(rows, stamped)),
    )
    return scanned ?? use(this.#parseText(body.toString(), stamped, format))
  }

  #parseText(text: string, stamped: Stamped, { parse }: BodyFormat): ParsedRequest<Owned> {
    const shaper = new RequestShaper(
      this.#validator,
      () => this.#ids.next(),
      stamped,
      // A search for a backslash is much cheaper than the expression, and usually sufficient.
      text.includes('\\u') && ESCAPED_SURROGATE.test(text),
    )
    try {
      return shaper.shape(parse(text, false))
    } catch (error) {
      if (!(error instanceof InexactNumberError)) throw error
      return shaper.shape(parse(text, true))
    }
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

interface Stamped {
  readonly prefix: RowPrefix
  /** ISO 8601 */
  readonly receivedAt: string
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

class RequestShaper {
  readonly #validator: EntryValidator
  readonly #makeId: () => string
  readonly #stamped: Stamped
  readonly #mayHoldLoneSurrogates: boolean

  constructor(
    validator: EntryValidator,
    makeId: () => string,
    stamped: Stamped,
    mayHoldLoneSurrogates: boolean,
  ) {
    this.#validator = validator
    this.#makeId = makeId
    this.#stamped = stamped
    this.#mayHoldLoneSurrogates = mayHoldLoneSurrogates
  }

  shape(submission: Submission): ParsedRequest<Owned> {
    return submission.kind === 'entry'
      ? this.#shapeEntry(submission.entry)
      : this.#shapeBatch(submission.entries)
  }

  #shapeEntry(entry: unknown): ParsedRequest<Owned> {
    if (!this.#validator.isEntry(entry)) throw invalidEntry(this.#validator.explain(entry))
    const timestamp = entry.timestamp ?? this.#stamped.receivedAt
    const id = this.#makeId()
    const shaped = shapeRow(entry, id, this.#stamped.prefix, this.#mayHoldLoneSurrogates)
    if ('error' in shaped) throw invalidEntry([shaped.error])
    const receipt = { id, timestamp }
    return { entries: 1, rows: ownedRows(1, shaped.row), answer: entryAnswer(receipt), receipt }
  }

  #shapeBatch(entries: readonly unknown[]): ParsedRequest<Owned> {
    let text = ''
    let accepted = 0
    const errors: FieldError[] = []
    for (const [index, entry] of entries.entries()) {
      const shaped = this.#shapeMember(entry)
      if (typeof shaped === 'string') {
        text += shaped
        accepted += 1
      } else {
        for (const error of shaped) errors.push({ index, ...error })
      }
    }
    const answer = batchAnswer(accepted, entries.length - accepted, errors)
    return { entries: entries.length, rows: ownedRows(accepted, text), answer }
  }

  #shapeMember(entry: unknown): string | readonly EntryError[] {
    if (!this.#validator.isEntry(entry)) {
      return entry instanceof InvalidLine ? [entry.error] : this.#validator.explain(entry)
    }
    const shaped = shapeRow(entry, this.#makeId(), this.#stamped.prefix, this.#mayHoldLoneSurrogates)
    return 'error' in shaped ? [shaped.error] : shaped.row
  }
}

function invalidEntry(errors: readonly EntryError[]): Problem {
  const [first] = errors
  const where = first === undefined || first.path === '' ? 'The entry' : first.path
  return new Problem('invalid_entry', `${where}: ${first?.message ?? 'is invalid'}.`, { errors })
}
