import type { Entry, Metadata } from '../entry.ts'
import { contractLimits } from '../limits.ts'
import { LimitError } from './limit-error.ts'
import { copyFields } from './metadata.ts'

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
  let othersCount = 0
  for (const name in entry) {
    // Own members come first.
    if (!Object.hasOwn(entry, name)) break
    const value = entry[name]
    // An absent field must not replace a default.
    if (name === 'metadata' || value === undefined || value === null) continue
    if (fieldNames.has(name)) fields[name] = value
    // One more than an entry may have. It is rejected then.
    else if (othersCount <= contractLimits.metadataNamesMax) {
      othersCount += 1
      // Defined, not assigned: an assignment to `__proto__` would set the prototype.
      Object.defineProperty(others, name, { value, enumerable: true, writable: true, configurable: true })
    }
  }
  const { metadata } = entry
  if (metadata !== undefined && metadata !== null && typeof metadata !== 'object')
    throw new LimitError('/metadata', 'wrong_type', 'must be of type object')
  return {
    fields: fields as Entry,
    metadata: othersCount === 0 ? (metadata ?? {}) : { ...others, ...copyFields(metadata ?? {}) },
  }
}
