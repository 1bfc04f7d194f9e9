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
const nested = (levels: number, open: string, close: string): string =>
  `${open.repeat(levels - 1)}{}${close.repeat(levels - 1)}`

/** Members with this number of names. */
const names = (count: number, prefix = ''): string =>
  Array.from({ length: count }, (_, i) => `"${prefix}${i}":0`).join(',')

/** Metadata with this number of nested arrays. */
const arrays = (count: number): string => `{"a":${'['.repeat(count)}${']'.repeat(count)}}`

/** A member with this number of levels. */
const field = (levels: number): string => `,"a":${nested(levels, '{"a":', '}')}`

describe('unknown fields', () => {
  it('are added to the metadata, after its members, in the order in which they were sent', () => {
    expect(metadataOf('{"z":1,"level":"info","metadata":{"m":0},"message":"m","a":{"b":[null]}}')).toBe(
      '{"m":0,"z":1,"a":{"b":[null]}}',
    )
  })

  it('do not replace members of the metadata with the same names', () => {
    expect(metadataOf('{"level":"info","message":"m","a":1,"b":2,"metadata":{"a":null}}')).toBe(
      '{"a":null,"b":2}',
    )
  })

  it('are stored if metadata is null', () => {
    expect(metadataOf('{"level":"info","message":"m","a":1,"metadata":null}')).toBe('{"a":1}')
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
  const prototypeNames = [
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'prototype',
    'valueOf',
    '__defineGetter__',
  ]

  it.each(prototypeNames)('%s is data as an unknown field', (name) => {
    expect(metadataOf(`{"level":"info","message":"m","${name}":{"polluted":true}}`)).toBe(
      `{"${name}":{"polluted":true}}`,
    )
  })

  it.each(prototypeNames)('%s is data in the metadata, at every level', (name) => {
    const metadata = `{"${name}":{"${name}":[{"${name}":1}]}}`
    expect(metadataOf(withMetadata(metadata))).toBe(metadata)
  })

  it.each(prototypeNames)('%s in the metadata takes precedence over an unknown field', (name) => {
    expect(metadataOf(`{"level":"info","message":"m","${name}":1,"metadata":{"${name}":2}}`)).toBe(
      `{"${name}":2}`,
    )
  })

  it('do not change any prototype', () => {
    rowOf('{"level":"info","message":"m","__proto__":{"polluted":1},"metadata":{"__proto__":{"polluted":1}}}')
    rowOf('{"level":"info","message":"m","constructor":{"prototype":{"polluted":1}}}')
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(Object.getPrototypeOf({})).toBe(Object.prototype)
  })

  it('do not give an entry the timestamp of its prototype', () => {
    const row = readRow('{"level":"info","message":"m","__proto__":{"timestamp":"2026-01-01T00:00:00Z"}}')
    expect(row).toMatchObject({ timestamp: '2026-11-20 23:59:59.999' })
  })
})

describe('numbers', () => {
  it.each(['9007199254740991', '-9007199254740991', '0.1', '-1.5e-7'])(
    'are stored as JavaScript writes them if it can represent them: %s',
    (digits) => {
      expect(metadataOf(`{"level":"info","message":"m","n":${digits}}`)).toBe(`{"n":${digits}}`)
    },
  )

  it.each([
    '9007199254740992',
    '9007199254740993',
    '-9007199254740993',
    '9223372036854775807',
    '-9223372036854775808',
    '18446744073709551615',
    '18446744073709551616',
    '1e308',
    '1e400',
    '-1E400',
    '1'.repeat(400),
  ])('keep all their digits if they were parsed exactly: %s', (digits) => {
    const metadata = `{"n":[${digits}],"s":"x","i":9007199254740993}`
    const shaped = shape(parseJsonExactly(withMetadata(metadata)))
    if ('error' in shaped) throw new Error(shaped.error.message)
    expect(shaped.row).toMatch(new RegExp(`\t${RegExp.escape(metadata)}\n$`))
  })
})

describe('the limit on bytes of metadata', () => {
  it.each(['a', 'ü', '日', '😀'])('applies to UTF-8: "%s"', (character) => {
    const text = ofBytes(limits.metadataBytesMax, character)
    expect(Buffer.byteLength(text)).toBe(limits.metadataBytesMax)
    expect(rowOf(withMetadata(text))).toContain(text)
    expect(errorOf(withMetadata(ofBytes(limits.metadataBytesMax + 1, character)))).toMatchObject({
      path: '/metadata',
      code: 'too_large',
    })
  })

  it('includes unknown fields', () => {
    const metadata = ofBytes(limits.metadataBytesMax - ',"b":1'.length)
    expect(rowOf(withMetadata(metadata, ',"b":1'))).toContain(',"b":1}')
    expect(errorOf(withMetadata(metadata, ',"b":12'))).toMatchObject({ path: '/metadata', code: 'too_large' })
  })

  it('applies to the stored JSON: without whitespace between tokens, with escapes', () => {
    const metadata = ofBytes(limits.metadataBytesMax).replace(':', ` : ${' '.repeat(1_000)}`)
    expect(() => rowOf(withMetadata(metadata))).not.toThrow()
    const escaped = `{"a":"${'\\u0001'.repeat(limits.metadataBytesMax / 6)}"}`
    expect(errorOf(withMetadata(escaped))).toMatchObject({ code: 'too_large' })
  })

  it('applies to an entry without metadata', () => {
    const text = `{"level":"info","message":"m","big":"${'a'.repeat(limits.metadataBytesMax)}"}`
    const { path, message } = errorOf(text)
    // The entry has no /metadata.
    expect(path).toBe('')
    expect(message).toBe('metadata, which includes unknown fields, must have at most 65536 bytes as JSON')
  })
})

describe('the limit on levels of metadata', () => {
  it.each([
    ['objects', '{"a":', '}'],
    ['arrays and objects', '{"a":[', ']}'],
  ])('counts %s', (_what, open, close) => {
    const depth = open.length > 5 ? 2 : 1
    // The innermost {} is one level. Each opening is one or two.
    const atLimit = nested(Math.floor((limits.metadataDepthMax - 1) / depth) + 1, open, close)
    expect(() => rowOf(withMetadata(atLimit))).not.toThrow()
    const beyond = nested(Math.floor((limits.metadataDepthMax - 1) / depth) + 2, open, close)
    expect(errorOf(withMetadata(beyond))).toMatchObject({ path: '/metadata', code: 'too_deep' })
  })

  it('allows 16 levels, including 15 arrays, but not 17', () => {
    expect(rowOf(withMetadata(arrays(15)))).toContain(arrays(15))
    expect(errorOf(withMetadata(arrays(16)))).toMatchObject({ code: 'too_deep' })
  })

  it('allows scalars and nulls on the last level', () => {
    const metadata = `{"a":${'['.repeat(15)}1,null,"x",true${']'.repeat(15)}}`
    expect(rowOf(withMetadata(metadata))).toContain(metadata)
  })

  it('leaves one level less for an unknown field', () => {
    expect(() => rowOf(withMetadata('null', field(15)))).not.toThrow()
    expect(errorOf(withMetadata('null', field(16)))).toMatchObject({ code: 'too_deep' })
  })

  it('applies to the last of many members', () => {
    const members = Array.from({ length: 200 }, (_, i) => `"k${i}":${nested(15, '{"a":', '}')}`)
    expect(() => rowOf(withMetadata(`{${members.join(',')}}`))).not.toThrow()
    members.push(`"last":${nested(16, '{"a":', '}')}`)
    expect(errorOf(withMetadata(`{${members.join(',')}}`))).toMatchObject({ code: 'too_deep' })
  })

  it.each([
    ['objects', '{"a":', '}'],
    ['arrays', '[', ']'],
  ])('rejects 100,000 nested %s without a stack overflow', (_what, open, close) => {
    const text = withMetadata(`{"a":${nested(100_000, open, close)}}`)
    expect(errorOf(text)).toMatchObject({ path: '/metadata', code: 'too_deep' })
  })
})

describe('the limit on names of metadata', () => {
  it('allows 256 at the top level', () => {
    const metadata = `{${names(256)}}`
    expect(metadataOf(withMetadata(metadata))).toHaveLength(metadata.length)
  })

  it('includes unknown fields', () => {
    expect(() => rowOf(withMetadata(`{${names(200)}}`, `,${names(56, 'f')}`))).not.toThrow()
    expect(errorOf(withMetadata(`{${names(200)}}`, `,${names(57, 'f')}`))).toMatchObject({
      path: '/metadata',
      code: 'too_many_names',
    })
  })

  it('counts a name once if an unknown field has it too', () => {
    expect(() => rowOf(withMetadata(`{${names(256)}}`, `,${names(200)}`))).not.toThrow()
  })

  it('applies to an entry without metadata', () => {
    const text = `{"level":"info","message":"m",${names(257)}}`
    expect(errorOf(text)).toMatchObject({ code: 'too_many_names' })
  })

  it('counts the shortest possible names', () => {
    const short = Array.from(
      { length: 257 },
      (_, i) => `${JSON.stringify(String.fromCodePoint(0x100 + i))}:0`,
    )
    expect(errorOf(withMetadata('{}', `,${short.join(',')}`))).toMatchObject({ code: 'too_many_names' })
  })

  it('does not apply below the top level', () => {
    expect(() => rowOf(withMetadata(`{"a":{${names(1_000)}}}`))).not.toThrow()
  })
})
