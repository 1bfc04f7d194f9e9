import { type Entry, type EntryError, entryFields } from './entry.ts'
import { isInexact, isRawJson } from './exact-json.ts'
import { limits } from './limits.ts'
import { toClickHouseTime, parseTimestamp } from './timestamps.ts'

/** What the server adds to each entry of a request. */
export interface RequestStamp {
  readonly projectId: string
  /** How many days the project keeps its rows. */
  readonly retentionDays: number
  readonly receivedAtMs: number
}

/** A valid entry as one line of ClickHouse's TabSeparated, newline included; or what is wrong with it. */
export type ShapedRow = { readonly row: string } | { readonly error: EntryError }

/** The columns that a row gives, in its order: those that all rows of a request share first. */
export const rowColumns = [
  'project_id',
  'received_at',
  'expires_on',
  'id',
  'timestamp',
  'level',
  'environment',
  'source',
  'service',
  'url',
  'pathname',
  'message',
  'stack',
  'metadata_text',
] as const

/**
 * Thrown when an entry has a number that JavaScript cannot hold exactly: the body must be parsed again by
 * `parseJsonExactly`, and shaped from that.
 */
export class InexactNumberError extends Error {
  override name = 'InexactNumberError'
}

const DAY_MS = 86_400_000

/** What all rows of a request share. */
export interface RowStart {
  /** The first columns, up to the id. */
  readonly text: string
  /** The time of receipt as ClickHouse reads it: the timestamp of entries that have none. */
  readonly receivedAt: string
}

export function startRows({ projectId, retentionDays, receivedAtMs }: RequestStamp): RowStart {
  // One day more than the retention: a row of 23:59 is kept as many whole days as one of 00:00.
  const expiresOn = new Date(receivedAtMs + (retentionDays + 1) * DAY_MS).toISOString().slice(0, 10)
  const receivedAt = toClickHouseTime(receivedAtMs)
  return { text: `${escapeTsv(projectId)}\t${receivedAt}\t${expiresOn}\t`, receivedAt }
}

/**
 * Shapes an entry, valid in its structure, into its row: folds unknown fields into the metadata, checks the metadata's
 * limits and the timestamp. Takes the entry's metadata over: it must not be used afterwards.
 *
 * @param start from `startRows`
 * @param mayHoldLoneSurrogates whether the request's text escapes any surrogate; without one no check is needed
 * @throws InexactNumberError
 */
export function shapeRow(
  entry: Entry,
  id: string,
  start: RowStart,
  mayHoldLoneSurrogates: boolean,
): ShapedRow {
  const metadata = foldMetadata(entry)
  if (isTooDeep(metadata, 1)) {
    return overMetadataLimit(entry, 'too_deep', `must have at most ${limits.metadataDepthMax} levels`)
  }
  const metadataText = JSON.stringify(metadata)
  if (isTooLarge(metadataText)) {
    return overMetadataLimit(entry, 'too_large', `must have at most ${limits.metadataBytesMax} bytes as JSON`)
  }
  if (hasTooManyNames(metadata, metadataText)) {
    return overMetadataLimit(entry, 'too_many_names', `must have at most ${limits.metadataNamesMax} names`)
  }

  const timestamp = typeof entry.timestamp === 'string' ? parseTimestamp(entry.timestamp) : start.receivedAt
  if (timestamp === undefined) {
    return fail('/timestamp', 'invalid_timestamp', 'must be an ISO 8601 date-time of 1970–2261')
  }
  if (mayHoldLoneSurrogates) {
    const path = loneSurrogateField(entry) ?? pathAsSent(entry, metadata, loneSurrogatePath(metadata, ''))
    if (path !== undefined) return fail(path, 'invalid_unicode', 'must not hold half of a surrogate pair')
  }
  const row =
    `${start.text}${id}\t${timestamp}\t${entry.level}\t${entry.environment ?? ''}\t${entry.source ?? ''}\t` +
    `${escapeTsv(entry.service ?? '')}\t${escapeTsv(entry.url ?? '')}\t${escapeTsv(entry.pathname ?? '')}\t` +
    `${escapeTsv(entry.message)}\t${escapeTsv(entry.stack ?? '')}\t${escapeTsv(metadataText)}\n`
  return { row }
}

/**
 * A row as people read it: a JSON object of its columns, all of them strings, which ClickHouse takes as JSONEachRow.
 * Undefined for what is no row.
 */
