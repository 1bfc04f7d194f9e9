import { type Entry, entryFields } from '@sluice/schema'
import { isRawJson } from './exact-json.ts'

/** A longer path ends at an object around the value. A request may have thousands of records with the same long name. */
const PATH_CHARACTERS_MAX = 512

/**
 * Finds a string or a name that contains half of a surrogate pair, which has no UTF-8 form.
 *
 * @param metadata the entry's metadata with its unknown fields added
 * @returns a JSON Pointer into the entry as the client sent it; undefined if there is no lone surrogate
 */
export function findLoneSurrogate(
  entry: Entry,
  metadata: Readonly<Record<string, unknown>>,
): string | undefined {
  return findInFields(entry) ?? findInMetadata(entry, metadata)
}

/** Checks the names of all fields, and the values of the fields with a column. */
function findInFields(entry: Entry): string | undefined {
  for (const [name, value] of Object.entries(entry)) {
    if (!name.isWellFormed()) return ''
    if (entryFields.has(name) && typeof value === 'string' && !value.isWellFormed()) return `/${name}`
  }
  return undefined
}

/** Unknown fields are at the top level of the entry as the client sent it. */
function findInMetadata(
  entry: Readonly<Record<string, unknown>>,
  metadata: Readonly<Record<string, unknown>>,
): string | undefined {
  for (const name of Object.keys(metadata)) {
    if (!name.isWellFormed()) return '/metadata'
    const found = findInValue(metadata[name])
    if (found === undefined) continue
    const wasFolded = Object.hasOwn(entry, name) && !entryFields.has(name) && entry[name] === metadata[name]
    return `${wasFolded ? '' : '/metadata'}${pointer(name, found)}`
  }
  return undefined
}

/** @returns a JSON Pointer into the value. It is made only if something is found */
function findInValue(value: unknown): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : ''
  if (typeof value !== 'object' || value === null || isRawJson(value)) return undefined
  if (Array.isArray(value)) return findInArray(value)
  for (const name of Object.keys(value)) {
    if (!name.isWellFormed()) return ''
    const found = findInValue((value as Readonly<Record<string, unknown>>)[name])
    if (found !== undefined) return pointer(name, found)
  }
  return undefined
}

/** By index: the names of all elements would cost several times the search. */
function findInArray(elements: readonly unknown[]): string | undefined {
  for (let i = 0; i < elements.length; i += 1) {
    const found = findInValue(elements[i])
    if (found !== undefined) return pointer(String(i), found)
  }
  return undefined
}

/** @param rest a path within the member @returns an empty path if it would be too long */
function pointer(name: string, rest: string): string {
  if (name.length + rest.length >= PATH_CHARACTERS_MAX) return ''
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}${rest}`
}
