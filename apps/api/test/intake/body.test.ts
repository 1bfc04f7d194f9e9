import { limits } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { jsonFormat, ndjsonFormat } from '../../src/intake/body.ts'
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

describe.each([1, 1e9])('a JSON body in steps of %i bytes', (stepBytes) => {
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

/** The texts of the lines of an NDJSON body, or what is wrong with them. */
function linesOf(text: string, stepBytes: number): readonly unknown[] {
  const finder = ndjsonFormat.findEntries(Buffer.from(text))
  for (;;) {
    const found = finder.step(stepBytes)
    if (found === undefined) continue
    expect(found.kind).toBe('batch')
    return found.entries.map((entry) =>
      entry instanceof InvalidLine ? entry : Buffer.from(text).toString('utf8', entry.start, entry.end),
    )
  }
}
const many = (count: number): string => '0\n'.repeat(count)

describe.each([1, 1e9])('an NDJSON body in steps of %i bytes', (stepBytes) => {
  it.each([
    ['one line', '{"a":1}', ['{"a":1}']],
    ['lines', '{"a":1}\n[2]\nnull\n"x"\n', ['{"a":1}', '[2]', 'null', '"x"']],
    ['"logs" in a line', '{"logs":[1]}\n2', ['{"logs":[1]}', '2']],
    ['a last line without a newline', '1\n2', ['1', '2']],
    ['CRLF', '1\r\n2\r\n', ['1', '2']],
    ['blank lines', '\n\r\n1\n \t\n\n\r\r\n2\n\n', ['1', '2']],
    ['whitespace around a line', ' 1 \n\t2\t\r\n', ['1', '2']],
    ['an empty text', '', []],
    ['only whitespace', '\n \r\n', []],
    ['an escaped newline', String.raw`{"a":"\n"}`, [String.raw`{"a":"\n"}`]],
    ['other line separators within a line', '"a\u2028b\u0085c"', ['"a\u2028b\u0085c"']],
  ])('is parsed: %s', (_what, text, found) => {
    expect(linesOf(text, stepBytes)).toEqual(found)
  })

  it.each(['{', 'x', '1 2', '{"a":1}{"a":2}', '\ufeff1', '\u00a0', "{'a':1}", '"a\rb"', '['.repeat(1e4)])(
    'has one invalid entry for a line that is not JSON: %j',
    (line) => {
      const [first, invalid, last, ...more] = linesOf(`1\n${line}\n2`, stepBytes)
      expect([first, last, more]).toEqual(['1', '2', []])
      expect(invalid).toMatchObject({ error: { path: '', code: 'invalid_json' } })
      expect((invalid as InvalidLine).error.message).toMatch(
        /^is not JSON: .* at line 1, column \d+: expected /,
      )
      expect((invalid as InvalidLine).error.message.length).toBeLessThan(200)
    },
  )

  it('counts all lines that are not blank, valid or not', () => {
    expect(linesOf(`\n\n${many(limits.entriesPerRequestMax)}\n\n`, stepBytes)).toHaveLength(100)
    for (const more of ['0', 'x', '\n\n{']) {
      const body = many(limits.entriesPerRequestMax) + more
      expect(() => linesOf(body, stepBytes)).toThrow('at most 100 entries')
    }
  })
})
