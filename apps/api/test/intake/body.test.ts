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
  return 'taken'
}

const entries = (count: number): string => `[${Array.from({ length: count }, () => '0').join(',')}]`

describe('checkBody', () => {
  it('gives back what is UTF-8', () => {
    const body = Buffer.from('grüße 😀 \u0000')
    expect(checkBody(body)).toBe(body)
  })

  it.each([undefined, Buffer.alloc(0)])('tells an empty body', (body) => {
    expect(codeOf(() => checkBody(body))).toBe('empty_body')
  })

  it('refuses broken bytes', () => {
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
  ])('tells what %s is', (text, submission) => {
    expect(jsonFormat.parse(text, exact)).toEqual(submission)
  })

  it('does not see logs that are inherited', () => {
    expect(jsonFormat.parse('{"__proto__":{"logs":[]}}', exact).kind).toBe('entry')
  })

  it('counts a batch before it looks at its entries', () => {
    expect(jsonFormat.parse(entries(100), exact).kind).toBe('batch')
    expect(codeOf(() => jsonFormat.parse(entries(101), exact))).toBe('too_many_entries')
    expect(codeOf(() => jsonFormat.parse(`{"logs":${entries(101)}}`, exact))).toBe('too_many_entries')
  })

  it.each(['null', '0', '"x"', 'false'])('takes no %s', (text) => {
    expect(codeOf(() => jsonFormat.parse(text, exact))).toBe('invalid_body')
  })

  it('survives a hundred thousand levels', () => {
    const deep = `[${'['.repeat(100_000)}${']'.repeat(100_000)}]`
    expect(['taken', 'invalid_json']).toContain(codeOf(() => jsonFormat.parse(deep, exact)))
  })
})

describe('a JSON body', () => {
  it.each(['9007199254740993', '1e400', '{"logs":9007199254740993}'])('takes no huge number: %s', (text) => {
    expect(codeOf(() => jsonFormat.parse(text, false))).toBe('invalid_body')
  })
})
