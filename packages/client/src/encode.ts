import { environments, hasAtMostCharacters, levels, limits, sources } from '@sluice/schema/limits'
import type { Entry, EntryError, Metadata } from './entry.ts'

/** Thrown while an entry is encoded, if it exceeds a limit of the API. */
export class LimitError extends Error {
  readonly entryError: EntryError

  constructor(path: string, code: string, message: string) {
    super(message)
    this.entryError = { path, code, message }
  }
}

export function metadataTooLarge(): LimitError {
  const message = `must have at most ${limits.metadataBytesMax} bytes as JSON`
  return new LimitError('/metadata', 'too_large', message)
}

/** The message of whatever was thrown. Objects of the application may throw when they are read. Never throws. */
export function messageOf(error: unknown): string {
  try {
    // Of any type: the application may have replaced it.
    const message: unknown = error instanceof Error ? error.message || error.name : error
    return String(message)
  } catch {
    return 'an error that cannot be read'
  }
}

/** Never throws. */
export function toEntryError(error: unknown): EntryError {
  try {
    if (error instanceof LimitError) return error.entryError
  } catch {
    // A proxy that was revoked.
  }
  return { path: '', code: 'unreadable', message: messageOf(error) }
}

/** A code unit has at most three bytes of UTF-8. Metadata of an entry that is shorter than this is not too large. */
const CHARACTERS_WITHIN_LIMITS = Math.floor(limits.metadataBytesMax / 3)
/** The shortest member of an object, such as `"":1,`. */
const MEMBER_CHARACTERS_MIN = 5

/** @throws LimitError */
export function encodeEntry(entry: Entry): string {
  checkEntry(entry)
  const json = repairSurrogates(JSON.stringify(entry))
  const { metadata } = entry
  if (metadata !== undefined && metadata !== null) checkMetadata(metadata, json)
  return json
}

function checkMetadata(metadata: Metadata, json: string): void {
  const { metadataNamesMax, metadataBytesMax } = limits
  if (
    json.length > metadataNamesMax * MEMBER_CHARACTERS_MIN &&
    Object.values(metadata).filter((value) => value !== undefined).length > metadataNamesMax
  )
    throw new LimitError('/metadata', 'too_many_names', `must have at most ${metadataNamesMax} names`)
  const mayBeTooLarge = json.length > CHARACTERS_WITHIN_LIMITS
  if (mayBeTooLarge && utf8Bytes(repairSurrogates(JSON.stringify(metadata))) > metadataBytesMax)
    throw metadataTooLarge()
}

/** The fields with a column: the values of each, or the most characters of its string. */
const columns: ReadonlyMap<string, readonly unknown[] | number> = new Map<
  string,
  readonly unknown[] | number
>([
  ['level', levels],
  ['environment', environments],
  ['source', sources],
  ['message', limits.messageCharactersMax],
  ['service', limits.serviceCharactersMax],
  ['url', limits.urlCharactersMax],
  ['pathname', limits.pathnameCharactersMax],
  ['stack', limits.stackCharactersMax],
  // Longer than any ISO 8601 date-time that the API accepts.
  ['timestamp', 64],
])

/** Finds the first field that the API would reject. Metadata is checked when it is converted. */
function checkEntry(entry: Entry): void {
  for (const [name, limit] of columns) {
    const value = entry[name]
    if ((value === undefined || value === null) && name !== 'level' && name !== 'message') continue
    if (typeof limit !== 'number') {
      if (!limit.includes(value))
        throw new LimitError(`/${name}`, 'not_allowed', `must be one of ${limit.join(', ')}`)
    } else if (typeof value !== 'string')
      throw new LimitError(`/${name}`, 'wrong_type', 'must be of type string')
    else if (!hasAtMostCharacters(value, limit))
      throw new LimitError(`/${name}`, 'too_long', `must have at most ${limit} characters`)
  }
}

/** Separates the fields with a column from the others. The API stores the others in the metadata, where the same name wins. */
export function splitEntry(entry: Entry): { fields: Entry; others: Metadata | undefined } {
  const fields: Metadata = {}
  let others: Metadata | undefined
  let count = 0
  for (const name in entry) {
    // Own members come first.
    if (!Object.hasOwn(entry, name)) break
    const value = entry[name]
    // An absent field must not replace a default.
    if (name === 'metadata' || value === undefined || value === null) continue
    if (columns.has(name)) fields[name] = value
    // One more than an entry may have. It is rejected then.
    else if (count <= limits.metadataNamesMax) {
      count += 1
      others ??= Object.create(null) as Metadata
      others[name] = value
    }
  }
  const { metadata } = entry
  if (metadata !== undefined && metadata !== null && typeof metadata !== 'object')
    throw new LimitError('/metadata', 'wrong_type', 'must be of type object')
  return { fields: fields as Entry, others }
}

/** `{"logs":[` and `]}`. */
export const ENVELOPE_BYTES = 11

const { Buffer } = globalThis as { Buffer?: { byteLength: (string: string) => number } }
const encoder = new TextEncoder()

/** The size of a well-formed string in UTF-8. Node, Deno and Bun have a faster function than browsers. */
export const utf8Bytes: (string: string) => number =
  Buffer?.byteLength ?? ((string) => encoder.encode(string).length)

/**
 * Replaces half surrogate pairs by U+FFFD. They have no UTF-8 form, and the API would reject the entry. They come from strings that were
 * cut in the middle of a character.
 *
 * @param json from JSON.stringify, which escapes them
 */
export function repairSurrogates(json: string): string {
  if (!json.includes(String.raw`\ud`)) return json
  return json.replaceAll(/\\(?:u(d[89a-f][0-9a-f]{2})|[^])/g, (escape: string, half?: string) =>
    half === undefined ? escape : '\uFFFD',
  )
}
