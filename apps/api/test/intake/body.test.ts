import { describe, expect, it } from 'vitest'
import { checkBody, jsonFormat } from '../../src/intake/body.ts'
import type { FoundEntries } from '../../src/intake/entry-finder.ts'
import { InvalidLine } from '../../src/intake/invalid-line.ts'
import { Problem } from '../../src/problems.ts'

const codeOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    if (error instanceof Problem) return error.code
    throw error
  }
  return 'accepted'
}

const entries = (count: number): string => `[${Array.from({ length: count }, () => '0').join(',')}]`

function find(text: string, stepBytes: number): FoundEntries {
  const finder = jsonFormat.findEntries(Buffer.from(text))
  for (;;) {
    const found = finder.step(stepBytes)
    if (found !== undefined) return found
  }
}

/** The kind of a body, and the texts of its entries. */
function textsOf(text: string, stepBytes: number): unknown[] {
  const { kind, entries: found } = find(text, stepBytes)
  const texts = found.map((each) =>
    each instanceof InvalidLine
      ? each.error.message
      : Buffer.from(text).toString('utf8', each.start, each.end),
  )
  return [kind, ...texts]
}

describe('checkBody', () => {
  it('accepts UTF-8', () => {
    expect(codeOf(() => checkBody(Buffer.from('grüße 😀 \u0000')))).toBe('accepted')
  })

  it('rejects an empty body', () => {
    expect(codeOf(() => checkBody(Buffer.alloc(0)))).toBe('empty_body')
  })

  it('rejects bytes that are not UTF-8', () => {
    expect(codeOf(() => checkBody(Buffer.from([0x22, 0xff, 0x22])))).toBe('invalid_utf8')
  })
})

describe.each([1, 3, 1e9])('a JSON body in steps of %i bytes', (stepBytes) => {
  it.each([
    ['{"level":"info"}', ['entry', '{"level":"info"}']],
    [' {} ', ['entry', '{}']],
    ['{"logs":[1,null]}', ['batch', '1', 'null']],
    ['{"logs":[]}', ['batch']],
    ['[[]]', ['batch', '[]']],
    ['[ {"a":[{}]} ,"x", -1.5e3,true]', ['batch', '{"a":[{}]}', '"x"', '-1.5e3', 'true']],
    ['{"a":{"logs":[1]},"b":[{"logs":2}]}', ['entry', '{"a":{"logs":[1]},"b":[{"logs":2}]}']],
    ['{"level":"info","logs":[{"logs":[3]},4],"message":[5]}', ['batch', '{"logs":[3]}', '4']],
    ['{"l\\u006fgs":[1]}', ['batch', '1']],
    ['{"logs":[1],"logs":[2,3]}', ['batch', '2', '3']],
    ['{"logs":0,"\\u006cogs":["grüße"]}', ['batch', '"grüße"']],
  ])('has these entries: %s', (text, found) => {
    expect(textsOf(text, stepBytes)).toEqual(found)
  })

  it('ignores an inherited property "logs"', () => {
    expect(find('{"__proto__":{"logs":[]}}', stepBytes).kind).toBe('entry')
  })

  it('is rejected if it has too many entries', () => {
    expect(find(entries(100), stepBytes).entries).toHaveLength(100)
    expect(codeOf(() => find(entries(101), stepBytes))).toBe('too_many_entries')
    expect(codeOf(() => find(`{"logs":${entries(101)}}`, stepBytes))).toBe('too_many_entries')
    expect(find(`{"logs":${entries(101)},"logs":[]}`, stepBytes).entries).toHaveLength(0)
  })

  it.each([
    'null',
    '0',
    '"x"',
    'false',
    '9007199254740993',
    '1e400',
    '{"logs":9007199254740993}',
    '{"logs":[],"logs":{}}',
  ])('is rejected if it is %s', (text) => {
    expect(codeOf(() => find(text, stepBytes))).toBe('invalid_body')
  })

  it('is rejected if it is not JSON, whatever else is wrong with it', () => {
    expect(codeOf(() => find(`{"logs":${entries(101)},}`, stepBytes))).toBe('invalid_json')
    expect(codeOf(() => find('0 0', stepBytes))).toBe('invalid_json')
  })
})

