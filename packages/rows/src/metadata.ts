import { type Members, setMember } from '@sluice/records'
import { type Entry, entryFields, limits } from '@sluice/schema'
import { isRawJson } from './exact-json.ts'

/** The entry's metadata with its unknown fields added. Changes the metadata object of the entry. */
export function foldMetadata(entry: Entry): Members {
  const metadata: Members = entry.metadata ?? {}
  const fields: Members = entry
  for (const name in fields) {
    if (entryFields.has(name) || Object.hasOwn(metadata, name)) continue
    setMember(metadata, name, fields[name])
  }
  return metadata
}

/**
 * Whether a value is nested deeper than metadata may be.
 *
 * @param level the level of the value itself; metadata is level 1
 */
export function isTooDeep(value: object, level: number): boolean {
  if (level > limits.metadataDepthMax) return true
  if (!Array.isArray(value)) {
    for (const name in value)
      if (isMemberTooDeep((value as Record<string, unknown>)[name], level)) return true
    return false
  }
  // By index: for…in would create a string per index, which costs several times the rest of the scan.
  for (let i = 0; i < value.length; i += 1) if (isMemberTooDeep(value[i], level)) return true
  return false
}

function isMemberTooDeep(member: unknown, level: number): boolean {
  return typeof member === 'object' && member !== null && !isRawJson(member) && isTooDeep(member, level + 1)
}

export function isTooLarge(metadataText: string): boolean {
  // A UTF-16 code unit is at most three bytes of UTF-8, so a short string needs no measurement.
  return (
    metadataText.length * 3 > limits.metadataBytesMax &&
    Buffer.byteLength(metadataText) > limits.metadataBytesMax
  )
}

/** @param metadataText the metadata as JSON: a short string cannot have too many names, which saves the count */
export function hasTooManyNames(metadata: object, metadataText: string): boolean {
  return (
    metadataText.length > limits.metadataNamesMax * 4 &&
    Object.keys(metadata).length > limits.metadataNamesMax
  )
}
