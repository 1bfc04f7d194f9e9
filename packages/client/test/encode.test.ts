import { EntryValidator } from '@sluice/rows'
import { describe, expect, test, expectTypeOf } from 'vitest'
import { encodeEntry, LimitError, repairSurrogates, utf8Bytes } from '../src/encode.ts'
import { limits } from '@sluice/schema/limits'
import * as fc from 'fast-check'
import type { Entry as ServerEntry } from '@sluice/schema'
import type { Entry } from '../src/index.ts'

const entry = (fields: object = {}): Entry => ({ level: 'info', message: 'm', ...fields })

function check(value: Entry): string {
  try {
    encodeEntry(value)
    return 'valid'
  } catch (error) {
    if (!(error instanceof LimitError)) throw error
    return `${error.entryError.path} ${error.entryError.code}`
  }
}

/** An object with one member, whose JSON has this many bytes. */
const sized = (bytes: number, character = 'x'): object => {
  const unit = Buffer.byteLength(character)
  const rest = bytes - '{"a":""}'.length
  return { a: character.repeat(Math.floor(rest / unit)) + 'x'.repeat(rest % unit) }
}
const named = (names: number): object =>
  Object.fromEntries(Array.from({ length: names }, (_, i) => [`n${i}`, 1]))

describe('an entry is valid at each limit, and rejected beyond it', () => {
  const strings = (['message', 'stack', 'service', 'url', 'pathname'] as const).map((name) => ({
    name,
    max: limits[`${name}CharactersMax`],
    fields: (size: number): object => ({ [name]: 'x'.repeat(size) }),
    error: `/${name} too_long`,
  }))
  const sizes = ['x', '€', '😀'].map((character) => ({
    name: `metadata of ${character}`,
    max: limits.metadataBytesMax,
    fields: (size: number): object => ({ metadata: sized(size, character) }),
    error: '/metadata too_large',
  }))
  test.each([
    ...strings,
    ...sizes,
    {
      name: 'message of pairs',
      max: limits.messageCharactersMax,
      fields: (size: number) => ({ message: '😀'.repeat(size) }),
      error: '/message too_long',
    },
    {
      name: 'names',
      max: limits.metadataNamesMax,
      fields: (size: number) => ({ metadata: named(size) }),
      error: '/metadata too_many_names',
    },
  ])('$name', ({ fields, max, error }) => {
    expect(check(entry(fields(max)))).toBe('valid')
    expect(check(entry(fields(max + 1)))).toBe(error)
    // The server agrees that it is valid.
    const sent = JSON.parse(encodeEntry(entry(fields(max)))) as unknown
    expect(new EntryValidator().isEntry(sent)).toBe(true)
  })
})

test.each<[string, object, string]>([
  ['an unknown level', { level: 'fatal' }, '/level not_allowed'],
  ['a level that is a name of objects', { level: 'constructor' }, '/level not_allowed'],
  ['a message that is no string', { message: 1 }, '/message wrong_type'],
  ['an unknown environment', { environment: 'test' }, '/environment not_allowed'],
  ['an unknown source', { source: 'browser' }, '/source not_allowed'],
  ['a service that is no string', { service: 1 }, '/service wrong_type'],
  ['a timestamp that is no string', { timestamp: 1 }, '/timestamp wrong_type'],
  [
    'null for all optional fields',
    { service: null, source: null, environment: null, url: null, metadata: null },
    'valid',
  ],
])('%s: %o is %s', (_name, fields, result) => {
  expect(check(entry(fields))).toBe(result)
})

test('the size of a string is the size of its UTF-8', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (value) => {
      expect(utf8Bytes(value)).toBe(Buffer.byteLength(value))
    }),
  )
})

describe('half of a surrogate pair', () => {
  test('is replaced', () => {
    const cut = '😀'.slice(0, 1)
    const value = { [cut]: `a${cut}`, b: '😀'.slice(1), whole: '😀' }
    expect(JSON.parse(repairSurrogates(JSON.stringify(value)))).toEqual({
      '\uFFFD': 'a\uFFFD',
      b: '\uFFFD',
      whole: '😀',
    })
  })

  test('is not confused with a string that looks like its escape', () => {
    const value = { a: String.raw`\ud83d \\ud83d`, b: String.raw`\u0041` }
    expect(JSON.parse(repairSurrogates(JSON.stringify(value)))).toEqual(value)
  })

  test('never remains, and nothing else changes', () => {
    const unit = fc.constantFrom('\uD83D', '\uDE00', '\\', 'ud83d', '"', 'a', '\n')
    fc.assert(
      fc.property(fc.string({ unit }), (value) => {
        expect(JSON.parse(repairSurrogates(JSON.stringify(value)))).toBe(value.toWellFormed())
      }),
    )
  })
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
