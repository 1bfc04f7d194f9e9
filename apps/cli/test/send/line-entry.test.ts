import { describe, expect, test } from 'vitest'
import { type EntryDefaults, lineToEntry } from '../../src/send/line-entry.ts'

const bare: EntryDefaults = { level: 'info', service: undefined, environment: undefined }
const full: EntryDefaults = { level: 'warn', service: 'web', environment: 'staging' }

const entryOf = (line: unknown, defaults = bare): unknown =>
  JSON.parse(lineToEntry(typeof line === 'string' ? line : JSON.stringify(line), defaults))

describe('a line of text', () => {
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
})

describe('a JSON object', () => {
  test.each([
    '{"level":"info","message":"m","metadata":{"n":123456789012345678901234567890,"f":1.10}}',
    ' { "level" : "error", "message" : "m", "__proto__": {"a": 1} } ',
    '{"level":"banana","message":7}',
  ])('without missing fields is sent unchanged: %s', (line) => {
    expect(lineToEntry(line, bare)).toBe(line)
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

  test('takes the message from msg, else from the line', () => {
    expect(entryOf({ msg: 'm', a: 1 })).toEqual({ level: 'info', message: 'm', a: 1 })
    expect(entryOf('{"a": 1}')).toEqual({ level: 'info', message: '{"a": 1}', a: 1 })
    expect(entryOf('{"msg":7}')).toEqual({ level: 'info', message: '{"msg":7}', msg: 7 })
    expect(entryOf({ message: 'm', msg: 'other' })).toEqual({ level: 'info', message: 'm', msg: 'other' })
  })

  test('takes the timestamp from time, in both formats of pino', () => {
    const expected = { level: 'info', message: 'm', timestamp: '2026-11-20T22:43:01.123Z' }
    expect(entryOf({ message: 'm', time: 1_795_214_581_123 })).toEqual(expected)
    expect(entryOf({ message: 'm', time: '2026-11-20T22:43:01.123Z' })).toEqual(expected)
  })

  test.each([1_795_214_581, 'soon', 1e300, -1, { at: 1 }])('keeps an invalid time as it is: %j', (time) => {
    expect(entryOf({ message: 'm', time })).toEqual({ level: 'info', message: 'm', time })
  })

  test('keeps every digit of numbers when a field is filled in', () => {
    const entry = lineToEntry('{"message":"m","id":123456789012345678901234567890}', bare)
    expect(entry).toBe('{"message":"m","id":123456789012345678901234567890,"level":"info"}')
  })

  test('keeps __proto__ as data when a field is filled in', () => {
    const entry = lineToEntry('{"message":"m","__proto__":{"level":"error"}}', bare)
    expect(entry).toBe('{"message":"m","__proto__":{"level":"error"},"level":"info"}')
  })
})

describe('levels', () => {
  test.each([
    ['INFO', 'info'],
    ['Warning', 'warn'],
    [30, 'info'],
    [50, 'error'],
  ])('with other names are translated: %j', (level, translated) => {
    expect(entryOf({ level, message: 'm' })).toEqual({ level: translated, message: 'm' })
  })

  test.each([
    ['FATAL', 'error'],
    ['trace', 'debug'],
    [60, 'error'],
  ])('without an equivalent become the nearest level, and the original is kept: %j', (level, nearest) => {
    expect(entryOf({ level, message: 'm' })).toEqual({ level: nearest, message: 'm', originalLevel: level })
  })

  test.each(['banana', 35, true, ['info'], 'constructor', '__proto__'])(
    'that are unknown are sent unchanged, for the API to reject: %j',
    (level) => {
      expect(entryOf({ level, message: 'm' })).toEqual({ level, message: 'm' })
    },
  )
})
