import { describe, expect, test } from 'vitest'
import { entriesOf, entryTextsOf, noDefaults } from './support.ts'

const full = { ...noDefaults, level: 'warn', service: 'web', environment: 'staging' } as const

const textOf = (line: string, defaults = noDefaults): string => entryTextsOf(line, { defaults }).join('\n')

const entryOf = (line: unknown, defaults = noDefaults): unknown =>
  JSON.parse(textOf(typeof line === 'string' ? line : JSON.stringify(line), defaults))

describe('a line', () => {
  test.each(['[1,2]', '"text"', '42', 'null', '{broken', '{"a":1} and more', '\u0000\u001B[31m'])(
    'becomes a message: %j',
    (line) => {
      expect(entryOf(line)).toEqual({ level: 'info', message: line })
      expect(entryOf(line, full)).toEqual({ ...full, fallbackService: undefined, message: line })
    },
  )

  test('has the time and level of its prefix, and the program as the service unless there is one', () => {
    const line = 'Nov 20 10:00:00 host sshd[7]: text'
    const metadata = { host: 'host', pid: '7' }
    const fields = { timestamp: '2026-11-20T10:00:00Z', level: 'info', message: 'text', metadata }
    expect(entryOf(line, { ...noDefaults, fallbackService: 'auth' })).toEqual({ ...fields, service: 'sshd' })
    const named = { level: 'warn', service: 'web', environment: 'staging' }
    expect(entryOf(line, full)).toEqual({ ...fields, ...named })
  })

  test('is a message with all that it contains, if it is raw', () => {
    const lines = ['2026-11-20 10:00:00 ERROR text', ' more', '', '{"level":"error","message":"m"}']
    expect(entriesOf(lines.join('\n'), { times: undefined })).toEqual(
      lines.filter((line) => line !== '').map((message) => ({ level: 'info', message })),
    )
  })
})

describe('a JSON object', () => {
  test.each([
    '{"level":"info","message":"m","metadata":{"n":123456789012345678901234567890,"f":1.10}}',
    ' { "level" : "error", "message" : "m", "__proto__": {"a": 1} } ',
    '{"level":"info","message":"m","a":1,"a":2}',
  ])('without missing fields is sent unchanged: %s', (line) => {
    expect(textOf(line)).toBe(line)
  })

  const own = { level: 'info', message: 'm', service: 'own', environment: 'production' }
  test.each([
    [{ message: 'm' }, { level: 'warn', message: 'm', service: 'web', environment: 'staging' }],
    [own, own],
    [
      { ...own, service: null },
      { ...own, service: 'web' },
    ],
  ])('has its own fields, and the flags instead of missing ones: %j', (line, entry) => {
    expect(entryOf(line, full)).toEqual(entry)
  })

  test('of another logger is translated', () => {
    expect(entryOf({ level: 60, time: 1_795_214_581_123, msg: 'm', a: 1 })).toEqual({
      timestamp: '2026-11-20T22:43:01.123Z',
      level: 'error',
      message: 'm',
      metadata: { a: 1, originalLevel: 60 },
    })
  })

  test('keeps every digit of numbers, and __proto__ as data, when a field is filled in', () => {
    expect(textOf('{"message":"m","id":123456789012345678901234567890}')).toBe(
      '{"level":"info","message":"m","metadata":{"id":123456789012345678901234567890}}',
    )
    expect(textOf('{"level":"info","message":"m","__proto__":{"level":"error"}}', full)).toBe(
      '{"level":"info","message":"m","metadata":{"__proto__":{"level":"error"}},"service":"web","environment":"staging"}',
    )
  })

  test('that is nested very deeply is sent as a string', () => {
    const line = `{"message":"m","a":${'['.repeat(30_000)}1e400${']'.repeat(30_000)}}`
    expect(textOf(line)).toBe(JSON.stringify({ level: 'info', message: line }))
  })

  test('followed by a stack trace has it as its stack', () => {
    expect(entriesOf('{"level":"error","message":"m"}\n    at a (b.js:1:2)')).toEqual([
      { level: 'error', message: 'm', stack: '    at a (b.js:1:2)' },
    ])
  })
})
