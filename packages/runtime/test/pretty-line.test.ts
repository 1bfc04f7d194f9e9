import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import { prettyLine } from '../src/pretty-line.ts'

const line = (fields: object): string =>
  `${JSON.stringify({ level: 40, time: new Date(2026, 0, 2, 3, 4, 5, 67), pid: 1, hostname: 'h', name: 'api', ...fields })}\n`

describe('a line for people', () => {
  it('has the local time, the level, the name, the message and the other fields', () => {
    expect(
      prettyLine(line({ msg: 'batch not inserted', attempt: 3, reason: 'no answer', id: 'a-1' }), false),
    ).toBe('03:04:05.067 WARN  api batch not inserted attempt=3 reason="no answer" id=a-1\n')
  })

  it('has the same text with colours', () => {
    const text = line({ msg: 'failed', err: { stack: 'Error: no\n    at here' }, n: [1] })
    const coloured = prettyLine(text, true)
    expect(coloured).toContain('\u001B[33mWARN ')
    expect(stripVTControlCharacters(coloured)).toBe(prettyLine(text, false))
  })

  it('has the stack of an error on lines of its own', () => {
    expect(prettyLine(line({ msg: 'failed', err: { stack: 'Error: no\n    at here' } }), false)).toBe(
      '03:04:05.067 WARN  api failed\n    Error: no\n        at here\n',
    )
  })

  it('passes no control character of a value to the terminal', () => {
    const evil = '\u001B[2J\u009B31m\u202Eabc\n'
    const text = prettyLine(line({ msg: evil, [evil]: evil, err: { stack: evil } }), false)
    // oxlint-disable-next-line no-control-regex -- these must not be in the text
    expect(text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u202E]/u)
    expect(text).toContain(String.raw`\u001b[2J`)
  })

  it.each(['not JSON\n', '[\n', '7\n', 'null\n'])('keeps a line that is no object: %j', (text) => {
    expect(prettyLine(text, false)).toBe(text)
  })
})
