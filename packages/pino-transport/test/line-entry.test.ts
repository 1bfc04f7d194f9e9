import { entryOfRecord } from '@sluice/records'
import { expect, it } from 'vitest'
import { type EntryContext, entryOfLine, parseLine } from '../src/line-entry.ts'
import { pinoLevelNames } from '../src/options.ts'

const context = { levelNames: pinoLevelNames, messageKey: 'msg', errorKey: 'err', service: undefined }
const entryOf = (record: object, changes: Partial<EntryContext> = {}): unknown =>
  entryOfLine(JSON.stringify(record), { ...context, ...changes })

it('maps an ordinary line', () => {
  expect(
    entryOf({ level: 30, time: 1_531_171_074_631, pid: 657, hostname: 'a', req: { id: 1 }, msg: 'hello' }),
  ).toEqual({
    level: 'info',
    timestamp: '2018-07-09T21:17:54.631Z',
    message: 'hello',
    metadata: { pid: 657, hostname: 'a', req: { id: 1 } },
  })
})

const err = { type: 'TypeError', message: 'no', stack: 'TypeError: no\n    at f', code: 'E1' }
const { stack, ...rest } = err
const valid = { url: 'https://a/b', pathname: '/b', environment: 'staging', source: 'edge' }
const invalid = { url: { a: 1 }, pathname: 'x'.repeat(8_193), environment: 'moon', source: 1, stack: [1] }
const long = 'x'.repeat(70_000)
const cut = `${'x'.repeat(65_535)}…`
const time = '2018-07-09T21:17:54Z'
const times = { time: 'soon', timestamp: 1_531_171_074, '@timestamp': 1_531_171_075 }
const restOfTimes = { time: 'soon', '@timestamp': 1_531_171_075 }
const merged = { a: 1, metadata: { a: 2, originalLevel: 3 }, level: 10 }
const mergedMetadata = { a: 2, a_2: 1, originalLevel: 3, originalLevel_2: 'trace' }
const service = 'option'

it.each<[string, object, object, Partial<EntryContext>?]>([
  [
    'the key of the logger',
    { text: 'a', msg: 'b' },
    { message: 'a', metadata: { msg: 'b' } },
    { messageKey: 'text' },
  ],
  ['`message` if the key is absent', { message: 'a' }, { message: 'a' }],
  ['a message that is no string', { msg: { a: [1] } }, { message: '{"a":[1]}' }],
  ['no message', { order: 7 }, { message: '{"order":7}', metadata: { order: 7 } }],
  ['a message beyond the limit', { msg: long }, { message: cut }],
  ['a time', { '@timestamp': time }, { timestamp: time }],
  ['the first time that can be read', times, { timestamp: time, metadata: restOfTimes }],
  ['an error', { err }, { stack, metadata: { err: rest } }],
  ['an error with the key of the logger', { e: err }, { stack, metadata: { e: rest } }, { errorKey: 'e' }],
  ['an error without a stack', { err: 'text' }, { metadata: { err: 'text' } }],
  ['an error that is null', { err: null }, { metadata: { err: null } }],
  ['an error after another stack', { stack: 'first', err }, { stack: 'first', metadata: { err } }],
  ['a stack beyond the limit', { err: { stack: long } }, { stack: cut, metadata: { err: {} } }],
  ['the name of the logger', { name: 'shop' }, { service: 'shop' }],
  ['a name next to the option', { name: 'shop' }, { service, metadata: { name: 'shop' } }, { service }],
  ['`service`', { name: 'a', service: 'b' }, { service: 'b', metadata: { name: 'a' } }, { service }],
  [
    'a message next to that of the logger',
    { msg: 'a', message: 'b' },
    { message: 'a', metadata: { message: 'b' } },
  ],
  [
    'a time next to that of the logger',
    { time, timestamp: '2020' },
    { timestamp: time, metadata: { timestamp: '2020' } },
  ],
  ['names of other loggers', { env: 'prod', app: 'shop' }, { environment: 'production', service: 'shop' }],
  ['no valid service', { name: long, service: 7 }, { metadata: { name: long, service: 7 } }],
  ['valid fields of the API', valid, valid],
  ['invalid fields of the API', invalid, { metadata: invalid }],
  ['`metadata`, whose values are not replaced', merged, { level: 'debug', metadata: mergedMetadata }],
  ['`metadata` that is no object', { metadata: [1] }, { metadata: { metadata: [1] } }],
])('keeps every value of a line with %s', (_name, record, expected, changes = {}) => {
  const entry = entryOf('message' in expected ? record : { ...record, msg: '' }, changes)
  expect(entry).toEqual({ level: 'info', message: '', metadata: {}, ...expected })
})

