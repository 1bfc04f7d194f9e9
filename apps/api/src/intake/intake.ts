import {
  InexactNumberError,
  RowScanner,
  shapeRow,
  startRows,
  type EntryError,
  type EntryValidator,
  type IdSource,
  type RequestStamp,
  type RowStart,
  type ScannedRows,
} from '@sluice/schema'
import { Problem, type FieldError } from '../problems.ts'
import { checkBody, jsonFormat, type BodyFormat, type Submission } from './body.ts'
import { InvalidLine } from './ndjson.ts'

/** What a request brings: the rows to store, and what to answer once they are stored. */
export interface TakenIn {
  /** How many entries were sent, valid or not. */
  readonly entries: number
  readonly rows: number
  /** The rows, each a line in UTF-8. To be used or copied at once: the next request's may be written there. */
  readonly text: Buffer
  /** The answer's JSON. */
  readonly answer: string
  /** What the answer has that does not follow from the body. Without it the same body always has the same answer. */
  readonly issued?: Issued
}

/** What an entry was given when it was taken in. */
export interface Issued {
  readonly id: string
  /** The entry's own, or the time of receipt. */
  readonly timestamp: string
}

/** The answer to a single entry, as JSON. Neither a UUID nor a timestamp has anything that JSON escapes. */
export function entryAnswer({ id, timestamp }: Issued): string {
  return `{"id":"${id}","status":"accepted","timestamp":"${timestamp}"}`
}

/** Escaped halves of surrogate pairs: the only way for one to get into valid UTF-8. */
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/

type Ids = Pick<IdSource, 'next' | 'write'>

/** Turns the bodies of requests into rows. */
export class Intake {
  readonly #validator: EntryValidator
  readonly #ids: Ids
  readonly #scanner: Pick<RowScanner, 'scan'>
  /** The latest stamp and what follows from it: at high load, many requests of a project share a millisecond. */
  #stamp: RequestStamp = { projectId: '', retentionDays: 0, receivedAtMs: 0 }
  #stamped: Stamped = stamp(this.#stamp)

  /** @param scanner what it leaves to the parser is parsed; the result is the same */
  constructor(validator: EntryValidator, ids: Ids, scanner: Pick<RowScanner, 'scan'> = new RowScanner(ids)) {
    this.#validator = validator
    this.#ids = ids
    this.#scanner = scanner
  }

  /**
   * @param format that of the body's media type
   * @throws Problem, when the request as a whole is refused
   */
  take(body: Buffer | undefined, requestStamp: RequestStamp, format: BodyFormat = jsonFormat): TakenIn {
    const bytes = checkBody(body)
    const stamped = this.#stampedLike(requestStamp)
    const scanned = this.#scanner.scan(bytes, stamped.start, format.isNdjson)
    return scanned === undefined
      ? this.#parse(bytes.toString(), stamped, format)
      : answerAll(scanned, stamped)
  }

  #parse(text: string, stamped: Stamped, { parse }: BodyFormat): TakenIn {
    const shaper = new RequestShaper(
      this.#validator,
      () => this.#ids.next(),
      stamped,
      // The look for a backslash is many times cheaper than the expression, and usually enough.
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
      this.#stamped = stamp(next)
    }
    return this.#stamped
  }
}

interface Stamped {
  readonly start: RowStart
  /** ISO 8601 */
  readonly receivedAt: string
}

function stamp(requestStamp: RequestStamp): Stamped {
  return {
    start: startRows(requestStamp),
    receivedAt: new Date(requestStamp.receivedAtMs).toISOString(),
  }
}

/** Of a body without an invalid entry. */
function answerAll({ rows, text, single }: ScannedRows, { receivedAt }: Stamped): TakenIn {
  if (single === undefined) return { entries: rows, rows, text, answer: batchAnswer(rows, 0, []) }
  const issued = { id: single.id, timestamp: single.timestamp ?? receivedAt }
  return { entries: 1, rows, text, answer: entryAnswer(issued), issued }
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

  shape(submission: Submission): TakenIn {
    return submission.kind === 'entry'
      ? this.#shapeEntry(submission.entry)
      : this.#shapeBatch(submission.entries)
  }

  #shapeEntry(entry: unknown): TakenIn {
    if (!this.#validator.isEntry(entry)) throw invalidEntry(this.#validator.explain(entry))
    const timestamp = entry.timestamp ?? this.#stamped.receivedAt
    const id = this.#makeId()
    const shaped = shapeRow(entry, id, this.#stamped.start, this.#mayHoldLoneSurrogates)
    if ('error' in shaped) throw invalidEntry([shaped.error])
    const issued = { id, timestamp }
    return { entries: 1, rows: 1, text: Buffer.from(shaped.row), answer: entryAnswer(issued), issued }
  }

  #shapeBatch(entries: readonly unknown[]): TakenIn {
    let text = ''
    let rows = 0
    const errors: FieldError[] = []
    for (const [index, entry] of entries.entries()) {
      const shaped = this.#shapeMember(entry)
      if (typeof shaped === 'string') {
        text += shaped
        rows += 1
      } else {
        for (const error of shaped) errors.push({ index, ...error })
      }
    }
    const answer = batchAnswer(rows, entries.length - rows, errors)
    return { entries: entries.length, rows, text: Buffer.from(text), answer }
  }

  #shapeMember(entry: unknown): string | readonly EntryError[] {
    if (!this.#validator.isEntry(entry)) {
      return entry instanceof InvalidLine ? [entry.error] : this.#validator.explain(entry)
    }
    const shaped = shapeRow(entry, this.#makeId(), this.#stamped.start, this.#mayHoldLoneSurrogates)
    return 'error' in shaped ? [shaped.error] : shaped.row
  }
}

function invalidEntry(errors: readonly EntryError[]): Problem {
  const [first] = errors
  const where = first === undefined || first.path === '' ? 'The entry' : first.path
  return new Problem('invalid_entry', `${where}: ${first?.message ?? 'is invalid'}.`, { errors })
}
