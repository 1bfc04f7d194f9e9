import { describe, expect, it } from 'vitest'
import { limits } from '@sluice/schema'
import { parseJsonExactly } from '../src/json/parse.ts'
import { errorOf, ID, metadataOf, readRow, rowOf, shape } from './support/shape.ts'

const withMetadata = (metadata: string, more = ''): string =>
  `{"level":"info","message":"m","metadata":${metadata}${more}}`

/** Metadata with this number of bytes as JSON. */
const ofBytes = (bytes: number, character = 'a'): string => {
  const room = bytes - '{"a":""}'.length
  const each = Buffer.byteLength(character)
  return `{"a":"${character.repeat(Math.floor(room / each))}${'a'.repeat(room % each)}"}`
}

/** A value with this number of levels, each between `open` and `close`. */
const nested = (levels: number, open = '{"a":', close = '}'): string =>
  `${open.repeat(levels - 1)}{}${close.repeat(levels - 1)}`

/** Members with this number of names. */
const names = (count: number, prefix = ''): string =>
  Array.from({ length: count }, (_, i) => `"${prefix}${i}":0`).join(',')

/** Metadata with this number of nested arrays. */
const arrays = (count: number, value = ''): string => `{"a":${'['.repeat(count)}${value}${']'.repeat(count)}}`

describe('unknown fields', () => {
  it.each([
    [
      'are added after the members of the metadata, in the order in which they were sent',
      '{"z":1,"level":"info","metadata":{"m":0},"message":"m","a":{"b":[null]}}',
      '{"m":0,"z":1,"a":{"b":[null]}}',
    ],
    [
      'do not replace members of the metadata with the same names',
      '{"level":"info","message":"m","a":1,"b":2,"metadata":{"a":null}}',
      '{"a":null,"b":2}',
    ],
    ['are stored if metadata is null', '{"level":"info","message":"m","a":1,"metadata":null}', '{"a":1}'],
  ])('%s', (_what, sent, stored) => {
    expect(metadataOf(sent)).toBe(stored)
  })

  it.each([
    'id',
    'project_id',
    'received_at',
    'expires_on',
    'metadata_text',
    'dead_letters',
    '_partition_id',
    '',
    ' level',
    'Level',
    'toJSON',
  ])('never set a column: "%s"', (name) => {
    const text = JSON.stringify({ level: 'info', message: 'm', [name]: 'forged' })
    expect(readRow(text)).toMatchObject({
      id: ID,
      project_id: 'demo',
      received_at: '2026-11-20 23:59:59.999',
      expires_on: '2026-12-21',
      metadata_text: JSON.stringify({ [name]: 'forged' }),
    })
    expect(rowOf(text).match(/forged/g)).toHaveLength(1)
  })
})

describe('names of prototypes', () => {
  it.each([
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'prototype',
    'valueOf',
    '__defineGetter__',
  ])(
    'are data as an unknown field, and at every level of the metadata, which takes precedence: %s',
    (name) => {
      const metadata = `{"${name}":{"${name}":[{"polluted":1}]}}`
      expect(metadataOf(withMetadata(metadata))).toBe(metadata)
      expect(metadataOf(withMetadata('null', `,"${name}":{"polluted":true}`))).toBe(
        `{"${name}":{"polluted":true}}`,
      )
      expect(metadataOf(withMetadata(`{"${name}":2}`, `,"${name}":1`))).toBe(`{"${name}":2}`)
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
      expect(Object.getPrototypeOf({})).toBe(Object.prototype)
    },
  )

  it('do not give an entry the timestamp of its prototype', () => {
    const row = readRow('{"level":"info","message":"m","__proto__":{"timestamp":"2026-01-01T00:00:00Z"}}')
    expect(row).toMatchObject({ timestamp: '2026-11-20 23:59:59.999' })
  })
})

it.each(['9007199254740992', '-9223372036854775808', '18446744073709551616', '1e400', '1'.repeat(400)])(
  'numbers keep all their digits if they were parsed exactly: %s',
  (digits) => {
    const metadata = `{"n":[${digits}],"s":"x","i":9007199254740993,"d":-1.5e-7}`
    const shaped = shape(parseJsonExactly(withMetadata(metadata)))
    if ('error' in shaped) throw new Error(shaped.error.message)
    expect(shaped.row).toMatch(new RegExp(`\t${RegExp.escape(metadata)}\n$`))
  },
)

