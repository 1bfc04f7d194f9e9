import { entryOfRecord, levelsByName } from '@sluice/records'
import { describe, expect, it } from 'vitest'
import { type EntryContext, entryOfLine, parseLine } from '../src/line-entry.ts'
import { pinoLevelNames } from '../src/options.ts'

const context: EntryContext = {
  levelNames: pinoLevelNames,
  messageKey: 'msg',
  errorKey: 'err',
  hasService: false,
}
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
const { stack, ...errorRest } = err
const valid = { url: 'https://a/b', pathname: '/b', environment: 'staging', source: 'edge' }
const invalid = { url: { a: 1 }, pathname: 'x'.repeat(8_193), environment: 'moon', source: 1, stack: ['a'] }
const long = 'x'.repeat(257)
const time = '2018-07-09T21:17:54Z'

it.each<[string, object, object, Partial<EntryContext>?]>([
  [
    'the message has the key of the logger',
    { text: 'a', msg: 'b' },
    { message: 'a', metadata: { msg: 'b' } },
    { messageKey: 'text' },
  ],
  ['the message is taken from `message` if the key is absent', { message: 'a' }, { message: 'a' }],
  ['the message is JSON if it is no string', { msg: { a: [1] } }, { message: '{"a":[1]}' }],
  [
    'the message is the line if there is none',
    { level: 30, order: 7 },
    { message: '{"level":30,"order":7}', metadata: { order: 7 } },
  ],
  [
    'the message is cut to the limit of the API',
    { msg: 'x'.repeat(70_000) },
    { message: `${'x'.repeat(65_535)}…` },
  ],
  ['the time may be `time`', { time }, { timestamp: time }],
  ['the time may be `timestamp`', { timestamp: time }, { timestamp: time }],
  ['the time may be `@timestamp`', { '@timestamp': time }, { timestamp: time }],
  [
    'the time is the first that can be read',
    { time: 'soon', timestamp: 1_531_171_074, '@timestamp': 1_531_171_075 },
    { timestamp: time, metadata: { time: 'soon', '@timestamp': 1_531_171_075 } },
  ],
  ['an error becomes the stack, and the rest of it stays', { err }, { stack, metadata: { err: errorRest } }],
  [
    'an error has the key of the logger',
    { error: err },
    { stack, metadata: { error: errorRest } },
    { errorKey: 'error' },
  ],
  ['an error without a stack stays as it is', { err: 'text' }, { metadata: { err: 'text' } }],
  ['an error that is null stays as it is', { err: null }, { metadata: { err: null } }],
  [
    'an error keeps its stack if the line has another one before',
    { stack: 'first', err },
    { stack: 'first', metadata: { err } },
  ],
  [
    'a stack has at most the limit of the API',
    { err: { stack: 's'.repeat(70_000) } },
    { stack: `${'s'.repeat(65_535)}…`, metadata: { err: {} } },
  ],
  ['the service is the name of the logger', { name: 'shop' }, { service: 'shop' }],
  [
    'the service is not the name if the transport has an option',
    { name: 'shop' },
    { metadata: { name: 'shop' } },
    { hasService: true },
  ],
  [
    'the service is `service` of the line before all',
    { name: 'a', service: 'b' },
    { service: 'b', metadata: { name: 'a' } },
    { hasService: true },
  ],
  [
    'a service that is too long or no string stays in the metadata',
    { name: long, service: 7 },
    { metadata: { name: long, service: 7 } },
  ],
  ['other fields of the API are taken if they are valid', valid, valid],
  ['other fields of the API stay in the metadata if they are not', invalid, { metadata: invalid }],
  [
    '`metadata` is merged, and no value replaces another one',
    { a: 1, metadata: { a: 2, originalLevel: 3 }, level: 10 },
    { level: 'debug', metadata: { a: 2, a_2: 1, originalLevel: 3, originalLevel_2: 'trace' } },
  ],
  ['`metadata` that is no object stays', { metadata: [1] }, { metadata: { metadata: [1] } }],
])('%s', (_name, record, expected, changes = {}) => {
  const hasMessage = 'message' in expected
  const entry = entryOf(hasMessage ? record : { ...record, msg: '' }, changes)
  expect(entry).toEqual({ level: 'info', message: '', metadata: {}, ...expected })
})

it('a line that is no JSON object is the message', () => {
  expect(entryOfLine('Server listening', context)).toEqual({ level: 'info', message: 'Server listening' })
  expect(entryOfLine('[1]', context)).toEqual({ level: 'info', message: '[1]' })
})

it.each([
  ['{"msg":"a","__proto__":{"x":1},"constructor":2}', '{"__proto__":{"x":1},"constructor":2}'],
  ['{"msg":"a","__proto__":{"x":1},"metadata":{"__proto__":4}}', '{"__proto__":4,"__proto___2":{"x":1}}'],
])('names of the prototype are data in %s', (line, expected) => {
  const { metadata } = entryOfLine(line, context)
  expect(Object.getPrototypeOf(metadata)).toBe(Object.prototype)
  expect(JSON.parse(JSON.stringify(metadata))).toEqual(JSON.parse(expected))
})

