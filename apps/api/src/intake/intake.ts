import {
  InexactNumberError,
  rowPrefix,
  shapeRow,
  type EntryError,
  type EntryValidator,
  type RequestStamp,
} from '@sluice/schema'
import { Problem, type FieldError } from '../problems.ts'
import { decodeBody, parseJsonBody, type Submission } from './body.ts'

/** What a request brings: the rows to store, and what to answer once they are stored. */
export interface Intake {
  readonly rows: number
  /** The rows, each a line of JSON. */
  readonly text: string
  /** The answer's JSON. */
  readonly answer: string
}

/** Escaped halves of surrogate pairs: the only way for one to get into valid UTF-8. */
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/

/**
 * Turns a request's body into rows.
 *
 * @param makeId makes a UUIDv7
 * @throws Problem, when the request as a whole is refused
 */
export function takeIn(
  body: Buffer | undefined,
  stamp: RequestStamp,
  validator: EntryValidator,
  makeId: () => string,
): Intake {
  const text = decodeBody(body)
  const shaper = new RequestShaper(stamp, validator, makeId, ESCAPED_SURROGATE.test(text))
  try {
    return shaper.shape(parseJsonBody(text, false))
  } catch (error) {
    if (!(error instanceof InexactNumberError)) throw error
    return shaper.shape(parseJsonBody(text, true))
  }
}

class RequestShaper {
  readonly #stamp: RequestStamp
  readonly #prefix: string
  readonly #validator: EntryValidator
  readonly #makeId: () => string
  readonly #mayHoldLoneSurrogates: boolean

  constructor(
    stamp: RequestStamp,
    validator: EntryValidator,
    makeId: () => string,
    mayHoldLoneSurrogates: boolean,
  ) {
    this.#stamp = stamp
    this.#prefix = rowPrefix(stamp)
    this.#validator = validator
    this.#makeId = makeId
    this.#mayHoldLoneSurrogates = mayHoldLoneSurrogates
  }

  shape(submission: Submission): Intake {
    return submission.kind === 'entry'
      ? this.#shapeEntry(submission.entry)
      : this.#shapeBatch(submission.entries)
  }

  #shapeEntry(entry: unknown): Intake {
    if (!this.#validator.isEntry(entry)) throw invalidEntry(this.#validator.explain(entry))
    const timestamp = entry.timestamp ?? new Date(this.#stamp.receivedAtMs).toISOString()
    const id = this.#makeId()
    const shaped = shapeRow(entry, id, this.#prefix, this.#mayHoldLoneSurrogates)
    if ('error' in shaped) throw invalidEntry([shaped.error])
    return { rows: 1, text: shaped.row, answer: JSON.stringify({ id, status: 'accepted', timestamp }) }
  }

  #shapeBatch(entries: readonly unknown[]): Intake {
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
    const counts = { success: true, accepted: rows, rejected: entries.length - rows }
    return { rows, text, answer: JSON.stringify(errors.length === 0 ? counts : { ...counts, errors }) }
  }

  #shapeMember(entry: unknown): string | readonly EntryError[] {
    if (!this.#validator.isEntry(entry)) return this.#validator.explain(entry)
    const shaped = shapeRow(entry, this.#makeId(), this.#prefix, this.#mayHoldLoneSurrogates)
    return 'error' in shaped ? [shaped.error] : shaped.row
  }
}

function invalidEntry(errors: readonly EntryError[]): Problem {
  const [first] = errors
  const where = first === undefined || first.path === '' ? 'The entry' : first.path
  return new Problem('invalid_entry', `${where}: ${first?.message ?? 'is invalid'}.`, { errors })
}
