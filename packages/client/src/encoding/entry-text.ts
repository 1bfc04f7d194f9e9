import type { Entry, Metadata } from '../entry.ts'
import { contractLimits } from '../limits.ts'
import { checkEntry } from './check-entry.ts'
import { LimitError } from './limit-error.ts'
import { tooLarge, tooManyNames } from './plain-values.ts'
import { repairSurrogates, utf8Bytes } from './utf8.ts'

/** A code unit has at most three bytes of UTF-8. Metadata of a text that is shorter than this is not too large. */
const CHARACTERS_WITHIN_LIMITS = Math.floor(contractLimits.metadataBytesMax / 3)
/** The shortest member of an object, such as `"":1,`. */
const MEMBER_CHARACTERS_MIN = 5

/**
 * @param entry with metadata that JSON can hold
 * @returns JSON text
 * @throws LimitError
 */
export function entryText(entry: Entry): string {
  const error = checkEntry(entry)
  if (error !== undefined) throw new LimitError(error.path, error.code, error.message)
  const text = repairSurrogates(JSON.stringify(entry))
  const { metadata } = entry
  if (metadata !== undefined && metadata !== null) checkMetadata(metadata, text)
  return text
}

function checkMetadata(metadata: Metadata, text: string): void {
  if (
    text.length > contractLimits.metadataNamesMax * MEMBER_CHARACTERS_MIN &&
    Object.values(metadata).filter((value) => value !== undefined).length > contractLimits.metadataNamesMax
  )
    throw tooManyNames()
  if (
    text.length > CHARACTERS_WITHIN_LIMITS &&
    utf8Bytes(repairSurrogates(JSON.stringify(metadata))) > contractLimits.metadataBytesMax
  ) {
    const error = tooLarge()
    error.mayReduceErrors = true
    throw error
  }
}
