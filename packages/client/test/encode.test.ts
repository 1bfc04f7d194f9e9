import { EntryValidator } from '@sluice/rows/testing'
import type { Entry as ServerEntry } from '@sluice/schema'
import { limits } from '@sluice/schema/limits'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { encodeEntry, LimitError, repairSurrogates, utf8Bytes } from '../src/encode.ts'
import type { Entry } from '../src/index.ts'

const entry = (fields: object = {}): Entry => ({ level: 'info', message: 'm', ...fields })

function check(fields: object): string {
  try {
    encodeEntry(entry(fields))
    return 'valid'
  } catch (error) {
    if (!(error instanceof LimitError)) throw error
    return `${error.entryError.path} ${error.entryError.code}`
  }
}

/** Metadata whose JSON has this many bytes. */
const sized = (bytes: number, character: string): object => {
  const rest = bytes - '{"a":""}'.length
  const unit = Buffer.byteLength(character)
  return { metadata: { a: character.repeat(Math.floor(rest / unit)) + 'x'.repeat(rest % unit) } }
}
const named = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, 1]))

describe('an entry is valid at each limit, and rejected beyond it', () => {
  const strings = (['message', 'stack', 'service', 'url', 'pathname'] as const).map(
    (name) =>
      [
        `/${name} too_long`,
        limits[`${name}CharactersMax`],
        (n: number) => ({ [name]: 'x'.repeat(n) }),
      ] as const,
  )
  const sizes = ['x', '€', '😀'].map(
    (c) => ['/metadata too_large', limits.metadataBytesMax, (n: number) => sized(n, c)] as const,
  )
  test.each<readonly [string, number, (size: number) => object]>([
    ...strings,
    ...sizes,
    ['/message too_long', limits.messageCharactersMax, (n) => ({ message: '😀'.repeat(n) })],
    ['/metadata too_many_names', limits.metadataNamesMax, (n) => ({ metadata: named(n) })],
  ])('%s', (error, max, fields) => {
    expect(check(fields(max))).toBe('valid')
    expect(check(fields(max + 1))).toBe(error)
    // The server agrees that it is valid.
    expect(new EntryValidator().isEntry(JSON.parse(encodeEntry(entry(fields(max)))) as unknown)).toBe(true)
  })
})

test.each([
  [{ level: 'fatal' }, '/level not_allowed'],
  [{ level: 'constructor' }, '/level not_allowed'],
  [{ level: null }, '/level not_allowed'],
  [{ message: 1 }, '/message wrong_type'],
  [{ environment: 'test' }, '/environment not_allowed'],
  [{ timestamp: 1 }, '/timestamp wrong_type'],
  [{ service: null, source: null, environment: null, url: null, metadata: null }, 'valid'],
])('%o is %s', (fields, result) => {
  expect(check(fields)).toBe(result)
})

test('the size of a string is the size of its UTF-8', () => {
  for (const text of ['a', 'é', '€', '😀']) expect(utf8Bytes(text)).toBe(Buffer.byteLength(text))
})

test('half of a surrogate pair never remains, and nothing else changes, not even what looks like its escape', () => {
  const unit = fc.constantFrom('\uD83D', '\uDE00', '\\', 'ud83d', '"', 'a', '\n')
  fc.assert(
    fc.property(fc.string({ unit }), (value) => {
      const repaired: unknown = JSON.parse(repairSurrogates(JSON.stringify({ [value]: value })))
      expect(repaired).toEqual({ [value.toWellFormed()]: value.toWellFormed() })
    }),
    runsOf(100),
  )
})

// `npm run types` checks it, not the test run.
test('the type of an entry is the type of the server', () => {
  expectTypeOf<Known<Entry>>().toEqualTypeOf<Known<ServerEntry>>()
  expectTypeOf<ServerEntry>().toExtend<Entry>()
})

/** The fields with a name. In the type of the client, an optional field may also be `undefined`, which JSON leaves out. */
type Known<Type> = {
  [Name in keyof Type as string extends Name ? never : Name]: Exclude<Type[Name], undefined>
}
