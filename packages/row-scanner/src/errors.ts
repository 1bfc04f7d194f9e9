import { type EntryError, type EntryErrorCode, entrySchema, limits } from '@sluice/schema'
import { describeFault } from './faults.ts'
import { fieldNames } from './fields.ts'
import { otlpParts } from './messages.ts'

/** An error of an entry in a body. */
export interface ScanError extends EntryError {
  /** The place of the entry among those of the body. */
  readonly index: number
}

/** In the order of `assembly/codes.ts`. */
const codes: readonly EntryErrorCode[] = [
  'invalid_json',
  'invalid_timestamp',
  'invalid_unicode',
  'missing',
  'not_allowed',
  'too_deep',
  'too_large',
  'too_long',
  'too_many_names',
  'wrong_type',
]

/** Where an error is, if not at a field: as in `assembly/errors.ts`. */
const METADATA = -2
const PATH = -3
const OTLP_PART = -100
/** The messages of errors in the envelopes of events of Splunk. */
export const eventErrors = { missing: 'has no event', blank: 'has a blank event' } as const
/** What records of shippers have instead of fields. */
const wordings: Readonly<Record<number, Pick<EntryError, 'path' | 'message'>>> = {
  [-4]: { path: '/timestamp', message: 'must be nanoseconds of the years 1970–2261' },
  [-5]: { path: '', message: 'must be an array of a time, a line and structured metadata' },
  [-6]: {
    path: '',
    message: 'has a stream without valid labels, such as {"app": "x"} in JSON or {app="x"}',
  },
  [-10]: { path: '', message: eventErrors.missing },
  [-11]: { path: '', message: eventErrors.blank },
  [-12]: { path: '', message: 'is not stored' },
  [-13]: { path: '', message: 'must be UTF-8' },
}
/** The numbers of an `EntryError` in `assembly/errors.ts`. */
const NUMBERS = 10

/** Words the errors in the scanner's memory. */
export function readErrors(memory: Buffer, at: number, count: number): ScanError[] {
  return Array.from({ length: count }, (_, i) => {
    const numbers = Array.from({ length: NUMBERS }, (__, n) => memory.readInt32LE(at + (i * NUMBERS + n) * 4))
    const [index = 0, code = 0, where = 0, pathStart, pathEnd, ...faultNumbers] = numbers
    const name = codes[code] ?? 'invalid_json'
    const wording = wordings[where]
    if (wording !== undefined) return { index, code: name, ...wording }
    if (name === 'invalid_json') {
      const [fault = 0, faultAt = 0, line = 0, column = 0, end = 0] = faultNumbers
      const description = describeFault(memory, end, { fault, at: faultAt, line, column })
      return { index, path: '', code: name, message: `is not JSON: ${description}` }
    }
    const part = otlpParts[OTLP_PART - where]
    if (part !== undefined) return { index, path: '', code: name, message: part }
    const path =
      where === PATH
        ? memory.toString('utf8', pathStart, pathEnd)
        : where === METADATA
          ? '/metadata'
          : where < 0
            ? ''
            : `/${fieldNames[where]}`
    const isMissing = name === 'missing'
    return { index, path: isMissing ? '' : path, code: name, message: messageOf(name, path, where) }
  })
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
