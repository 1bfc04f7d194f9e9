import { limits } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { ndjsonFormat } from '../../src/intake/body.ts'
import { InvalidLine } from '../../src/intake/invalid-line.ts'

/** The texts of the entries, or what is wrong with their lines. */
function entriesOf(text: string, stepBytes = 1e9): readonly unknown[] {
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

describe.each([1, 3, 1e9])('an NDJSON body in steps of %i bytes', (stepBytes) => {
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
  ])('is parsed: %s', (_what, text, entries) => {
    expect(entriesOf(text, stepBytes)).toEqual(entries)
  })

  it.each(['{', 'x', '1 2', '{"a":1}{"a":2}', '\ufeff1', '\u00a0', "{'a':1}", '"a\rb"', '['.repeat(1e4)])(
    'has one invalid entry for a line that is not JSON: %j',
    (line) => {
      const [first, invalid, last, ...more] = entriesOf(`1\n${line}\n2`, stepBytes)
      expect([first, last, more]).toEqual(['1', '2', []])
      expect(invalid).toMatchObject({ error: { path: '', code: 'invalid_json' } })
      expect((invalid as InvalidLine).error.message).toMatch(
        /^is not JSON: .* at line 1, column \d+: expected /,
      )
      expect((invalid as InvalidLine).error.message.length).toBeLessThan(200)
    },
  )

  it('counts all lines that are not blank, valid or not', () => {
    expect(entriesOf(`\n\n${many(limits.entriesPerRequestMax)}\n\n`, stepBytes)).toHaveLength(100)
    for (const more of ['0', 'x', '\n\n{']) {
      const body = many(limits.entriesPerRequestMax) + more
      expect(() => entriesOf(body, stepBytes)).toThrow('at most 100 entries')
    }
  })
})

it('parses the largest body of blank lines within 500 ms of CPU time', () => {
  const cpu = process.cpuUsage()
  expect(entriesOf('\n'.repeat(limits.bodyBytesMax))).toEqual([])
  const { user, system } = process.cpuUsage(cpu)
  expect((user + system) / 1_000).toBeLessThan(500)
})
