import { isUtf8 } from 'node:buffer'
import { LabelledCounts } from '@sluice/ops'
import { type NotAPromise, RejectedBody, type Rows, type ScannedRecords, Scanner } from '@sluice/row-scanner'
import { IdSource, makeRowPrefix, type RequestStamp, type RowPrefix } from '@sluice/rows'
import { entryErrorCodes, limits } from '@sluice/schema'
import { type FieldError, Problem, type ProblemCode } from '../problems.ts'

/** The rows of a request, and its answer once they are stored. */
export interface ParsedRequest<Scope> {
  /** Number of entries in the body, valid or not. */
  readonly entries: number
  readonly rows: Rows<Scope>
  readonly answer: string
  /** The part of the answer that does not follow from the body. Without it, the same body always has the same answer. */
  readonly receipt?: EntryReceipt
}

export interface EntryReceipt {
  readonly id: string
  /** The entry's own, or the time of receipt. */
  readonly timestamp: string
}

/** The JSON of the answer to a single entry. JSON escapes no character of a UUID or a timestamp. */
export function entryAnswer({ id, timestamp }: EntryReceipt): string {
  return `{"id":"${id}","status":"accepted","timestamp":"${timestamp}"}`
}

const errorCodes = Object.keys(entryErrorCodes)

/** For each reason why a body is rejected as a whole, the problem. */
export type Rejections = Readonly<
  Record<RejectedBody['reason'], (error: RejectedBody) => readonly [code: ProblemCode, detail: string]>
>
const rejections: Rejections = {
  records: () => [
    'too_many_entries',
    `A request may have at most ${limits.recordsPerRequestMax} records. Send fewer records per request.`,
  ],
  bytes: () => [
    'body_too_large',
    `The rows of the request have more than ${limits.rowBytesPerRequestMax} bytes, because each of ` +
      'them repeats what its records have in common. Send fewer records per request.',
  ],
  json: ({ message }) => ['invalid_json', toSentence(message)],
  message: ({ message }) => ['invalid_body', `The body is not OTLP: ${message}.`],
  shape: ({ message }) => ['invalid_body', toSentence(message)],
  action: ({ message }) => ['invalid_json', message],
}

export function toSentence(description: string): string {
  return `${description.charAt(0).toUpperCase()}${description.slice(1)}.`
}

/** @throws Problem `empty_body` */
export function checkNotEmpty(body: Buffer): void {
  if (body.length === 0) throw new Problem('empty_body')
}

/** @throws Problem `empty_body`, `invalid_utf8` */
export function checkBody(body: Buffer): void {
  checkNotEmpty(body)
  if (!isUtf8(body)) throw new Problem('invalid_utf8')
}

/**
 * When a piece of a request of a shipper ends. With a key, each piece has a record: a process with other limits would make other pieces of
 * a request that is sent again, and store it twice.
 */
export const pieceLimits = { rowsMax: 2_000, bytesMax: 1_000_000 } as const

/** Turns the bodies of requests into rows. The largest body takes some milliseconds, whatever it has. */
export class Intake {
  readonly #scanner: Scanner
  /** The last stamp and its prefix. Under high load, many requests of a project share a millisecond. */
  #stamp: RequestStamp = { projectId: '', retentionDays: 0, receivedAtMs: 0 }
  #prefix: RowPrefix = makeRowPrefix(this.#stamp)

  /** Entries that were rejected, by the code of the first error of each. */
  readonly invalidEntries = new LabelledCounts(errorCodes.length, errorCodes)

  /** @param nowMs the clock of the ids of rows */
  constructor(nowMs: () => number) {
    this.#scanner = new Scanner(new IdSource(nowMs), nowMs, pieceLimits)
  }

  /**
   * Reads a body with entries, and passes their rows to `use`, at once. They are in the scanner's memory: see `Scanner.scan`.
   *
   * @returns the result of `use`; undefined if the body is an OTLP request
   * @throws Problem if the request as a whole is rejected
   */
  readEntries<Result extends NotAPromise>(
    body: Buffer,
    stamp: RequestStamp,
    isNdjson: boolean,
    use: <Scope>(parsed: ParsedRequest<Scope>) => Result,
  ): Result | undefined {
    checkBody(body)
    const read = (): { readonly result: Result | undefined } =>
      this.#scanner.scan(body, this.#prefixOf(stamp), isNdjson, ({ kind, entries, rows, errors, single }) => {
        if (kind === 'otlp') return { result: undefined }
        if (kind === 'other')
          throw new Problem(
            'invalid_body',
            'Send an entry object, {"logs": [entries]} or an array of entries.',
          )
        if (kind === 'wrong-logs') throw new Problem('invalid_body')
        if (entries > limits.entriesPerRequestMax) {
          const detail = `A request may have at most ${limits.entriesPerRequestMax} entries; this one has ${entries}.`
          throw new Problem('too_many_entries', detail)
        }
        this.#count(errors)
        if (kind === 'batch')
          return {
            result: use({ entries, rows, answer: batchAnswer(rows.count, entries - rows.count, errors) }),
          }
        if (single === undefined) throw invalidEntry(errors)
        const receipt = {
          id: single.id,
          timestamp: single.timestamp ?? new Date(stamp.receivedAtMs).toISOString(),
        }
        return { result: use({ entries, rows, answer: entryAnswer(receipt), receipt }) }
      })
    return rejecting(read).result
  }

  /** Reads a body with the records of a shipper. @throws Problem if the request as a whole is rejected */
  readRecords(
    read: (scanner: Scanner, prefix: RowPrefix) => ScannedRecords,
    stamp: RequestStamp,
    own?: Partial<Rejections>,
  ): ScannedRecords {
    const records = rejecting(() => read(this.#scanner, this.#prefixOf(stamp)), own)
    for (const { code } of records.rejected.values()) this.invalidEntries.add(code)
    return records
  }

  #count(errors: readonly FieldError[]): void {
    let last: number | undefined
    for (const { index, code } of errors) {
      if (index !== last) this.invalidEntries.add(code)
      last = index
    }
  }

  #prefixOf(next: RequestStamp): RowPrefix {
    const { projectId, retentionDays, receivedAtMs } = this.#stamp
    const isSame =
      next.receivedAtMs === receivedAtMs &&
      next.projectId === projectId &&
      next.retentionDays === retentionDays
    if (!isSame) {
      this.#stamp = next
      this.#prefix = makeRowPrefix(next)
    }
    return this.#prefix
  }
}

function rejecting<Result>(read: () => Result, own: Partial<Rejections> = {}): Result {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof RejectedBody)) throw error
    const [code, detail] = (own[error.reason] ?? rejections[error.reason])(error)
    throw new Problem(code, detail, { cause: error })
  }
}

function invalidEntry(all: readonly FieldError[]): Problem {
  const errors = all.map(({ path, code, message }) => ({ path, code, message }))
  const [first] = errors
  const where = first === undefined || first.path === '' ? 'The entry' : first.path
  return new Problem('invalid_entry', `${where}: ${first?.message ?? 'is invalid'}.`, { errors })
}

function batchAnswer(accepted: number, rejected: number, errors: readonly FieldError[]): string {
  const counts = { success: true, accepted, rejected }
  return JSON.stringify(errors.length === 0 ? counts : { ...counts, errors })
}
