import type { Metadata } from '../entry.ts'
import { contractLimits } from '../limits.ts'
import { describeThrown, isError, PlainValues, tooLarge } from './plain-values.ts'

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
 * @param reducesErrors whether errors have no properties of their own, except their code
 * @throws LimitError
 */
export function plainMetadata(
  context: Metadata,
  fields: object | undefined,
  error: Error | undefined,
  reducesErrors = false,
): PlainMetadata {
  const metadata: Metadata = { ...context }
  if (error !== undefined) metadata['error'] = error
  if (fields !== undefined && fields !== null) addFields(metadata, fields)
  let main = error
  let values: PlainValues | undefined
  const names = Object.keys(metadata)
  if (names.length === 0) return { metadata: undefined, stack: undefined }
  let nameCharacters = 0
  for (const name of names) {
    nameCharacters += name.length
    if (nameCharacters > contractLimits.metadataBytesMax) throw tooLarge()
    const value = metadata[name]
    // The usual case needs no converter: a few short texts and numbers.
    if (isShort(value)) continue
    if (main === undefined && isError(value)) main = value
    values ??= new PlainValues(reducesErrors)
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

/** A copy with the own members of an object, up to one more than an entry may have. Reads each once. Never throws. */
export function copyFields(fields: object): Metadata {
  const copy: Metadata = {}
  addFields(copy, fields)
  return copy
}

function addFields(target: Metadata, fields: object): void {
  // A caller without types may pass anything. The members of a text would be its characters.
  if (isError(fields)) target['error'] = fields
  else if (typeof fields !== 'object' && typeof fields !== 'function') target['fields'] = fields
  else {
    try {
      addMembersOf(target, fields)
    } catch {
      addReadable(target, fields)
    }
  }
}

/** Adds what a nested value of this kind would have as members. */
function addMembersOf(target: Metadata, fields: object): void {
  if (!('toJSON' in fields) || typeof fields.toJSON !== 'function') return addKnown(target, fields)
  const replaced: unknown = fields.toJSON('')
  if (typeof replaced === 'object' && replaced !== null) addKnown(target, replaced)
  else target['fields'] = replaced
}

function addKnown(target: Metadata, fields: object): void {
  if (fields instanceof Map) addMapMembers(target, fields)
  else addMembers(target, fields as Metadata)
}

function addMapMembers(target: Metadata, fields: ReadonlyMap<unknown, unknown>): void {
  let members = 0
  for (const [key, value] of fields) {
    addMember(target, String(key), value)
    // One more than an entry may have. It is rejected then.
    members += 1
    if (members > contractLimits.metadataNamesMax) return
  }
}

/**
 * Adds own members, up to one more than an entry may have: the entry is rejected then. A loop over the names of an object with a million
 * members costs a tenth of a copy.
 */
function addMembers(target: Metadata, fields: Metadata): void {
  let members = 0
  for (const name in fields) {
    // Own members come first.
    if (!Object.hasOwn(fields, name)) return
    const value = fields[name]
    addMember(target, name, value)
    if (value !== undefined) members += 1
    if (members > contractLimits.metadataNamesMax) return
  }
}

/** For objects with a getter that throws. */
function addReadable(target: Metadata, fields: object): void {
  try {
    const readable = new PlainValues().copy(fields, 1)
    for (const name of Object.keys(readable)) addMember(target, name, readable[name])
  } catch (error) {
    // Too large, or a proxy that throws even for its names.
    target['fields'] = describeThrown(error)
  }
}

function addMember(target: Metadata, name: string, value: unknown): void {
  // An assignment to it would set the prototype.
  if (name === '__proto__')
    Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true })
  else target[name] = value
}

function readStack(error: Error): string | undefined {
  try {
    const { stack } = error
    return typeof stack === 'string' ? stack : undefined
  } catch {
    return undefined
  }
}
