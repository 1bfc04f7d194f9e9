import { limits } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { InvalidLine, ndjsonFormat } from '../../src/intake/ndjson.ts'

const entriesOf = (text: string, exact = false): readonly unknown[] => {
  const submission = ndjsonFormat.parse(text, exact)
  if (submission.kind !== 'batch') throw new Error('not a batch')
  return submission.entries
}
const many = (count: number): string => '0\n'.repeat(count)

describe.each([false, true])('an NDJSON body, exact: %s', (exact) => {
  it.each([
    ['one line', '{"a":1}', [{ a: 1 }]],
    ['lines', '{"a":1}\n[2]\nnull\n"x"\n', [{ a: 1 }, [2], null, 'x']],
    ['a last line without a newline', '1\n2', [1, 2]],
    ['CRLF', '1\r\n2\r\n', [1, 2]],
    ['blank lines', '\n\r\n1\n \t\n\n\r\r\n2\n\n', [1, 2]],
    ['whitespace around a line', ' 1 \n\t2\t\r\n', [1, 2]],
    ['an empty text', '', []],
    ['only whitespace', '\n \r\n', []],
    ['an escaped newline', String.raw`{"a":"\n"}`, [{ a: '\n' }]],
    ['other line separators within a line', '"a\u2028b\u0085c"', ['a\u2028b\u0085c']],
  ])('is parsed: %s', (_what, text, entries) => {
    expect(entriesOf(text, exact)).toEqual(entries)
  })

  it.each(['{', 'x', '1 2', '{"a":1}{"a":2}', '\ufeff1', '\u00a0', "{'a':1}", '"a\rb"', '['.repeat(1e5)])(
    'has one invalid entry for a line that is not JSON: %j',
    (line) => {
      const [first, invalid, last, ...more] = entriesOf(`1\n${line}\n2`, exact)
      expect([first, last, more]).toEqual([1, 2, []])
      expect(invalid).toMatchObject({ error: { path: '', code: 'invalid_json' } })
      expect(invalid).toBeInstanceOf(InvalidLine)
      expect((invalid as InvalidLine).error.message.length).toBeLessThan(200)
    },
  )

  it('has one invalid entry for a line that is nested too deep for the parser', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    expect(entriesOf(`1\n${deep}\n2`, exact)).toMatchObject([1, expect.anything(), 2])
  })

  it('counts all lines that are not blank, valid or not', () => {
    expect(entriesOf(`\n\n${many(limits.entriesPerRequestMax)}\n\n`, exact)).toHaveLength(100)
    for (const more of ['0', 'x', '\n\n{']) {
      expect(() => entriesOf(many(limits.entriesPerRequestMax) + more, exact)).toThrow('at most 100 entries')
    }
  })
})

it('keeps huge numbers as they are written', () => {
  const [entry] = entriesOf('{"n":12345678901234567890}', true)
  expect(JSON.stringify(entry)).toBe('{"n":12345678901234567890}')
})

it('parses the largest body of blank lines within 500 ms of CPU time', () => {
  const cpu = process.cpuUsage()
  expect(entriesOf('\n'.repeat(limits.bodyBytesMax))).toEqual([])
  const { user, system } = process.cpuUsage(cpu)
  expect((user + system) / 1_000).toBeLessThan(500)
})
