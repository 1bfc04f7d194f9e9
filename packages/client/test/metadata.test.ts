import { runInNewContext } from 'node:vm'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LimitError } from '../src/encode.ts'
import { limits } from '@sluice/schema/limits'
import { plainMetadata } from '../src/metadata.ts'
import { raise, throwing } from './support/raise.ts'

const convert = (fields: object): unknown =>
  JSON.parse(JSON.stringify(plainMetadata({}, fields, undefined).metadata ?? {}))

/** The result, or the limit that is exceeded. */
function describeConversion(fields: object): unknown {
  try {
    return convert(fields)
  } catch (error) {
    if (error instanceof LimitError) return `${error.entryError.path} ${error.entryError.code}`
    throw error
  }
}

const unlistable = new Proxy({}, { ownKeys: () => raise(new Error('no')) })
const itself = { a: 1, toJSON: (): unknown => itself }
const never = { b: 1, toJSON: () => 'never' }
const url = new URL('https://a.example/b')
class Point {
  readonly x = 1
  readonly #hidden = 2
  get sum(): number {
    return this.x + this.#hidden
  }
}
const circular: Record<string, unknown> = { name: 'a' }
circular['self'] = circular
circular['list'] = [circular]
const map = new Map<unknown, unknown>([
  ['a', 1n],
  [2, new Set([new Map([['b', 3n]])])],
])

test.each<[string, object, unknown]>([
  ['a map', map, { a: '1', '2': [{ b: '3' }] }],
  ['an object with toJSON', { a: 1, toJSON: () => ({ id: 7n }) }, { id: '7' }],
  ['an object whose toJSON returns a map', { toJSON: () => map }, { a: '1', '2': [{ b: '3' }] }],
  ['an object whose toJSON returns a string', url, { fields: 'https://a.example/b' }],
  ['an object whose toJSON returns itself', itself, { a: 1 }],
  ['an object whose toJSON returns another one with toJSON', { toJSON: () => never }, { b: 1 }],
  ['an object with a getter that throws', Object.assign(throwing('b'), { a: 1 }), { a: 1, b: '[Threw: no]' }],
  ['a proxy that throws', unlistable, { fields: '[Threw: no]' }],
])('fields are converted as a whole: %s', (_name, fields, expected) => {
  expect(convert(fields)).toEqual(expected)
})

test.each<[string, unknown, unknown]>([
  ['a BigInt', 12345678901234567890n, '12345678901234567890'],
  ['a circular reference', circular, { name: 'a', self: '[Circular]', list: ['[Circular]'] }],
  ['NaN', Number.NaN, null],
  ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
  ['an invalid date', new Date(Number.NaN), null],
  ['a map with a set', map, { a: '1', '2': [{ b: '3' }] }],
  ['a regular expression', /a+/g, '/a+/g'],
  ['bytes', Buffer.from('abc').subarray(1), '[Buffer: 2 bytes]'],
  ['a typed array', new Float64Array(3), '[Float64Array: 24 bytes]'],
  ['an array buffer', new ArrayBuffer(8), '[ArrayBuffer: 8 bytes]'],
  ['a URL', url, 'https://a.example/b'],
  ['a boxed string', Object('abc') as unknown, 'abc'],
  ['an instance of a class', new Point(), { x: 1 }],
  ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 }],
  ['functions and symbols in an array', [() => 1, Symbol('a'), undefined], [null, null, null]],
  ['toJSON', { toJSON: () => ({ a: 1n }) }, { a: '1' }],
  ['toJSON that returns the object', itself, { a: 1 }],
  ['toJSON that returns another one with toJSON', { toJSON: () => never }, { b: 1 }],
  ['toJSON that throws', { toJSON: () => raise(new Error('no')) }, '[Threw: no]'],
  ['a getter that throws', throwing('b'), { b: '[Threw: no]' }],
  ['a getter that throws a string', throwing('b', 'no'), { b: '[Threw: no]' }],
  ['a proxy that throws', unlistable, '[Threw: no]'],
])('a value that JSON cannot hold is replaced: %s', (_name, value, expected) => {
  expect(convert({ value, nested: { value } })).toEqual({ value: expected, nested: { value: expected } })
})

