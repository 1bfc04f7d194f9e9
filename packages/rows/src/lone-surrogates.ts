import { type Entry, entryFields } from '@sluice/schema'
import { isRawJson } from './exact-json.ts'

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
  return findInFields(entry) ?? pathAsSent(entry, metadata, findInValue(metadata, ''))
}

/** Checks the names of all fields, and the values of the fields with a column. */
function findInFields(entry: Entry): string | undefined {
  for (const [name, value] of Object.entries(entry)) {
    if (!name.isWellFormed()) return ''
    if (entryFields.has(name) && typeof value === 'string' && !value.isWellFormed()) return `/${name}`
  }
  return undefined
}

function findInValue(value: unknown, path: string): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : path
  if (typeof value !== 'object' || value === null || isRawJson(value)) return undefined
  for (const [name, member] of Object.entries(value)) {
    if (!name.isWellFormed()) return path
    const found = findInValue(member, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
    if (found !== undefined) return found
  }
  return undefined
}

/** Converts a path in the folded metadata to a path in the entry as the client sent it, where unknown fields are at the top level. */
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