it.each(['hello', '{"a":1', ' {"a":1}', '[1]', '"a"', '{"a":1}}'])(
  '%j is no object, so it is the message',
  (line) => {
    expect(entryOfLine(line, context)).toEqual({ level: 'info', message: line })
  },
)

it.each([
  ['{"msg":"a","__proto__":{"x":1},"constructor":2}', '{"__proto__":{"x":1},"constructor":2}'],
  ['{"msg":"a","__proto__":{"x":1},"metadata":{"__proto__":4}}', '{"__proto__":4,"__proto___2":{"x":1}}'],
])('names of the prototype are data in %s', (line, expected) => {
  const { metadata } = entryOfLine(line, context)
  expect(Object.getPrototypeOf(metadata)).toBe(Object.prototype)
  expect(JSON.parse(JSON.stringify(metadata))).toEqual(JSON.parse(expected))
})

it('keeps the digits of large integers, as strings, and other numbers and strings as they are', () => {
  const line = String.raw`{"id":-12345678901234567890,"list":[11111111111111111111],"max":9007199254740991,"f":0.1234567890123456789,"e":1234567890123456e10,"q":"\" 12345678901234567890"}`
  expect(parseLine(line)).toEqual({
    id: '-12345678901234567890',
    list: ['11111111111111111111'],
    max: 9_007_199_254_740_991,
    f: 0.123_456_789_012_345_68,
    e: 1_234_567_890_123_456e10,
    q: '" 12345678901234567890',
  })
  // A huge line is not searched for integers.
  const huge = `{"text":"${'x'.repeat(300_000)}","id":12345678901234567890}`
  expect(parseLine(huge)?.['id']).toBe(Number('12345678901234567890'))
})

const levelNames = { ...pinoLevelNames, 25: 'http', 35: 'success', 45: 'audit' }

it.each([
  [20, 'debug', {}],
  [60, 'error', { originalLevel: 'fatal' }],
  // Custom levels, by their names, otherwise by their rank among the levels of pino.
  [35, 'success', {}],
  [45, 'info', { originalLevel: 'audit' }],
  [25, 'debug', { originalLevel: 'http' }],
  [49, 'warn', { originalLevel: 49 }],
  [70, 'error', { originalLevel: 70 }],
  [-1, 'debug', { originalLevel: -1 }],
  [' FATAL ', 'error', { originalLevel: ' FATAL ' }],
  ['loud', 'info', { level: 'loud' }],
  [null, 'info', {}],
])('the level %j is %s', (level, expected, metadata) => {
  expect(entryOf({ level, msg: '' }, { levelNames })).toEqual({ level: expected, message: '', metadata })
})

// The API reads lines of pino that shippers send. An application that changes to the transport must not see other entries.
it.each([
  { level: 30, time: 1_531_171_074.25, pid: 1, hostname: 'a', name: 'shop', msg: 'a' },
  { level: 30, time: '2018-07-09T21:17:54.631123456Z', name: 'shop', service: 'other', msg: 'a' },
  { level: 30, time: '2026-02-31T10:00:00Z', url: '/a', pathname: '/a', environment: 'prd', msg: 'a' },
  { level: 50, err, msg: 'a' },
  { level: 30, url: { a: 1 }, source: 'moon', metadata: { a: 1 }, a: 2, msg: 'a' },
  { level: 30, a: 1 },
])('the entry is the same as the API makes of %j', (record) => {
  const expected = entryOfRecord(record, { defaultLevel: 'info' })
  expect(entryOf(record)).toEqual({ ...expected, metadata: expected['metadata'] ?? {} })
})