it('parses an object', () => {
  expect(parseLine('{"a":[1,"x",null],"b":{"c":true}}')).toEqual({ a: [1, 'x', null], b: { c: true } })
})

it.each([['hello'], ['{"a":1'], [' {"a":1}'], ['[1]'], ['1'], ['null'], ['"a"'], ['{"a":1}}']])(
  'does not parse %j',
  (line) => {
    expect(parseLine(line)).toBeUndefined()
  },
)

it('keeps the digits of large integers, as strings', () => {
  const line = '{"id":12345678901234567890,"n":-98765432109876543210,"list":[11111111111111111111]}'
  expect(parseLine(line)).toEqual({
    id: '12345678901234567890',
    n: '-98765432109876543210',
    list: ['11111111111111111111'],
  })
})

it('leaves numbers that are exact, fractions, exponents and digits in strings as they are', () => {
  const line = String.raw`{"max":9007199254740991,"f":0.1234567890123456789,"e":1234567890123456e10,"t":"1234567890123456789","q":"\" 12345678901234567890"}`
  expect(parseLine(line)).toEqual({
    max: 9_007_199_254_740_991,
    f: 0.123_456_789_012_345_68,
    e: 1_234_567_890_123_456e10,
    t: '1234567890123456789',
    q: '" 12345678901234567890',
  })
})

it('does not search a huge line for integers', () => {
  const line = `{"text":"${'x'.repeat(300_000)}","id":12345678901234567890}`
  expect(parseLine(line)?.['id']).toBe(Number('12345678901234567890'))
})

describe('the level', () => {
  const levelNames = { ...pinoLevelNames, 25: 'http', 35: 'success', 45: 'audit' }

  it.each([
    [10, 'debug', 'trace'],
    [20, 'debug', undefined],
    [50, 'error', undefined],
    [60, 'error', 'fatal'],
    // Custom levels, by their names, otherwise by their rank among the levels of pino.
    [35, 'success', undefined],
    [45, 'info', 'audit'],
    [25, 'debug', 'http'],
    [29.5, 'debug', 29.5],
    [49, 'warn', 49],
    [70, 'error', 70],
    [-1, 'debug', -1],
    ['WARNING', 'warn', undefined],
    [' FATAL ', 'error', ' FATAL '],
  ])('%j is %s', (level, expected, originalLevel) => {
    const metadata = originalLevel === undefined ? {} : { originalLevel }
    expect(entryOf({ level, msg: '' }, { levelNames })).toEqual({ level: expected, message: '', metadata })
  })

  it.each(['loud', '', null, true, {}])('%j is not known, and stays in the metadata', (level) => {
    expect(entryOf({ level, msg: '' })).toEqual({ level: 'info', message: '', metadata: { level } })
  })
})

// The API reads lines of pino that shippers send. An application that changes to the transport must not see other entries.
describe('the entry is the same as the API makes', () => {
  it.each([
    ...Object.keys(pinoLevelNames).map((level) => ({ level: Number(level), msg: 'a' })),
    ...[...levelsByName.keys()].map((level) => ({ level, msg: 'a' })),
    { level: 30, time: 1_531_171_074_631, pid: 1, hostname: 'a', name: 'shop', msg: 'a' },
    { level: 30, time: '2018-07-09T21:17:54.631123456Z', msg: 'a' },
    { level: 30, time: 1_531_171_074.25, msg: 'a' },
    { level: 30, time: '2026-02-31T10:00:00Z', msg: 'a' },
    { level: 30, pid: 1, hostname: 'a', name: 'shop', service: 'other', msg: 'a' },
    { level: 50, err: { type: 'Error', message: 'a', stack: 'Error: a\n    at b', code: 1 }, msg: 'a' },
    { level: 30, url: '/a', pathname: '/a', environment: 'prd', source: 'edge', msg: 'a' },
    { level: 30, url: { a: 1 }, source: 'moon', msg: 'a' },
    { level: 30, metadata: { a: 1 }, a: 2, msg: 'a' },
    { level: 30, a: 1 },
  ])('of the record %j', (record) => {
    const { metadata, ...fields } = entryOf(record) as Record<string, unknown>
    const { metadata: expectedMetadata = {}, ...expected } = entryOfRecord(record, { defaultLevel: 'info' })
    expect(fields).toEqual(expected)
    // The only difference: the transport knows the names of levels.
    const { originalLevel, ...rest } = expectedMetadata as Record<string, unknown>
    const name = typeof originalLevel === 'number' ? pinoLevelNames[originalLevel] : originalLevel
    expect(metadata).toEqual(name === undefined ? rest : { ...rest, originalLevel: name })
  })
})
