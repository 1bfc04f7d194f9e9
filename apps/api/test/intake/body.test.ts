import { describe, expect, it } from 'vitest'
import { checkBody, jsonFormat } from '../../src/intake/body.ts'
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

describe.each([false, true])('a JSON body, exact: %s', (exact) => {
  it.each([
    ['{"level":"info"}', { kind: 'entry', entry: { level: 'info' } }],
    ['{}', { kind: 'entry', entry: {} }],
    ['{"logs":[1,null]}', { kind: 'batch', entries: [1, null] }],
    ['{"logs":[]}', { kind: 'batch', entries: [] }],
    ['[[]]', { kind: 'batch', entries: [[]] }],
  ])('is parsed: %s', (text, submission) => {
    expect(jsonFormat.parse(text, exact)).toEqual(submission)
  })

  it('ignores an inherited property "logs"', () => {
    expect(jsonFormat.parse('{"__proto__":{"logs":[]}}', exact).kind).toBe('entry')
  })

  it('is rejected if it has too many entries', () => {
    expect(jsonFormat.parse(entries(100), exact).kind).toBe('batch')
    expect(codeOf(() => jsonFormat.parse(entries(101), exact))).toBe('too_many_entries')
    expect(codeOf(() => jsonFormat.parse(`{"logs":${entries(101)}}`, exact))).toBe('too_many_entries')
  })

  it.each(['null', '0', '"x"', 'false'])('is rejected if it is %s', (text) => {
    expect(codeOf(() => jsonFormat.parse(text, exact))).toBe('invalid_body')
  })

  it('does not crash the parser with a hundred thousand levels', () => {
    const deep = `[${'['.repeat(100_000)}${']'.repeat(100_000)}]`
    expect(['accepted', 'invalid_json']).toContain(codeOf(() => jsonFormat.parse(deep, exact)))
  })
})

describe('a JSON body', () => {
  it.each(['9007199254740993', '1e400', '{"logs":9007199254740993}'])(
    'is rejected if it is a huge number: %s',
    (text) => {
      expect(codeOf(() => jsonFormat.parse(text, false))).toBe('invalid_body')
    },
  )
})
