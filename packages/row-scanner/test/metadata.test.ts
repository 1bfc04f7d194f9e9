import { expect, it } from 'vitest'
import { limits } from '@sluice/schema'
import { errorOf, readRow, rowOf } from './support/entries.ts'
import { ID } from './support/reference.ts'

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

it.each([
  [
    'added after the members of the metadata, in the order in which they were sent',
    '{"z":1,"level":"info","metadata":{"m":0},"message":"m","a":{"b":[null]}}',
    '{"m":0,"z":1,"a":{"b":[null]}}',
  ],
  [
    'less than members with their names',
    '{"level":"info","message":"m","a":1,"b":2,"metadata":{"a":null}}',
    '{"a":null,"b":2}',
  ],
  ['stored if metadata is null', '{"level":"info","message":"m","a":1,"metadata":null}', '{"a":1}'],
])('unknown fields are %s', (_what, sent, stored) => {
  expect(readRow(sent)['metadata_text']).toBe(stored)
})

const columns = ['id', 'project_id', 'received_at', 'expires_on', 'metadata_text', '_partition_id']

it.each([...columns, '', ' level', 'Level', 'toJSON'])(
  'an unknown field never sets a column: "%s"',
  (name) => {
    const text = JSON.stringify({ level: 'info', message: 'm', [name]: 'forged' })
    expect(readRow(text)).toMatchObject({
      id: ID,
      project_id: 'demo',
      received_at: '2026-11-20 23:59:59.999',
      expires_on: '2026-12-21',
      metadata_text: JSON.stringify({ [name]: 'forged' }),
    })
    expect(rowOf(text).match(/forged/g)).toHaveLength(1)
  },
)

it.each(['__proto__', 'constructor', 'hasOwnProperty'])(
  'a name of a prototype is data as an unknown field, and at every level of the metadata: %s',
  (name) => {
    const metadata = `{"${name}":{"${name}":[{"polluted":1}]}}`
    expect(readRow(withMetadata(metadata))['metadata_text']).toBe(metadata)
    expect(readRow(withMetadata('null', `,"${name}":{"polluted":true}`))['metadata_text']).toBe(
      `{"${name}":{"polluted":true}}`,
    )
    expect(readRow(withMetadata(`{"${name}":2}`, `,"${name}":1`))['metadata_text']).toBe(`{"${name}":2}`)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    // It does not become the prototype of the entry.
    const text = `{"level":"info","message":"m","${name}":{"timestamp":"2026-01-01T00:00:00Z"}}`
    expect(readRow(text)).toMatchObject({ timestamp: '2026-11-20 23:59:59.999000' })
  },
)

const { metadataBytesMax } = limits
const full = (more: string): string => ofBytes(metadataBytesMax - more.length)
const many = Array.from({ length: 200 }, (_, i) => `"k${i}":${nested(15)}`).join(',')
/** The shortest possible names. */
const short = Array.from({ length: 257 }, (_, i) => `"${String.fromCodePoint(0x100 + i)}":0`).join(',')
const spaced = full('').replace(':', ` : ${' '.repeat(1_000)}`)

/** Metadata, and unknown fields after it. */
type Sent = [metadata: string, more?: string]

it.each<[code: string, what: string, atLimit: Sent, beyond: Sent]>([
  ...['a', 'ü', '日', '😀'].map((of): [string, string, Sent, Sent] => [
    'too_large',
    `in UTF-8: ${of}`,
    [ofBytes(metadataBytesMax, of)],
    [ofBytes(metadataBytesMax + 1, of)],
  ]),
  ['too_large', 'with unknown fields', [full(',"b":1'), ',"b":1'], [full(',"b":1'), ',"b":12']],
  // The stored JSON counts.
  ['too_large', 'with escapes', [spaced], [`{"a":"${'\\u0001'.repeat(metadataBytesMax / 6)}"}`]],
  ['too_deep', 'objects', [nested(16)], [nested(17)]],
  ['too_deep', 'arrays', [arrays(15, '1,null,"x",true')], [arrays(16)]],
  ['too_deep', '100,000 objects', ['{}'], [nested(100_000)]],
  ['too_deep', '100,000 arrays', ['{}'], [arrays(100_000)]],
  ['too_deep', 'an unknown field', ['null', `,"a":${nested(15)}`], ['null', `,"a":${nested(16)}`]],
  ['too_deep', 'the last member', [`{${many}}`], [`{${many},"last":${nested(16)}}`]],
  [
    'too_many_names',
    'sum',
    [`{${names(200)}}`, `,${names(56, 'f')}`],
    [`{${names(200)}}`, `,${names(57, 'f')}`],
  ],
  ['too_many_names', 'each once', [`{${names(256)}}`, `,${names(200)}`], ['{}', `,${short}`]],
  ['too_many_names', 'nested ones', [`{"a":{${names(1_000)}}}`], ['null', `,${names(257)}`]],
])('metadata has a limit, or is %s: %s', (code, _what, atLimit, beyond) => {
  expect(() => rowOf(withMetadata(...atLimit))).not.toThrow()
  expect(errorOf(withMetadata(...beyond))).toMatchObject({ code })
})

it('names the entry as the place of an error in metadata that it does not have', () => {
  const text = `{"level":"info","message":"m","big":"${'a'.repeat(metadataBytesMax)}"}`
  expect(errorOf(text)).toMatchObject({
    path: '',
    message: 'metadata, which includes unknown fields, must have at most 65536 bytes as JSON',
  })
})
