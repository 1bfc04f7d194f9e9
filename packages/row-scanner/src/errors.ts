import { type EntryError, type EntryErrorCode, entryErrorCodes, entrySchema, limits } from '@sluice/schema'
import { fieldNames } from './fields.ts'
import { wrongType } from './messages.ts'
import { readNumbers } from './numbers.ts'

/** Why the records of a body are not read any further, so that none is stored. In the order of `assembly/records.ts`, from 1. */
export const reasons = ['records', 'bytes', 'json', 'message', 'shape', 'action'] as const

/**
 * A body is rejected as a whole: it has too many `records`, or too many `bytes` of rows; it is not `json`,
 * or not the `message` of its protocol; it has no records in the expected place (`shape`); or an `action` of a bulk request is malformed.
 */
export class RejectedBody extends Error {
  override name = 'RejectedBody'
  readonly reason: (typeof reasons)[number]
  /** How many records were found before. */
  readonly records: number

  constructor(reason: (typeof reasons)[number], message: string, records = 0) {
    super(message)
    this.reason = reason
    this.records = records
  }
}

/** An error of an entry in a body. */
export interface ScanError extends EntryError {
  /** The place of the entry among those of the body. */
  readonly index: number
}

/** `assembly/codes.ts` has the same order. */
const codes = Object.keys(entryErrorCodes) as readonly EntryErrorCode[]

/** What must follow where a text is not JSON, in the order of `assembly/faults.ts`, from 1. */
const expectations = (
  'a value; a name in double quotes or "}"; a name in double quotes; ":"; "," or "]"; "," or "}"; ' +
  'the end of the text; the rest of a string, whose control characters must be escaped; ' +
  String.raw`one of "\/bfnrtu after the backslash; four hexadecimal digits after \u; ` +
  'a digit after the minus sign; the end of a number, which must not have leading zeros; ' +
  'a digit after the decimal point; a digit in the exponent; true; false; null'
).split('; ')

/** Where an error is, if not at a field: as in `assembly/errors.ts`. */
const METADATA = -2
const PATH = -3
/** Below it are places of fields of messages, negated. */
const FIELDS = -100
/** The messages of errors in the envelopes of events of Splunk. */
export const eventErrors = { missing: 'has no event', blank: 'has a blank event' } as const
/** What records of shippers have instead of fields. */
const wordings: Readonly<Record<number, string>> = {
  [-5]: 'must be an array of a time, a line and structured metadata',
  [-6]: 'has a stream without valid labels, such as {"app": "x"} in JSON or {app="x"}',
  [-10]: eventErrors.missing,
  [-11]: eventErrors.blank,
  [-12]: 'is not stored',
  [-13]: 'must be UTF-8',
}

/** An `EntryError` in `assembly/errors.ts`. */
const numbers = [
  'index',
  'code',
  'where',
  'pathStart',
  'pathEnd',
  'fault',
  'at',
  'line',
  'column',
  'end',
] as const

/** Words the errors in the scanner's memory. */
export function readErrors(memory: Buffer, start: number, count: number): ScanError[] {
  return readNumbers(memory, start, count, numbers).map((error) => {
    const { index, where, pathStart, pathEnd } = error
    const code = codes[error.code] ?? 'invalid_json'
    const field = where >= 0 ? `/${fieldNames[where]}` : where === METADATA ? '/metadata' : ''
    const path = where === PATH ? memory.toString('utf8', pathStart, pathEnd) : field
    const text = code === 'invalid_json' ? `is not JSON: ${describeFault(memory, error)}` : undefined
    const type = where < FIELDS ? wrongType(memory, -where) : undefined
    const message = type ?? wordings[where] ?? text ?? messageOf(code, path, where)
    return { index, path: code === 'missing' ? '' : path, code, message }
  })
}

/** Describes the last error in the scanner's memory: that of a text that is not JSON. */
export function describeLastFault(memory: Buffer, start: number, count: number): string {
  const fault = readNumbers(memory, start, count, numbers).at(-1)
  return fault === undefined ? '' : describeFault(memory, fault)
}

/** A UTF-8 sequence has at most this many bytes. */
const CHARACTER_BYTES_MAX = 4

/** Describes why a text is not JSON, and where. The description quotes at most one character of the text. */
function describeFault(
  memory: Buffer,
  { fault, at, line, column, end }: Record<(typeof numbers)[number], number>,
): string {
  const [character = ''] = memory.toString('utf8', at, Math.min(end, at + CHARACTER_BYTES_MAX))
  const quoted = character === '"' ? "'\"'" : JSON.stringify(character)
  const found = at < end ? `unexpected ${quoted}` : 'the text ends too early'
  return `${found} at line ${line}, column ${column}: expected ${expectations[fault - 1]}`
}

type Property = Partial<(typeof entrySchema.properties)[keyof typeof entrySchema.properties]>
/** What a message is about. */
interface Subject {
  readonly field: string
  readonly property: Property
  /** An entry may have only unknown fields: the error then points to the entry itself. */
  readonly metadata: string
}

const messages: Readonly<Record<EntryErrorCode, (subject: Subject) => string>> = {
  invalid_json: () => 'is not JSON',
  invalid_timestamp: () => 'must be an ISO 8601 date-time of 1970–2261',
  invalid_unicode: () => 'must not contain half of a surrogate pair',
  missing: ({ field }) => `${field} is required`,
  not_allowed: ({ property }) => {
    const allowed = 'enum' in property ? property.enum.filter((value) => value !== null) : []
    return `must be one of ${allowed.join(', ')}`
  },
  too_deep: ({ metadata }) => `${metadata}must have at most ${limits.metadataDepthMax} levels`,
  too_large: ({ metadata }) => `${metadata}must have at most ${limits.metadataBytesMax} bytes as JSON`,
  too_long: ({ property }) =>
    `must have at most ${'maxLength' in property ? property.maxLength : ''} characters`,
  too_many_names: ({ metadata }) => `${metadata}must have at most ${limits.metadataNamesMax} names`,
  wrong_type: ({ property }) => `must be of type ${[property.type ?? 'object'].flat().join(' or ')}`,
}

function messageOf(code: EntryErrorCode, path: string, where: number): string {
  const field = fieldNames[where] ?? ''
  return messages[code]({
    field,
    property: entrySchema.properties[field as keyof typeof entrySchema.properties] ?? {},
    metadata: path === '' ? 'metadata, which includes unknown fields, ' : '',
  })
}