test('functions, symbols and undefined are left out', () => {
  const nothing = { a: () => 1, b: Symbol('b'), c: undefined }
  expect(convert({ ...nothing, nested: nothing })).toEqual({ nested: {} })
})

test('nothing causes an exception except for a limit, or a circular result', () => {
  const [withBigInt, withMap, withSet, withDate, withTypedArray] = [true, true, true, true, true]
  const kinds = { withBigInt, withMap, withSet, withDate, withTypedArray }
  const anything = fc.anything({ ...kinds, withNullPrototype: true, withBoxedValues: true })
  fc.assert(
    fc.property(fc.dictionary(fc.string(), anything), (fields) => {
      expect(() => describeConversion(fields)).not.toThrow()
    }),
    runsOf(100),
  )
})

test('names with a special meaning are members like any other, and never change a prototype', () => {
  const json = '{"__proto__":{"a":1},"constructor":2,"nested":{"__proto__":{"polluted":true}}}'
  expect(JSON.stringify(plainMetadata({}, JSON.parse(json), undefined).metadata)).toBe(json)
  expect({}).not.toHaveProperty('polluted')
})

describe('an error', () => {
  const error = new Error('no')
  const plain = { name: 'Error', message: 'no' }
  const why = new Error('why')
  const whole = { name: 'Error', message: 'why', stack: why.stack }
  const coded = Object.assign(new TypeError('no', { cause: why }), { code: 'E_NO' })
  const failure = { name: 'TypeError', message: 'no', code: 'E_NO', cause: whole }
  const far = runInNewContext('new RangeError("far")') as Error

  test.each<[string, Parameters<typeof plainMetadata>, Error, object]>([
    ['becomes the stack, and metadata without it', [{}, { failure: coded }, undefined], coded, { failure }],
    [
      'keeps its stack if it is not the first',
      [{}, { error, why }, undefined],
      error,
      { error: plain, why: whole },
    ],
    ['as the message is the field `error`', [{}, undefined, error], error, { error: plain }],
    [
      'as the message is no field if there is one',
      [{}, { error: 'other' }, error],
      error,
      { error: 'other' },
    ],
    ['in place of the fields is `error`', [{ a: 1 }, error, undefined], error, { a: 1, error: plain }],
    ['of a vm is recognised', [{}, { far }, undefined], far, { far: { name: 'RangeError', message: 'far' } }],
  ])('%s', (_name, args, { stack }, metadata) => {
    expect(plainMetadata(...args)).toEqual({ stack, metadata })
  })

  test('that is its own cause is not followed, and several errors are shown', () => {
    const circle = new Error('no')
    circle.cause = circle
    expect(convert({ error: circle })).toEqual({ error: { ...plain, cause: '[Circular]' } })
    const all = new AggregateError([error, why], 'all')
    expect(convert({ all })).toMatchObject({ all: { message: 'all', errors: [plain, whole] } })
  })

  test('with a stack that throws or is no string is converted', () => {
    const broken = Object.defineProperty(new Error('a'), 'stack', { get: () => raise(new Error('b')) })
    expect(plainMetadata({}, { broken }, undefined).stack).toBe('[Threw: b]')
    const numeric = Object.assign(new Error('a'), { stack: 1 })
    expect(plainMetadata({}, { numeric }, undefined).stack).toBeUndefined()
  })
})

/** Objects in objects; the metadata itself is level 1. */
function nested(levels: number, deepest: object = {}): object {
  let value = deepest
  for (let level = 2; level < levels; level += 1) value = level % 2 === 0 ? { value } : [value]
  return { value }
}

test('the limit of levels is exact, and does not count strings, such as dates', () => {
  const levels = limits.metadataDepthMax
  expect(describeConversion(nested(levels, { date: new Date(0), url }))).toBeTypeOf('object')
  expect(describeConversion(nested(levels + 1))).toBe('/metadata too_deep')
})

test('the limit of bytes stops the conversion of a graph that grows by 16 times with each level', () => {
  let value: object = {}
  for (let level = 2; level < 16; level += 1) value = Array.from({ length: 16 }, () => value)
  expect(describeConversion({ value })).toBe('/metadata too_large')
})