export function rowAsJson(row: string): string | undefined {
  const fields = row.replace(/\n$/, '').split('\t')
  if (fields.length !== rowColumns.length) return undefined
  return JSON.stringify(Object.fromEntries(rowColumns.map((name, i) => [name, unescapeTsv(fields[i] ?? '')])))
}

/** Nearly all texts need no escape, and three looks for a character cost a fraction of one regular expression. */
function escapeTsv(text: string): string {
  if (!text.includes('\\') && !text.includes('\t') && !text.includes('\n')) return text
  return text.replace(/[\\\t\n]/g, (character) => escapes[character] ?? character)
}

function unescapeTsv(text: string): string {
  return text.replace(/\\[\\tn]/g, (escape) => unescapes[escape] ?? escape)
}

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n' }
const unescapes: Readonly<Record<string, string>> = { '\\\\': '\\', '\\t': '\t', '\\n': '\n' }

function fail(path: string, code: EntryError['code'], message: string): ShapedRow {
  return { error: { path, code, message } }
}

/** The entry's metadata, unknown fields included. */
function foldMetadata(entry: Entry): Record<string, unknown> {
  const metadata: Record<string, unknown> = entry.metadata ?? {}
  const fields: Record<string, unknown> = entry
  for (const name in fields) {
    if (entryFields.has(name) || Object.hasOwn(metadata, name)) continue
    // Defined, not assigned: assigning to `__proto__` would set the prototype.
    Object.defineProperty(metadata, name, { value: fields[name], enumerable: true, writable: true })
  }
  return metadata
}

/**
 * Whether a value, itself at a level, is nested deeper than metadata may be.
 *
 * @throws InexactNumberError when it has a number that is not exact, unless it is found to be too deep before
 */
function isTooDeep(value: object, level: number): boolean {
  if (level > limits.metadataDepthMax) return true
  if (!Array.isArray(value)) {
    for (const name in value)
      if (isMemberTooDeep((value as Record<string, unknown>)[name], level)) return true
    return false
  }
  // By index: for…in would make a string of each index, which costs several times all the rest of the scan.
  for (let i = 0; i < value.length; i += 1) if (isMemberTooDeep(value[i], level)) return true
  return false
}

function isMemberTooDeep(member: unknown, level: number): boolean {
  if (typeof member === 'number' && isInexact(member)) throw new InexactNumberError()
  return typeof member === 'object' && member !== null && !isRawJson(member) && isTooDeep(member, level + 1)
}

function isTooLarge(metadataText: string): boolean {
  // A UTF-16 code unit is at most three bytes of UTF-8, so short texts need no measuring.
  return (
    metadataText.length * 3 > limits.metadataBytesMax &&
    Buffer.byteLength(metadataText) > limits.metadataBytesMax
  )
}

function hasTooManyNames(metadata: object, metadataText: string): boolean {
  return (
    metadataText.length > limits.metadataNamesMax * 4 &&
    Object.keys(metadata).length > limits.metadataNamesMax
  )
}

/** Unknown fields count as metadata: where they are all of it, there is no `/metadata` in what was sent. */
function overMetadataLimit(entry: Entry, code: EntryError['code'], message: string): ShapedRow {
  return Object.hasOwn(entry, 'metadata')
    ? fail('/metadata', code, message)
    : fail('', code, `metadata, which unknown fields are a part of, ${message}`)
}

/** A path into the metadata, as a path into the entry as it was sent: unknown fields were not in the metadata then. */
function pathAsSent(
  entry: Readonly<Record<string, unknown>>,
  metadata: Readonly<Record<string, unknown>>,
  path: string | undefined,
): string | undefined {
  const name = path?.split('/')[1]?.replaceAll('~1', '/').replaceAll('~0', '~')
  const wasFolded =
    name !== undefined &&
    Object.hasOwn(entry, name) &&
    !entryFields.has(name) &&
    entry[name] === metadata[name]
  return path === undefined || wasFolded ? path : `/metadata${path}`
}

/** The path of what holds half of a surrogate pair outside of the metadata: a field with a column, or a name. */
function loneSurrogateField(entry: Entry): string | undefined {
  for (const [name, value] of Object.entries(entry)) {
    if (!name.isWellFormed()) return ''
    if (entryFields.has(name) && typeof value === 'string' && !value.isWellFormed()) return `/${name}`
  }
  return undefined
}

function loneSurrogatePath(value: unknown, path: string): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : path
  if (typeof value !== 'object' || value === null || isRawJson(value)) return undefined
  for (const [name, member] of Object.entries(value)) {
    if (!name.isWellFormed()) return path
    const found = loneSurrogatePath(member, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
    if (found !== undefined) return found
  }
  return undefined
}