describe('the limit on bytes of metadata', () => {
  const { metadataBytesMax } = limits

  it.each(['a', 'ü', '日', '😀'])('applies to UTF-8: "%s"', (character) => {
    const text = ofBytes(metadataBytesMax, character)
    expect(Buffer.byteLength(text)).toBe(metadataBytesMax)
    expect(rowOf(withMetadata(text))).toContain(text)
    expect(errorOf(withMetadata(ofBytes(metadataBytesMax + 1, character)))).toMatchObject({
      path: '/metadata',
      code: 'too_large',
    })
  })

  it('includes unknown fields', () => {
    const metadata = ofBytes(metadataBytesMax - ',"b":1'.length)
    expect(rowOf(withMetadata(metadata, ',"b":1'))).toContain(',"b":1}')
    expect(errorOf(withMetadata(metadata, ',"b":12'))).toMatchObject({ path: '/metadata', code: 'too_large' })
  })

  it('applies to the stored JSON: without whitespace between tokens, with escapes', () => {
    const metadata = ofBytes(metadataBytesMax).replace(':', ` : ${' '.repeat(1_000)}`)
    expect(() => rowOf(withMetadata(metadata))).not.toThrow()
    const escaped = `{"a":"${'\\u0001'.repeat(metadataBytesMax / 6)}"}`
    expect(errorOf(withMetadata(escaped))).toMatchObject({ code: 'too_large' })
  })

  it('applies to an entry without metadata', () => {
    const text = `{"level":"info","message":"m","big":"${'a'.repeat(metadataBytesMax)}"}`
    // The entry has no /metadata.
    expect(errorOf(text)).toMatchObject({
      path: '',
      message: 'metadata, which includes unknown fields, must have at most 65536 bytes as JSON',
    })
  })
})

describe('the limit on levels of metadata', () => {
  it.each([
    ['objects', nested(16), nested(17)],
    ['arrays and objects', nested(8, '{"a":[', ']}'), nested(9, '{"a":[', ']}')],
    ['arrays with scalars on the last level', arrays(15, '1,null,"x",true'), arrays(16)],
    ['100,000 objects', '{}', nested(100_000)],
    ['100,000 arrays', '{}', arrays(100_000)],
  ])('is 16: %s', (_what, atLimit, beyond) => {
    expect(rowOf(withMetadata(atLimit))).toContain(atLimit)
    expect(errorOf(withMetadata(beyond))).toMatchObject({ path: '/metadata', code: 'too_deep' })
  })

  it('leaves one level less for an unknown field', () => {
    expect(() => rowOf(withMetadata('null', `,"a":${nested(15)}`))).not.toThrow()
    expect(errorOf(withMetadata('null', `,"a":${nested(16)}`))).toMatchObject({ code: 'too_deep' })
  })

  it('applies to the last of many members', () => {
    const members = Array.from({ length: 200 }, (_, i) => `"k${i}":${nested(15)}`).join(',')
    expect(() => rowOf(withMetadata(`{${members}}`))).not.toThrow()
    expect(errorOf(withMetadata(`{${members},"last":${nested(16)}}`))).toMatchObject({ code: 'too_deep' })
  })
})

describe('the limit on names of metadata', () => {
  /** The shortest possible names. */
  const short = Array.from({ length: 257 }, (_, i) => `"${String.fromCodePoint(0x100 + i)}":0`).join(',')

  it.each([
    [
      'metadata with unknown fields',
      withMetadata(`{${names(200)}}`, `,${names(56, 'f')}`),
      withMetadata(`{${names(200)}}`, `,${names(57, 'f')}`),
    ],
    [
      'an entry without metadata',
      `{"level":"info","message":"m",${names(256)}}`,
      `{"level":"info","message":"m",${names(257)}}`,
    ],
    ['the shortest names', withMetadata('{}'), withMetadata('{}', `,${short}`)],
  ])('is 256 for %s', (_what, atLimit, beyond) => {
    expect(() => rowOf(atLimit)).not.toThrow()
    expect(errorOf(beyond)).toMatchObject({ code: 'too_many_names' })
  })

  it('counts a name once if an unknown field has it too, and does not apply below the top level', () => {
    expect(() => rowOf(withMetadata(`{${names(256)}}`, `,${names(200)}`))).not.toThrow()
    expect(() => rowOf(withMetadata(`{"a":{${names(1_000)}}}`))).not.toThrow()
  })
})
