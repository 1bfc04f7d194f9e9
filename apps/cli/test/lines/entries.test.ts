import { describe, expect, test } from 'vitest'
import { entryTextsOf, noDefaults } from './support.ts'

const full = { ...noDefaults, level: 'warn', service: 'web', environment: 'staging' } as const

const textOf = (line: string, defaults = noDefaults): string => entryTextsOf(line, { defaults }).join('\n')

const entryOf = (line: unknown, defaults = noDefaults): unknown =>
  JSON.parse(textOf(typeof line === 'string' ? line : JSON.stringify(line), defaults))

describe('a line', () => {
  test.each([
    'plain text',
    '[1,2]',
    '"text"',
    '42',
    'null',
    '{broken',
    '{"a":1} and more',
    '\u0000\u001B[31m',
  ])('becomes a message: %j', (line) => {
    expect(entryOf(line)).toEqual({ level: 'info', message: line })
  })

  test('has the level, service and environment of the flags', () => {
    expect(entryOf('text', full)).toEqual({
      level: 'warn',
      message: 'text',
      service: 'web',
      environment: 'staging',
    })
  })

  test('has the time and level of its prefix, and the program as the service unless there is one', () => {
    const line = 'Nov 20 10:00:00 host sshd[7]: text'
    const fields = {
      timestamp: '2026-11-20T10:00:00Z',
      message: 'text',
      metadata: { host: 'host', pid: '7' },
    }
    expect(entryOf(line)).toEqual({ ...fields, level: 'info', service: 'sshd' })
    expect(entryOf(line, { ...noDefaults, fallbackService: 'auth' })).toEqual({
      ...fields,
      level: 'info',
      service: 'sshd',
    })
    expect(entryOf(line, full)).toEqual({ ...fields, level: 'warn', service: 'web', environment: 'staging' })
  })

  test('is a message with all that it contains, if it is raw', () => {
    const lines = ['2026-11-20 10:00:00 ERROR text', ' more', '', '{"level":"error","message":"m"}']
    const texts = entryTextsOf(lines.join('\n'), { times: undefined })
    expect(texts.map((text) => JSON.parse(text) as unknown)).toEqual(
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

  test('missing fields are filled in, and others are not overwritten', () => {
    expect(entryOf({ message: 'm' }, full)).toEqual({
      level: 'warn',
      message: 'm',
      service: 'web',
      environment: 'staging',
    })
    const complete = { level: 'info', message: 'm', service: 'own', environment: 'production' }
    expect(entryOf(complete, full)).toEqual(complete)
    expect(entryOf({ ...complete, service: null }, full)).toEqual({ ...complete, service: 'web' })
  })

  test('of another logger is translated', () => {
    expect(entryOf({ level: 60, time: 1_795_214_581_123, msg: 'm', a: 1 })).toEqual({
      timestamp: '2026-11-20T22:43:01.123Z',
      level: 'error',
      message: 'm',
      metadata: { a: 1, originalLevel: 60 },
    })
  })

  test('with invalid fields keeps them in the metadata', () => {
    expect(entryOf('{"level":"banana","message":7}')).toEqual({
      level: 'info',
      message: '{"level":"banana","message":7}',
      metadata: { level: 'banana', message: 7 },
    })
  })

  test('keeps every digit of numbers when a field is filled in', () => {
    const entry = textOf('{"message":"m","id":123456789012345678901234567890}')
    expect(entry).toBe('{"level":"info","message":"m","metadata":{"id":123456789012345678901234567890}}')
  })

  test('that is nested very deeply is sent as a string', () => {
    const line = `{"message":"m","a":${'['.repeat(30_000)}1e400${']'.repeat(30_000)}}`
    expect(textOf(line)).toBe(JSON.stringify({ level: 'info', message: line }))
  })

  test('keeps __proto__ as data when a field is filled in', () => {
    const entry = textOf('{"level":"info","message":"m","__proto__":{"level":"error"}}', full)
    expect(entry).toBe(
      '{"level":"info","message":"m","__proto__":{"level":"error"},"service":"web","environment":"staging"}',
    )
  })

  test('followed by a stack trace has it as its stack', () => {
    const [entry = '{}'] = entryTextsOf('{"level":"error","message":"m"}\n    at a (b.js:1:2)')
    expect(JSON.parse(entry)).toEqual({ level: 'error', message: 'm', stack: '    at a (b.js:1:2)' })
  })
})
