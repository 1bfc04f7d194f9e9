import { describe, expect, it } from 'vitest'
import { limits } from '../src/limits.ts'
import { errorOf, metadataOf, rowOf } from './support/shape.ts'

const withMetadata = (metadata: string, more = ''): string =>
  `{"level":"info","message":"m","metadata":${metadata}${more}}`

/** Metadata of so many bytes as JSON. */
const ofBytes = (bytes: number, character = 'a'): string => {
  const room = bytes - '{"a":""}'.length
  const each = Buffer.byteLength(character)
  return `{"a":"${character.repeat(Math.floor(room / each))}${'a'.repeat(room % each)}"}`
}

/** A value nested so many levels: `open` and `close` around each. */
const nested = (levels: number, open: string, close: string): string =>
  `${open.repeat(levels - 1)}{}${close.repeat(levels - 1)}`

/** Members with so many names. */
const names = (count: number, prefix = ''): string =>
  Array.from({ length: count }, (_, i) => `"${prefix}${i}":0`).join(',')

/** Metadata of so many arrays in one another. */
const arrays = (count: number): string => `{"a":${'['.repeat(count)}${']'.repeat(count)}}`

/** A member of so many levels. */
const field = (levels: number): string => `,"a":${nested(levels, '{"a":', '}')}`

describe('bytes of metadata', () => {
  it.each(['a', 'ü', '日', '😀'])('are counted in UTF-8: of "%s"', (character) => {
    const text = ofBytes(limits.metadataBytesMax, character)
    expect(Buffer.byteLength(text)).toBe(limits.metadataBytesMax)
    expect(rowOf(withMetadata(text))).toContain(text)
    expect(errorOf(withMetadata(ofBytes(limits.metadataBytesMax + 1, character)))).toMatchObject({
      path: '/metadata',
      code: 'too_large',
    })
  })

  it('count what is folded in', () => {
    const metadata = ofBytes(limits.metadataBytesMax - ',"b":1'.length)
    expect(rowOf(withMetadata(metadata, ',"b":1'))).toContain(',"b":1}')
    expect(errorOf(withMetadata(metadata, ',"b":12'))).toMatchObject({ path: '/metadata', code: 'too_large' })
  })

  it('count the JSON that is stored: blanks between do not, escapes do', () => {
    const metadata = ofBytes(limits.metadataBytesMax).replace(':', ` : ${' '.repeat(1_000)}`)
    expect(() => rowOf(withMetadata(metadata))).not.toThrow()
    const escaped = `{"a":"${'\\u0001'.repeat(limits.metadataBytesMax / 6)}"}`
    expect(errorOf(withMetadata(escaped))).toMatchObject({ code: 'too_large' })
  })

  it('hold for unknown fields alone', () => {
    const text = `{"level":"info","message":"m","big":"${'a'.repeat(limits.metadataBytesMax)}"}`
    const { path, message } = errorOf(text)
    // There is no /metadata in what was sent.
    expect(path).toBe('')
    expect(message).toBe(
      'metadata, which unknown fields are a part of, must have at most 65536 bytes as JSON',
    )
  })
})

describe('levels of metadata', () => {
  it.each([
    ['objects', '{"a":', '}'],
    ['arrays and objects', '{"a":[', ']}'],
  ])('count %s', (_what, open, close) => {
    const depth = open.length > 5 ? 2 : 1
    // The innermost {} is a level, and each opening is one or two.
    const atLimit = nested(Math.floor((limits.metadataDepthMax - 1) / depth) + 1, open, close)
    expect(() => rowOf(withMetadata(atLimit))).not.toThrow()
    const beyond = nested(Math.floor((limits.metadataDepthMax - 1) / depth) + 2, open, close)
    expect(errorOf(withMetadata(beyond))).toMatchObject({ path: '/metadata', code: 'too_deep' })
  })

  it('take 16 levels of which 15 are arrays, and not one more', () => {
    expect(rowOf(withMetadata(arrays(15)))).toContain(arrays(15))
    expect(errorOf(withMetadata(arrays(16)))).toMatchObject({ code: 'too_deep' })
  })

  it('take scalars and nulls on the last level', () => {
    const metadata = `{"a":${'['.repeat(15)}1,null,"x",true${']'.repeat(15)}}`
    expect(rowOf(withMetadata(metadata))).toContain(metadata)
  })

  it('count what is folded in: an unknown field has one level less', () => {
    expect(() => rowOf(withMetadata('null', field(15)))).not.toThrow()
    expect(errorOf(withMetadata('null', field(16)))).toMatchObject({ code: 'too_deep' })
  })

  it('are found too many in the last of many members', () => {
    const members = Array.from({ length: 200 }, (_, i) => `"k${i}":${nested(15, '{"a":', '}')}`)
    expect(() => rowOf(withMetadata(`{${members.join(',')}}`))).not.toThrow()
    members.push(`"last":${nested(16, '{"a":', '}')}`)
    expect(errorOf(withMetadata(`{${members.join(',')}}`))).toMatchObject({ code: 'too_deep' })
  })

  it.each([
    ['objects', '{"a":', '}'],
    ['arrays', '[', ']'],
  ])('are refused when they are 100,000 %s, without an overflow of the stack', (_what, open, close) => {
    const text = withMetadata(`{"a":${nested(100_000, open, close)}}`)
    expect(errorOf(text)).toMatchObject({ path: '/metadata', code: 'too_deep' })
  })
})

describe('names of metadata', () => {
  it('are 256 at most, at the top', () => {
    const metadata = `{${names(256)}}`
    expect(metadataOf(withMetadata(metadata))).toHaveLength(metadata.length)
  })

  it('count what is folded in', () => {
    expect(() => rowOf(withMetadata(`{${names(200)}}`, `,${names(56, 'f')}`))).not.toThrow()
    expect(errorOf(withMetadata(`{${names(200)}}`, `,${names(57, 'f')}`))).toMatchObject({
      path: '/metadata',
      code: 'too_many_names',
    })
  })

  it('count a name that is in both once', () => {
    expect(() => rowOf(withMetadata(`{${names(256)}}`, `,${names(200)}`))).not.toThrow()
  })

  it('hold for unknown fields alone', () => {
    const text = `{"level":"info","message":"m",${names(257)}}`
    expect(errorOf(text)).toMatchObject({ code: 'too_many_names' })
  })

  it('are counted when they are as short as names can be', () => {
    const short = Array.from(
      { length: 257 },
      (_, i) => `${JSON.stringify(String.fromCodePoint(0x100 + i))}:0`,
    )
    expect(errorOf(withMetadata('{}', `,${short.join(',')}`))).toMatchObject({ code: 'too_many_names' })
  })

  it('are not limited below the top', () => {
    expect(() => rowOf(withMetadata(`{"a":{${names(1_000)}}}`))).not.toThrow()
  })
})
