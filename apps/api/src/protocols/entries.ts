import { entryOfRecord } from '@sluice/records'
import { entryFields, limits } from '@sluice/schema'
import type { SourceRecord } from '../intake/records.ts'

export type Members = Record<string, unknown>

/** For records that do not tell their level. */
const DEFAULT_LEVEL = 'log'

/** An object of JSON. An array is not, and neither is a number that was parsed exactly: it has no prototype. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

/** Sets a member under any name. An assignment to `__proto__` would set the prototype. */
export function setMember(members: Members, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true })
  } else members[name] = value
}

/**
 * Adds a member. If its name is taken, a number after the name makes it a new one: nothing is replaced.
 *
 * @param numbers the next number for each name, where hundreds of members may have the same name
 */
export function addMember(
  members: Members,
  name: string,
  value: unknown,
  numbers?: Map<string, number>,
): void {
  let free = name
  let number = numbers?.get(name) ?? FIRST_NUMBER
  for (; Object.hasOwn(members, free); number += 1) free = `${name}_${number}`
  if (free !== name) numbers?.set(name, number)
  setMember(members, free, value)
}
const FIRST_NUMBER = 2

/** Names of a record that become columns. */
const COLUMN_NAMES_MAX = 32
export const NAMES_MAX = limits.metadataNamesMax + COLUMN_NAMES_MAX

/**
 * Whether an object has more names than a valid entry can have. Objects with thousands of names take milliseconds for each copy, so this is
 * checked before a record is made of them.
 */
export function hasTooManyNames(members: Readonly<Members>): boolean {
  return Object.keys(members).length > NAMES_MAX
}

/** A record as an entry: its fields by the names that loggers use, everything else as metadata. */
export function toEntry(record: Members): Members {
  return entryOfRecord(record, { defaultLevel: DEFAULT_LEVEL })
}

/**
 * Adds what the envelope of a record says to the metadata of its entry. Undefined values are not added.
 *
 * @param entry from `toEntry`. Its unknown fields become metadata too, so they come first
 */
export function withMetadata(entry: Members, added: Readonly<Members>): Members {
  const given = entry['metadata']
  const metadata: Members = isObject(given) ? { ...given } : {}
  const fields: Members = {}
  for (const name of Object.keys(entry))
    setMember(entryFields.has(name) ? fields : metadata, name, entry[name])
  for (const name of Object.keys(added)) {
    const value = added[name]
    if (value !== undefined) addMember(metadata, name, value)
  }
  return Object.keys(metadata).length === 0 ? entry : { ...fields, metadata }
}

/** A record with an object that `hasTooManyNames`. */
export const tooManyNames = {
  error: { path: '', code: 'too_many_names', message: `must have at most ${limits.metadataNamesMax} names` },
} as const satisfies SourceRecord

/** A record that is not an object. */
export const notAnObject = {
  error: { path: '', code: 'wrong_type', message: 'must be an object' },
} as const satisfies SourceRecord

/** The values of a parameter of a query. */
export function queryTexts(query: Readonly<Record<string, unknown>>, name: string): readonly string[] {
  const value = query[name]
  const values = Array.isArray(value) ? (value as readonly unknown[]) : [value]
  return values.filter((one) => typeof one === 'string')
}
