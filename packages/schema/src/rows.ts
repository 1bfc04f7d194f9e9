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

/** A valid entry as one line for ClickHouse's JSONEachRow, newline included; or what is wrong with it. */
export type ShapedRow = { readonly row: string } | { readonly error: EntryError }

/**
 * Thrown when an entry has a number that JavaScript cannot hold exactly: the body must be parsed again by
 * `parseJsonExactly`, and shaped from that.
 */
export class InexactNumberError extends Error {
  override name = 'InexactNumberError'
}

const DAY_MS = 86_400_000

/** The part of a row that all rows of a request share, up to the id's value. */
export function rowPrefix({ projectId, retentionDays, receivedAtMs }: RequestStamp): string {
  // One day more than the retention: a row of 23:59 is kept as many whole days as one of 00:00.
  const expiresOn = new Date(receivedAtMs + (retentionDays + 1) * DAY_MS).toISOString().slice(0, 10)
  const receivedAt = toClickHouseTime(receivedAtMs)
  return `{"project_id":${JSON.stringify(projectId)},"received_at":"${receivedAt}","expires_on":"${expiresOn}","id":"`
}

/**
 * Shapes an entry, valid in its structure, into its row: folds unknown fields into the metadata, checks the metadata's
 * limits and the timestamp. Takes the entry over: it must not be used afterwards.
 *
 * @param prefix from `rowPrefix`
 * @param mayHoldLoneSurrogates whether the request's text escapes any surrogate; without one no check is needed
 * @throws InexactNumberError
 */
export function shapeRow(
  entry: Entry,
  id: string,
  prefix: string,
  mayHoldLoneSurrogates: boolean,
): ShapedRow {
  const metadata = takeMetadata(entry)
  if (isTooDeep(metadata, 1)) {
    return fail('/metadata', 'too_deep', `must have at most ${limits.metadataDepthMax} levels`)
  }
  const metadataText = JSON.stringify(metadata)
  const error = checkMetadataSize(metadata, metadataText)
  if (error !== undefined) return { error }

  if (typeof entry.timestamp === 'string') {
    const timestamp = parseTimestamp(entry.timestamp)
    if (timestamp === undefined) {
      return fail('/timestamp', 'invalid_timestamp', 'must be an ISO 8601 date-time of 1970–2261')
    }
    entry.timestamp = timestamp
  }
  const fields = JSON.stringify(entry)
  if (mayHoldLoneSurrogates) {
    const path = loneSurrogatePath(entry, '') ?? pathAsSent(entry, loneSurrogatePath(metadata, ''))
    if (path !== undefined) return fail(path, 'invalid_unicode', 'must not hold half of a surrogate pair')
  }
  return { row: `${prefix}${id}","metadata_text":${metadataText},${fields.slice(1)}\n` }
}

function fail(path: string, code: EntryError['code'], message: string): ShapedRow {
  return { error: { path, code, message } }
}

/** Takes the metadata out of the entry, unknown fields included, and leaves the fields that have columns. */
function takeMetadata(entry: Entry): Record<string, unknown> {
  const metadata: Record<string, unknown> = entry.metadata ?? {}
  const fields: Record<string, unknown> = entry
  for (const name in fields) {
    if (entryFields.has(name)) continue
    // Defined, not assigned: assigning to `__proto__` would set the prototype.
    if (!Object.hasOwn(metadata, name)) {
      Object.defineProperty(metadata, name, { value: fields[name], enumerable: true, writable: true })
    }
    fields[name] = undefined
  }
  // JSON.stringify leaves undefined fields out; deleting them would cost the object its shape.
  fields['metadata'] = undefined
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

function checkMetadataSize(metadata: object, text: string): EntryError | undefined {
  // A UTF-16 code unit is at most three bytes of UTF-8, so short texts need no measuring.
  if (text.length * 3 > limits.metadataBytesMax && Buffer.byteLength(text) > limits.metadataBytesMax) {
    const message = `must have at most ${limits.metadataBytesMax} bytes as JSON`
    return { path: '/metadata', code: 'too_large', message }
  }
  if (text.length > limits.metadataNamesMax * 4 && Object.keys(metadata).length > limits.metadataNamesMax) {
    const message = `must have at most ${limits.metadataNamesMax} names`
    return { path: '/metadata', code: 'too_many_names', message }
  }
  return undefined
}

/** A path into the metadata, as a path into the entry as it was sent: unknown fields were not in the metadata then. */
function pathAsSent(entry: Entry, path: string | undefined): string | undefined {
  const name = path?.split('/')[1]?.replaceAll('~1', '/').replaceAll('~0', '~')
  const wasFolded = name !== undefined && Object.hasOwn(entry, name) && !entryFields.has(name)
  return path === undefined || wasFolded ? path : `/metadata${path}`
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
