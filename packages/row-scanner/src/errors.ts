import { type EntryError, type EntryErrorCode, entryErrorCodes, entrySchema, limits } from '@sluice/schema'
import { fieldNames } from './fields.ts'
import { wrongType } from './messages.ts'
import { numbersReader, textAt } from './memory.ts'

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

/** Where an error is, if not at a field: as in `assembly/errors.ts`. */
const PATH = -2
/** Below it are places of fields of messages, negated. */
const FIELDS = -100

/** Reads each `EntryError` in `assembly/errors.ts`. */
const readAll = numbersReader('index code where text start end at')
type Numbers = ReturnType<typeof readAll>[number]

/** Words the errors in the scanner's memory. */
export function readErrors(memory: Buffer, start: number, count: number): ScanError[] {
  return readAll(memory, start, count).map((error) => {
    const { index, where } = error
    const code = codes[error.code] ?? 'invalid_json'
    const field = where >= 0 ? `/${fieldNames[where]}` : ''
    const path = where === PATH ? memory.toString('utf8', error.start, error.end) : field
    const text = error.at > 0 ? `is not JSON: ${describeFault(memory, error)}` : textAt(memory, error.text)
    const type = where < FIELDS ? wrongType(memory, -where) : text
    return {
      index,
      path: code === 'missing' ? '' : path,
      code,
      message: type || messageOf(code, path, where),
    }
  })
}

/** Describes the last error in the scanner's memory: that of a text that is not JSON. */
export function describeLastFault(memory: Buffer, start: number, count: number): string {
  const fault = readAll(memory, start, count).at(-1)
  return fault === undefined ? '' : describeFault(memory, fault)
}

/** A UTF-8 sequence has at most this many bytes. */
const CHARACTER_BYTES_MAX = 4
const NEWLINE = 0x0a

/** Describes why a text is not JSON, and where. The description quotes at most one character of the text. */
function describeFault(memory: Buffer, { text, start, end, at }: Numbers): string {
  const [character = ''] = memory.toString('utf8', at, Math.min(end, at + CHARACTER_BYTES_MAX))
  const quoted = character === '"' ? "'\"'" : JSON.stringify(character)
  const found = at < end ? `unexpected ${quoted}` : 'the text ends too early'
  let line = 1
  let column = 1
  for (let i = start; i < at; i += 1) {
    const byte = memory.readUInt8(i)
    if (byte === NEWLINE) line += 1
    if (byte === NEWLINE) column = 1
    // All bytes of a character but the first begin with these bits.
    else if ((byte & 0xc0) !== 0x80) column += 1
  }
  return `${found} at line ${line}, column ${column}: expected ${textAt(memory, text)}`
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
