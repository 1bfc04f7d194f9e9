import type { Entry, Metadata } from '../entry.ts'

const fieldNames: ReadonlySet<string> = new Set([
  'level',
  'message',
  'environment',
  'source',
  'service',
  'url',
  'pathname',
  'stack',
  'timestamp',
])

/** Separates the fields with a column from the others. The API stores the others in the metadata, where the same name wins. */
export function splitEntry(entry: Entry): { fields: Entry; metadata: object } {
  const fields: Metadata = {}
  const others: Metadata = {}
  for (const name of Object.keys(entry)) {
    const value = entry[name]
    // An absent field must not replace a default.
    if (name === 'metadata' || value === undefined || value === null) continue
    if (fieldNames.has(name)) fields[name] = value
    // Defined, not assigned: an assignment to `__proto__` would set the prototype.
    else Object.defineProperty(others, name, { value, enumerable: true, writable: true, configurable: true })
  }
  const { metadata } = entry
  const isEmpty = Object.keys(others).length === 0
  return {
    fields: fields as Entry,
    metadata: isEmpty ? (metadata ?? {}) : { ...others, ...metadata },
  }
}
