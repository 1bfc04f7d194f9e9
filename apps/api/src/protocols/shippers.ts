// What the APIs of shippers have in common: keys, lines, and records of loggers as entries.
import { addMember, entryOfRecord, isPlainObject, type Members, setMember } from '@sluice/records'
import { type EntryError, entryFields, limits } from '@sluice/schema'
import type { Answer } from '../answer.ts'
import type { SourceRecord } from '../intake/records.ts'
import { type FoundValue, parseFound, STEP_BYTES } from '../intake/value-finder.ts'
import { Problem, type ProblemCode, problems } from '../problems.ts'
import type { Protocol } from './protocol.ts'

const KEY_PREFIX = 'slk_'

/**
 * Makes a bearer token of an Authorization header with another scheme. A key has neither a colon nor an equals sign, so it is never
 * mistaken for Base64 of a name and a key.
 *
 * @param header the Authorization header
 * @param schemes the schemes whose credentials are the key itself, in lower case
 * @param encodedSchemes the schemes whose credentials are Base64 of `name:key` or of the key, in lower case
 * @returns a header for `Authenticator.authenticate`, which rejects a token that is not a key
 */
export function asBearer(
  header: string | undefined,
  schemes: readonly string[],
  encodedSchemes: readonly string[],
): string | undefined {
  const [, scheme = '', credentials = ''] = /^([A-Za-z]+) +(\S+)$/.exec(header ?? '') ?? []
  const name = scheme.toLowerCase()
  if (schemes.includes(name) && credentials.startsWith(KEY_PREFIX)) return `Bearer ${credentials}`
  if (!encodedSchemes.includes(name)) return header
  const decoded = Buffer.from(credentials, 'base64').toString('latin1')
  return `Bearer ${decoded.slice(decoded.lastIndexOf(':') + 1)}`
}

/** Rejects requests with the key in a parameter of the URL. @param header where it belongs */
export function rejectKeyInUrl(parameter: string, header: string): NonNullable<Protocol['check']> {
  return ({ query }) => {
    if (query[parameter] === undefined) return
    throw new Problem('unauthorized', `Send the key in the ${header}. A key in a URL ends up in logs.`)
  }
}

/** The status of a rejected request. Shippers drop a batch after 400, and some divide it after 413. */
export function statusOf(code: ProblemCode): number {
  return code === 'too_many_entries' ? 413 : problems[code].status
}

export function jsonAnswer(status: number, body: object): Answer {
  return { status, type: 'application/json', body: JSON.stringify(body) }
}

/** @param record what an error without a path is about */
export function describeError({ path, message }: EntryError, record: string): string {
  return `${path === '' ? record : path} ${message}`.trimStart()
}

/** Where a line is in a body. */
export interface Line {
  readonly start: number
  /** The place after its last byte, without the end of the line. */
  readonly end: number
}

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d

/**
 * The lines of a body that are not empty. They end with LF or CRLF, optional for the last one. Undefined ends a step in which only empty
 * lines were found.
 */
export function* linesOf(body: Buffer): Generator<Line | undefined> {
  let stepEnd = STEP_BYTES
  for (let start = 0; start < body.length;) {
    const byte = body[start]
    if (byte === NEWLINE || (byte === CARRIAGE_RETURN && body[start + 1] === NEWLINE)) {
      start += byte === NEWLINE ? 1 : 2
      if (start < stepEnd) continue
      stepEnd = start + STEP_BYTES
      yield undefined
      continue
    }
    const newline = body.indexOf(NEWLINE, start)
    const lineEnd = newline < 0 ? body.length : newline
    const end = body[lineEnd - 1] === CARRIAGE_RETURN ? lineEnd - 1 : lineEnd
    if (end > start) yield { start, end }
    start = lineEnd + 1
    stepEnd = start + STEP_BYTES
  }
}

/** Names of a record that become columns. */
const COLUMN_NAMES_MAX = 32
/** The names of a record that may be a valid entry. */
export const NAMES_MAX = limits.metadataNamesMax + COLUMN_NAMES_MAX

/**
 * Whether an object has more names than a valid entry can have. Objects with thousands of names take milliseconds for each copy, so this is
 * checked before a record is made of them.
 */
export function hasTooManyNames(members: Readonly<Members>): boolean {
  return Object.keys(members).length > NAMES_MAX
}

/** A record with an object that `hasTooManyNames`. */
export const tooManyNames = rejection('too_many_names', `must have at most ${limits.metadataNamesMax} names`)

export function rejection(
  code: EntryError['code'],
  message: string,
  path = '',
): { readonly error: EntryError } {
  return { error: { path, code, message } }
}

/** What `make` makes of the object that was found in a body, or why it cannot be a record. */
export function recordOf<Made extends SourceRecord | undefined>(
  body: Buffer,
  found: FoundValue,
  make: (members: Members) => Made,
): Made | { readonly error: EntryError } {
  const parsed = parseFound(body, found)
  if ('error' in parsed) return parsed
  if (!isPlainObject(parsed.value)) return rejection('wrong_type', 'must be an object')
  return hasTooManyNames(parsed.value) ? tooManyNames : make(parsed.value)
}

/** A record as an entry: its fields by the names that loggers use, everything else as metadata. */
export function toEntry(record: Members): Members {
  return entryOfRecord(record, { defaultLevel: 'log' })
}

/**
 * Adds what the envelope of a record says to the metadata of its entry. Undefined values are not added.
 *
 * @param entry from `toEntry`. Its unknown fields become metadata too, so they come first
 */
export function withMetadata(entry: Members, added: Readonly<Members>): Members {
  const given = entry['metadata']
  const metadata: Members = isPlainObject(given) ? { ...given } : {}
  const fields: Members = {}
  for (const name of Object.keys(entry))
    setMember(entryFields.has(name) ? fields : metadata, name, entry[name])
  for (const name of Object.keys(added)) {
    const value = added[name]
    if (value !== undefined) addMember(metadata, name, value)
  }
  return Object.keys(metadata).length === 0 ? entry : { ...fields, metadata }
}