const excessOf = (members: string): unknown => {
  const [entry] = find(`{"level":"info","message":"m"${members}}`, 1e9).entries
  return entry instanceof InvalidLine ? entry : entry?.excess
}
const values = (count: number): string => Array.from({ length: count }, () => '0').join(',')

describe('an entry', () => {
  it('has no excess if it may be valid', () => {
    const escapes = '\\ud83d\\ude00'.repeat(65_536)
    expect(excessOf(`,"metadata":{"a":[${values(32_000)}]},"stack":"${escapes}","url":null`)).toBeUndefined()
    expect(excessOf(`,"a":[${' 0,'.repeat(32_000)}0],"b":"${'\\u0061'.repeat(1_000)}"`)).toBeUndefined()
    // As printf("%.20f") writes 0.1, which has three bytes in the stored metadata.
    expect(excessOf(`,"a":[${'0.10000000000000000555,'.repeat(16_000)}-0]`)).toBeUndefined()
  })

  it('has an excess if its metadata and unknown fields are larger than metadata can be', () => {
    expect(excessOf(`,"metadata":{"a":[${values(34_000)}]}`)).toMatchObject({
      error: { path: '/metadata', code: 'too_large' },
    })
    expect(excessOf(`,"a":[${values(17_000)}],"b":[${values(17_000)}]`)).toMatchObject({
      error: { path: '', code: 'too_large' },
    })
    expect(excessOf(`,"a":${'['.repeat(40_000)}${']'.repeat(40_000)}`)).toMatchObject({
      error: { path: '', code: 'too_deep' },
    })
    expect(excessOf(`,"metadata":${'{"a":'.repeat(16)}[${values(34_000)}]${'}'.repeat(16)}`)).toMatchObject({
      error: { code: 'too_deep' },
    })
    // An unknown field is a level below the metadata.
    const nested = `${'['.repeat(15)}[${values(34_000)}]${']'.repeat(15)}`
    expect(excessOf(`,"a":${nested}`)).toMatchObject({ error: { code: 'too_deep' } })
    expect(excessOf(`,"a":${nested.slice(1, -1)}`)).toMatchObject({ error: { code: 'too_large' } })
  })

  it('has an excess if a text is longer than any valid one, or is not a text', () => {
    const tooLong = { substitute: { level: 'log', message: '', service: 'x'.repeat(257) }, error: undefined }
    expect(excessOf(`,"service":"${'a'.repeat(4_000)}"`)).toEqual(tooLong)
    const wrongType = { substitute: { level: 'log', message: '', service: [] } }
    expect(excessOf(`,"service":[${values(34_000)}]`)).toMatchObject(wrongType)
    expect(excessOf(`,"s\\u0065rvice":[${values(34_000)}]`)).toMatchObject(wrongType)
    expect(excessOf(`,"level":null,"url":null,"a":[${values(34_000)}]`)).toMatchObject({
      substitute: { level: [], message: '', url: null },
    })
  })

  it('has an excess if it repeats its texts', () => {
    expect(excessOf(`,"message":"${'a'.repeat(60_000)}"`.repeat(2))).toBeUndefined()
    expect(excessOf(`,"message":"${'a'.repeat(60_000)}"`.repeat(3))).toMatchObject({
      error: { code: 'too_large' },
    })
  })

  it('has no excess if the last value of a repeated field may be valid', () => {
    const long = `"${'a'.repeat(4_000)}"`
    expect(excessOf(`,"service":${long},"service":"s"`)).toBeUndefined()
    expect(excessOf(`,"service":"s","service":${long}`)).toMatchObject({
      substitute: { service: 'x'.repeat(257) },
    })
    expect(excessOf(`,"stack":null,"stack":"${'é'.repeat(60_000)}"`)).toBeUndefined()
    expect(excessOf(`,"service":[],"service":"s","metadata":[${values(34_000)}]`)).toMatchObject({
      substitute: { service: null, metadata: [] },
    })
  })
})
