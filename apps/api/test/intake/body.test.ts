import { limits } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { type BodyFormat, jsonFormat, ndjsonFormat } from '../../src/intake/body.ts'
import { InvalidLine } from '../../src/intake/invalid-line.ts'
import { Problem } from '../../src/problems.ts'

/** The kind of a body and the JSON of its entries, or the code of the problem. */
function find(text: string, stepBytes: number, format: BodyFormat = jsonFormat): readonly unknown[] {
  try {
    const finder = format.findEntries(Buffer.from(text))
    let found = finder.step(stepBytes)
    while (found === undefined) found = finder.step(stepBytes)
    const entries = found.entries.map((entry) =>
      entry instanceof InvalidLine ? entry : Buffer.from(text).toString('utf8', entry.start, entry.end),
    )
    return [found.kind, ...entries]
  } catch (error) {
    if (error instanceof Problem) return [error.code]
    throw error
  }
}

const max = limits.entriesPerRequestMax
const zeros = (count: number): string[] => Array<string>(count).fill('0')
const array = (count: number): string => `[${zeros(count).join(',')}]`

// Any body, in steps of the usual size: reference.test.ts.
describe.each([1, 1e9])('in steps of %i bytes', (stepBytes) => {
  it.each<[json: string, found: readonly string[]]>([
    ['{"level":"info"}', ['entry', '{"level":"info"}']],
    [' {} ', ['entry', '{}']],
    ['{"__proto__":{"logs":[]}}', ['entry', '{"__proto__":{"logs":[]}}']],
    ['{"logs":[1,null]}', ['batch', '1', 'null']],
    ['[ {"a":[{}]} ,"x", -1.5e3,true]', ['batch', '{"a":[{}]}', '"x"', '-1.5e3', 'true']],
    ['{"a":{"logs":[1]},"b":[{"logs":2}]}', ['entry', '{"a":{"logs":[1]},"b":[{"logs":2}]}']],
    ['{"level":"info","logs":[{"logs":[3]},4],"message":[5]}', ['batch', '{"logs":[3]}', '4']],
    ['{"logs":[1],"l\\u006fgs":[2,3]}', ['batch', '2', '3']],
    ['{"logs":0,"\\u006cogs":["grüße"]}', ['batch', '"grüße"']],
    [array(max), ['batch', ...zeros(max)]],
    [array(max + 1), ['too_many_entries']],
    [`{"logs":${array(max + 1)}}`, ['too_many_entries']],
    [`{"logs":${array(max + 1)},"logs":[]}`, ['batch']],
    ['"x"', ['invalid_body']],
    ['9007199254740993', ['invalid_body']],
    ['{"logs":9007199254740993}', ['invalid_body']],
    ['{"logs":[],"logs":{}}', ['invalid_body']],
    [`{"logs":${array(max + 1)},}`, ['invalid_json']],
    ['0 0', ['invalid_json']],
  ])('a JSON body has these entries, or is rejected: %s', (json, found) => {
    expect(find(json, stepBytes)).toEqual(found)
  })

  it.each<[what: string, body: string, lines: readonly string[]]>([
    ['lines', '{"a":1}\n[2]\nnull\n"x"\n', ['{"a":1}', '[2]', 'null', '"x"']],
    ['"logs" in a line', '{"logs":[1]}\n2', ['{"logs":[1]}', '2']],
    ['blank lines and CRLF', '\n\r\n1\r\n \t\n\n\r\r\n2\n\n', ['1', '2']],
    ['whitespace around a line', ' 1 \n\t2\t\r\n', ['1', '2']],
    ['nothing', '', []],
    ['only whitespace', '\n \r\n', []],
    ['an escaped newline', String.raw`{"a":"\n"}`, [String.raw`{"a":"\n"}`]],
    ['other line separators within a line', '"a\u2028b\u0085c"', ['"a\u2028b\u0085c"']],
    ['the most lines', `\n\n${zeros(max).join('\n')}\n\n`, zeros(max)],
  ])('an NDJSON body may have %s', (_what, body, lines) => {
    expect(find(body, stepBytes, ndjsonFormat)).toEqual(['batch', ...lines])
  })

  it.each(['{', 'x', '1 2', '{"a":1}{"a":2}', '\ufeff1', '\u00a0', "{'a':1}", '"a\rb"', '['.repeat(1e4)])(
    'an NDJSON body has one invalid entry for a line that is not JSON: %j',
    (line) => {
      const found = find(`1\n${line}\n2`, stepBytes, ndjsonFormat)
      const message = expect.stringMatching(
        /^is not JSON: .{0,120} at line 1, column \d+: expected .{0,100}$/,
      )
      const invalid = { error: { path: '', code: 'invalid_json', message: message as unknown } }
      expect(found).toMatchObject(['batch', '1', invalid, '2'])
    },
  )

  it.each(['0', 'x', '\n\n{'])('an NDJSON body has too many lines, valid or not: %j', (more) => {
    const body = `${zeros(max).join('\n')}\n${more}`
    expect(find(body, stepBytes, ndjsonFormat)).toEqual(['too_many_entries'])
  })
})
