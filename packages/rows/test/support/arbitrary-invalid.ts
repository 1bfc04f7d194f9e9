import * as fc from 'fast-check'
import { type EntryErrorCode, entrySchema, limits } from '@sluice/schema'
import { validEntry } from './arbitrary-entry.ts'

type Json = Record<string, unknown>

/** An entry that is invalid because of one change to a valid one, and the expected error. */
export interface InvalidEntry {
  readonly entry: unknown
  readonly path: string
  readonly code: EntryErrorCode
}

const loneSurrogate = fc.constantFrom('\ud83d', '\ude00', 'a\udfffb', '\ude00\ud83d')
const fields = Object.keys(entrySchema.properties)
const texts = ['message', 'service', 'url', 'pathname', 'stack'] as const
/** A change of one field to an invalid value. */
type Change = readonly [field: string, value: unknown, code: EntryErrorCode, path?: string]

const wrongType = fc
  .tuple(fc.constantFrom(...fields), fc.constantFrom<unknown>(1, true, [], ['x'], 1e21, -0.5))
  .map(([field, value]): Change => [field, value, 'wrong_type'])

const notAllowed = fc
  .tuple(fc.constantFrom('level', 'environment', 'source'), fc.constantFrom('', 'INFO', 'info ', 'é'))
  .map(([field, value]): Change => [field, value, 'not_allowed'])

const tooLong = fc
  .tuple(fc.constantFrom(...texts), fc.constantFrom('a', '\t', '\\', '😀'), fc.integer({ min: 1, max: 3 }))
  .map(([field, unit, over]): Change => [
    field,
    unit.repeat(limits[`${field}CharactersMax`] + over),
    'too_long',
  ])

const invalidTimestamp = fc
  .oneof(fc.constantFrom('', '2026-02-30T00:00:00Z', '2026-11-20', '1969-12-31T23:59:59Z'), fc.string())
  .filter((text) => Number.isNaN(Date.parse(text)) || !/^(19[7-9]|2[012])/.test(text) || !text.includes('T'))
  .map((text): Change => ['timestamp', text, 'invalid_timestamp'])

const loneSurrogates: fc.Arbitrary<Change> = fc.oneof(
  fc
    .tuple(fc.constantFrom(...texts), loneSurrogate)
    .map(([field, text]): Change => [field, text, 'invalid_unicode']),
  loneSurrogate.chain((text) =>
    fc.constantFrom<Change>(
      ['metadata', { 'a/b': { '~': [0, text] } }, 'invalid_unicode', '/metadata/a~1b/~0/1'],
      ['metadata', { a: [{ [text]: 1 }] }, 'invalid_unicode', '/metadata/a/0'],
      ['not a field', { b: text }, 'invalid_unicode', '/not a field/b'],
    ),
  ),
)

const overMetadata: fc.Arbitrary<Change> = fc.constantFrom<Change>(
  ['metadata', { a: 'a'.repeat(limits.metadataBytesMax) }, 'too_large'],
  ['metadata', Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`n${i}`, i])), 'too_many_names'],
  ['metadata', nested(limits.metadataDepthMax + 1), 'too_deep'],
  ['metadata', nested(500), 'too_deep'],
)

function nested(levels: number): Json {
  let value: Json = {}
  for (let level = 1; level < levels; level += 1) value = { a: value }
  return value
}

const changed = fc
  .tuple(validEntry, fc.oneof(wrongType, notAllowed, tooLong, invalidTimestamp, loneSurrogates, overMetadata))
  .map(([entry, [field, value, code, path = `/${field}`]]): InvalidEntry => {
    return { entry: { ...entry, [field]: value }, path, code }
  })

const notAnObject = fc
  .constantFrom<unknown>(null, true, 0, 1e21, 'info', [], [{ level: 'info', message: 'm' }])
  .map((entry): InvalidEntry => ({ entry, path: '', code: 'wrong_type' }))

const incomplete = fc
  .tuple(validEntry, fc.constantFrom('level', 'message'))
  .map(([entry, field]): InvalidEntry => {
    const { [field]: _removed, ...rest } = entry
    return { entry: rest, path: '', code: 'missing' }
  })

export const invalidEntry: fc.Arbitrary<InvalidEntry> = fc.oneof(
  { arbitrary: changed, weight: 9 },
  { arbitrary: fc.oneof(notAnObject, incomplete), weight: 1 },
)

/** Whether a JSON Pointer (RFC 6901) leads to a part of a value. */
export function pointsInto(value: unknown, pointer: string): boolean {
  if (pointer === '') return true
  if (!pointer.startsWith('/')) return false
  let at: unknown = value
  for (const token of pointer.slice(1).split('/')) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return false
    at = (at as Json)[name]
  }
  return true
}
