import { EntryValidator } from '@sluice/rows'
import { describe, expect, test } from 'vitest'
import { encodeEntry } from '../../src/encode.ts'
import { LimitError } from '../../src/encode.ts'
import type { Entry } from '../../src/entry.ts'
import { contractLimits as limits } from '../../src/entry.ts'

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
  test.each<[string, (size: number) => object, number, string]>([
    ['message', (size) => ({ message: 'x'.repeat(size) }), limits.messageCharactersMax, '/message too_long'],
    [
      'message of pairs',
      (size) => ({ message: '😀'.repeat(size) }),
      limits.messageCharactersMax,
      '/message too_long',
    ],
    ['stack', (size) => ({ stack: 'x'.repeat(size) }), limits.stackCharactersMax, '/stack too_long'],
    ['service', (size) => ({ service: 'x'.repeat(size) }), limits.serviceCharactersMax, '/service too_long'],
    ['url', (size) => ({ url: 'x'.repeat(size) }), limits.urlCharactersMax, '/url too_long'],
    [
      'pathname',
      (size) => ({ pathname: 'x'.repeat(size) }),
      limits.pathnameCharactersMax,
      '/pathname too_long',
    ],
    ['metadata', (size) => ({ metadata: sized(size) }), limits.metadataBytesMax, '/metadata too_large'],
    [
      'metadata of 3 bytes',
      (size) => ({ metadata: sized(size, '€') }),
      limits.metadataBytesMax,
      '/metadata too_large',
    ],
    [
      'metadata of 4 bytes',
      (size) => ({ metadata: sized(size, '😀') }),
      limits.metadataBytesMax,
      '/metadata too_large',
    ],
    ['names', (size) => ({ metadata: named(size) }), limits.metadataNamesMax, '/metadata too_many_names'],
  ])('%s', (_name, fields, max, error) => {
    expect(check(entry(fields(max)))).toBe('valid')
    expect(check(entry(fields(max + 1)))).toBe(error)
    // The server agrees that it is valid.
    const text = JSON.parse(encodeEntry(entry(fields(max)))) as unknown
    expect(new EntryValidator().isEntry(text)).toBe(true)
  })
})

test.each<[string, object, string]>([
  ['an unknown level', { level: 'fatal' }, '/level not_allowed'],
  ['a level that is a name of objects', { level: 'constructor' }, '/level not_allowed'],
  ['a message that is no text', { message: 1 }, '/message wrong_type'],
  ['an unknown environment', { environment: 'test' }, '/environment not_allowed'],
  ['an unknown source', { source: 'browser' }, '/source not_allowed'],
  ['a service that is no text', { service: 1 }, '/service wrong_type'],
  ['a timestamp that is no text', { timestamp: 1 }, '/timestamp wrong_type'],
  [
    'null for all optional fields',
    { service: null, source: null, environment: null, url: null, metadata: null },
    'valid',
  ],
])('%s: %o is %s', (_name, fields, result) => {
  expect(check(entry(fields))).toBe(result)
})
