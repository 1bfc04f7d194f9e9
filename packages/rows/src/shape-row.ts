import { type Entry, type EntryError, limits } from '@sluice/schema'
import { findLoneSurrogate } from './lone-surrogates.ts'
import { foldMetadata, hasTooManyNames, isTooDeep, isTooLarge } from './metadata.ts'
import { escapeTsv, type RowPrefix } from './row-codec.ts'
import { parseTimestamp } from './timestamps.ts'

/** A valid entry as one line in ClickHouse's TabSeparated format, newline included; or the reason why it is invalid. */
export type ShapedRow =
  | { readonly row: string }
  | {
      readonly error: EntryError
      /** The length of its metadata as JSON, if it was written before the entry was found to be invalid. It is most of the work. */
      readonly metadataCharacters: number
    }

/**
 * Makes a row of an entry that has passed `EntryValidator`: adds unknown fields to the metadata, and checks the limits of the
 * metadata and the timestamp. Takes ownership of the entry's metadata object: the caller must not use it afterwards.
 *
 * @param prefix from `makeRowPrefix`
 * @param mayHoldLoneSurrogates whether the body of the request escapes any surrogate; if not, the check is skipped
 */
export function shapeRow(
  entry: Entry,
  id: string,
  prefix: RowPrefix,
  mayHoldLoneSurrogates: boolean,
): ShapedRow {
  const metadata = foldMetadata(entry)
  const metadataFails = (code: MetadataErrorCode, metadataCharacters: number): ShapedRow => ({
    error: metadataError(code, Object.hasOwn(entry, 'metadata')),
    metadataCharacters,
  })
  if (isTooDeep(metadata, 1)) return metadataFails('too_deep', 0)
  const metadataText = JSON.stringify(metadata)
  const { length } = metadataText
  if (isTooLarge(metadataText)) return metadataFails('too_large', length)
  if (hasTooManyNames(metadata, metadataText)) return metadataFails('too_many_names', length)

  const timestamp = typeof entry.timestamp === 'string' ? parseTimestamp(entry.timestamp) : prefix.receivedAt
  if (timestamp === undefined) {
    return fail('/timestamp', 'invalid_timestamp', 'must be an ISO 8601 date-time of 1970–2261', length)
  }
  if (mayHoldLoneSurrogates) {
    const path = findLoneSurrogate(entry, metadata)
    if (path !== undefined)
      return fail(path, 'invalid_unicode', 'must not contain half of a surrogate pair', length)
  }
  const row =
    `${prefix.text}${id}\t${timestamp}\t${entry.level}\t${entry.environment ?? ''}\t${entry.source ?? ''}\t` +
    `${escapeTsv(entry.service ?? '')}\t${escapeTsv(entry.url ?? '')}\t${escapeTsv(entry.pathname ?? '')}\t` +
    `${escapeTsv(entry.message)}\t${escapeTsv(entry.stack ?? '')}\t${escapeTsv(metadataText)}\n`
  return { row }
}

function fail(
  path: string,
  code: EntryError['code'],
  message: string,
  metadataCharacters: number,
): ShapedRow {
  return { error: { path, code, message }, metadataCharacters }
}

const metadataMessages = {
  too_deep: `must have at most ${limits.metadataDepthMax} levels`,
  too_large: `must have at most ${limits.metadataBytesMax} bytes as JSON`,
  too_many_names: `must have at most ${limits.metadataNamesMax} names`,
}
type MetadataErrorCode = keyof typeof metadataMessages

/** The error of metadata above a limit. An entry may have only unknown fields: the error then points to the entry itself. */
export function metadataError(code: MetadataErrorCode, hasMetadata: boolean): EntryError {
  const message = metadataMessages[code]
  return hasMetadata
    ? { path: '/metadata', code, message }
    : { path: '', code, message: `metadata, which includes unknown fields, ${message}` }
}
