import type { Metadata } from '../entry.ts'
import { describeThrown, isError, PlainValues } from './plain-values.ts'

/** Metadata that JSON can hold. */
export interface PlainMetadata {
  readonly metadata: Metadata | undefined
  /** The stack trace of the first error. */
  readonly stack: string | undefined
}

/**
 * Merges the context of a logger with the fields of a call. Fields win.
 *
 * @param error becomes the field `error`, unless there is one
 * @throws LimitError
 */
export function plainMetadata(
  context: Metadata,
  fields: object | undefined,
  error: Error | undefined,
): PlainMetadata {
  const metadata: Metadata = { ...context, ...(error && { error }), ...(fields && copyFields(fields)) }
  let main = error
  let values: PlainValues | undefined
  const names = Object.keys(metadata)
  if (names.length === 0) return { metadata: undefined, stack: undefined }
  for (const name of names) {
    const value = metadata[name]
    // The usual case needs no converter: a few short texts and numbers.
    if (isShort(value)) continue
    if (main === undefined && isError(value)) main = value
    values ??= new PlainValues()
    metadata[name] = values.convert(value, name, main)
  }
  return { metadata, stack: main && readStack(main) }
}

/** 256 of them, the most that an entry may have, are 1 MB. */
const SHORT_CHARACTERS_MAX = 4_096

function isShort(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= SHORT_CHARACTERS_MAX
  return typeof value === 'number' || typeof value === 'boolean' || value === undefined || value === null
}

/** A copy with the own members of an object. Reads each once. Never throws. */
export function copyFields(fields: object): object {
  if (isError(fields)) return { error: fields }
  try {
    return { ...fields }
  } catch {
    return copyReadable(fields)
  }
}

/** For objects with a getter that throws. */
function copyReadable(fields: object): object {
  try {
    return new PlainValues().copy(fields, 1)
  } catch (error) {
    // Too large, or a proxy that throws even for its names.
    return { fields: describeThrown(error) }
  }
}

function readStack(error: Error): string | undefined {
  try {
    const { stack } = error
    return typeof stack === 'string' ? stack : undefined
  } catch {
    return undefined
  }
}
