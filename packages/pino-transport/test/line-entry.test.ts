import { describe, expect, it } from 'vitest'
import { type EntryContext, entryOfLine } from '../src/line-entry.ts'
import { pinoLevelNames } from '../src/pino-config.ts'

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

describe('the level', () => {
  it('keeps the name of a level that says more', () => {
    expect(entryOf({ level: 60, msg: '' })).toMatchObject({
      level: 'error',
      metadata: { originalLevel: 'fatal' },
    })
  })
  it('keeps the number of a level without a name', () => {
    expect(entryOf({ level: 33, msg: '' })).toMatchObject({ level: 'info', metadata: { originalLevel: 33 } })
  })
  it('is info if there is none, and the value stays in the metadata', () => {
    expect(entryOf({ level: 'loud', msg: '' })).toMatchObject({ level: 'info', metadata: { level: 'loud' } })
  })
})

describe('the message', () => {
  it('has the key of the logger', () => {
    expect(entryOf({ text: 'a', msg: 'b' }, { messageKey: 'text' })).toMatchObject({
      message: 'a',
      metadata: { msg: 'b' },
    })
  })
  it('is taken from `message` if the key is absent', () => {
    expect(entryOf({ message: 'a' })).toMatchObject({ message: 'a', metadata: {} })
  })
  it('is JSON if it is no text', () => {
    expect(entryOf({ msg: { a: [1] } })).toMatchObject({ message: '{"a":[1]}' })
  })
  it('is the line if there is none', () => {
    expect(entryOf({ level: 30, order: 7 })).toMatchObject({
      message: '{"level":30,"order":7}',
      metadata: { order: 7 },
    })
  })
  it('is cut to the limit of the API', () => {
    const { message } = entryOf({ msg: 'x'.repeat(70_000) }) as { message: string }
    expect(message).toBe(`${'x'.repeat(65_535)}…`)
  })
})

describe('the time', () => {
  it.each(['time', 'timestamp', '@timestamp'])('may have the name %s', (name) => {
    expect(entryOf({ [name]: '2018-07-09T21:17:54Z', msg: '' })).toEqual({
      level: 'info',
      message: '',
      timestamp: '2018-07-09T21:17:54Z',
      metadata: {},
    })
  })
  it('is the first one that can be read', () => {
    expect(
      entryOf({ time: 'soon', timestamp: 1_531_171_074, '@timestamp': 1_531_171_075, msg: '' }),
    ).toMatchObject({
      timestamp: '2018-07-09T21:17:54Z',
      metadata: { time: 'soon', '@timestamp': 1_531_171_075 },
    })
  })
})

describe('an error', () => {
  const err = { type: 'TypeError', message: 'no', stack: 'TypeError: no\n    at f', code: 'E1' }
  it('becomes the stack, and the rest of it stays', () => {
    expect(entryOf({ err, msg: 'no' })).toMatchObject({
      stack: err.stack,
      metadata: { err: { type: 'TypeError', message: 'no', code: 'E1' } },
    })
  })
  it('has the key of the logger', () => {
    expect(entryOf({ error: err, msg: 'no' }, { errorKey: 'error' })).toMatchObject({
      stack: err.stack,
      metadata: { error: { code: 'E1' } },
    })
  })
  it('without a stack stays as it is', () => {
    expect(entryOf({ err: 'text', msg: '' })).toMatchObject({ metadata: { err: 'text' } })
    expect(entryOf({ err: null, msg: '' })).toMatchObject({ metadata: { err: null } })
  })
  it('keeps its stack if the line has another one before', () => {
    expect(entryOf({ stack: 'first', err, msg: '' })).toMatchObject({ stack: 'first', metadata: { err } })
  })
  it('has a stack of at most the limit of the API', () => {
    const entry = entryOf({ err: { stack: 's'.repeat(70_000) }, msg: '' }) as { stack: string }
    expect(entry.stack).toHaveLength(65_536)
  })
})

describe('the service', () => {
  it('is the name of the logger', () => {
    expect(entryOf({ name: 'shop', msg: '' })).toMatchObject({ service: 'shop', metadata: {} })
  })
  it('is not the name if the transport has an option', () => {
    const entry = entryOf({ name: 'shop', msg: '' }, { hasService: true })
    expect(entry).toEqual({ level: 'info', message: '', metadata: { name: 'shop' } })
  })
  it('is `service` of the line before all', () => {
    expect(entryOf({ name: 'a', service: 'b', msg: '' }, { hasService: true })).toMatchObject({
      service: 'b',
      metadata: { name: 'a' },
    })
  })
  it('stays in the metadata if it is too long or no text', () => {
    const name = 'x'.repeat(257)
    expect(entryOf({ name, service: 7, msg: '' })).toMatchObject({ metadata: { name, service: 7 } })
  })
})

describe('other fields of the API', () => {
  it('are taken if they are valid', () => {
    const fields = { url: 'https://a/b', pathname: '/b', environment: 'staging', source: 'edge' }
    expect(entryOf({ ...fields, msg: '' })).toEqual({ level: 'info', message: '', ...fields, metadata: {} })
  })
  it('stay in the metadata if they are not', () => {
    const fields = {
      url: { a: 1 },
      pathname: 'x'.repeat(8_193),
      environment: 'moon',
      source: 1,
      stack: ['a'],
    }
    expect(entryOf({ ...fields, msg: '' })).toEqual({ level: 'info', message: '', metadata: fields })
  })
  it('`metadata` is merged, and no value replaces another one', () => {
    expect(entryOf({ a: 1, metadata: { a: 2, originalLevel: 3 }, level: 10, msg: '' })).toMatchObject({
      metadata: { a: 2, a_2: 1, originalLevel: 3, originalLevel_2: 'trace' },
    })
    expect(entryOf({ metadata: [1], msg: '' })).toMatchObject({ metadata: { metadata: [1] } })
  })
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
