import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LimitError } from '../src/encode.ts'
import { plainMetadata } from '../src/metadata.ts'
import { contractLimits } from '../src/entry.ts'
import { raise, throwing } from './support/raise.ts'

const unlistable = new Proxy({}, { ownKeys: () => raise(new Error('no')) })
const itself = {
  a: 1,
  toJSON(): unknown {
    return this
  },
}
const convert = (fields: object): unknown =>
  JSON.parse(JSON.stringify(plainMetadata({}, fields, undefined).metadata ?? {}))

describe('fields that are converted as a whole', () => {
  const document = { secret: 1, toJSON: () => ({ id: 7, at: new Date(0) }) }
  test.each<[string, object, unknown]>([
    [
      'a map',
      new Map<unknown, unknown>([
        ['a', 1n],
        [2, new Set([1])],
      ]),
      { a: '1', '2': [1] },
    ],
    ['an object with toJSON', document, { id: 7, at: '1970-01-01T00:00:00.000Z' }],
    ['an object whose toJSON returns a map', { toJSON: () => new Map([['a', 1]]) }, { a: 1 }],
    [
      'an object whose toJSON returns a string',
      new URL('https://a.example/b'),
      { fields: 'https://a.example/b' },
    ],
    ['an object whose toJSON returns itself', itself, { a: 1 }],
  ])('%s', (_name, fields, expected) => {
    expect(convert(fields)).toEqual(expected)
  })

  test('a map with too many names: one more than the limit is read', () => {
    const map = new Map(Array.from({ length: 1_000 }, (_, i) => [`name-${i}`, 1]))
    expect(Object.keys(convert(map) as object)).toHaveLength(contractLimits.metadataNamesMax + 1)
  })
})

describe('a value that JSON cannot hold', () => {
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

  test.each<[string, unknown, unknown]>([
    ['a BigInt', 12345678901234567890n, '12345678901234567890'],
    ['a circular reference', circular, { name: 'a', self: '[Circular]', list: ['[Circular]'] }],
    ['NaN', Number.NaN, null],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['an invalid date', new Date(Number.NaN), null],
    [
      'a map',
      new Map<unknown, unknown>([
        ['a', 1],
        [2, new Map([['b', 3n]])],
      ]),
      { a: 1, '2': { b: '3' } },
    ],
    ['a set', new Set([1, 'a']), [1, 'a']],
    ['a regular expression', /a+/g, '/a+/g'],
    ['bytes', Buffer.from('abc').subarray(1), '[Buffer: 2 bytes]'],
    ['a typed array', new Float64Array(3), '[Float64Array: 24 bytes]'],
    ['an array buffer', new ArrayBuffer(8), '[ArrayBuffer: 8 bytes]'],
    ['a URL', new URL('https://a.example/b'), 'https://a.example/b'],
    ['a boxed string', Object('abc') as unknown, 'abc'],
    ['an instance of a class', new Point(), { x: 1 }],
    ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 }],
    ['functions and symbols in an array', [() => 1, Symbol('a'), undefined], [null, null, null]],
    ['toJSON', { toJSON: () => ({ a: 1n }) }, { a: '1' }],
    ['toJSON that returns the object', itself, { a: 1 }],
    [
      'toJSON that returns another one with toJSON',
      { toJSON: () => ({ b: 1, toJSON: () => 'never' }) },
      { b: 1 },
    ],
    ['toJSON that throws', { toJSON: () => raise(new Error('no')) }, '[Threw: no]'],
    ['a getter that throws', throwing('b'), { b: '[Threw: no]' }],
    ['a getter that throws a string', throwing('b', 'no'), { b: '[Threw: no]' }],
    [
      'a getter that throws something unreadable',
      throwing('b', Object.create(null)),
      { b: '[Threw: an error that cannot be read]' },
    ],
    ['a proxy that throws', unlistable, '[Threw: no]'],
  ])('is replaced: %s', (_name, value, expected) => {
    expect(convert({ value, nested: { value } })).toEqual({ value: expected, nested: { value: expected } })
  })

  test('is left out: functions, symbols and undefined', () => {
    const nothing = { a: () => 1, b: Symbol('b'), c: undefined }
    expect(convert({ ...nothing, nested: nothing })).toEqual({ nested: {} })
  })

  test('is left out: toJSON of what toJSON of the fields returns, which would replace it', () => {
    expect(convert({ toJSON: () => ({ a: 1, toJSON: () => 'never' }) })).toEqual({ a: 1 })
  })

  test('is replaced if the fields themselves throw', () => {
    expect(convert(Object.assign(throwing('b'), { a: 1 }))).toEqual({ a: 1, b: '[Threw: no]' })
    expect(convert(unlistable)).toEqual({ fields: '[Threw: no]' })
  })

  test('never causes an exception except for a limit, and never a circular result', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string(),
          fc.anything({
            withBigInt: true,
            withMap: true,
            withSet: true,
            withDate: true,
            withTypedArray: true,
            withNullPrototype: true,
            withBoxedValues: true,
            withObjectString: true,
          }),
        ),
        (fields) => {
          expect(() => describeConversion(fields)).not.toThrow()
        },
      ),
    )
  })
})

/** The result, or the code of the limit that is exceeded. */
function describeConversion(fields: object): unknown {
  try {
    return convert(fields)
  } catch (error) {
    if (error instanceof LimitError) return error.entryError.code
    throw error
  }
}

describe('names with a special meaning', () => {
  test('are members like any other, and never change a prototype', () => {
    const fields = JSON.parse(
      '{"__proto__":{"a":1},"constructor":2,"nested":{"__proto__":{"polluted":true}}}',
    ) as object
    const { metadata } = plainMetadata({}, fields, undefined)
    expect(JSON.stringify(metadata)).toBe(
      '{"__proto__":{"a":1},"constructor":2,"nested":{"__proto__":{"polluted":true}}}',
    )
    expect({}).not.toHaveProperty('polluted')
  })
})

describe('an error', () => {
  const error = new Error('no')
  const plain = { name: 'Error', message: 'no' }
  const why = new Error('why')
  const coded = Object.assign(new TypeError('no', { cause: why }), { code: 'E_NO' })
  const far = runInNewContext('new RangeError("far")') as Error

  test.each<[string, Parameters<typeof plainMetadata>, Error, object]>([
    [
      'becomes the stack of the entry, and metadata without the stack',
      [{}, { failure: coded, a: 1 }, undefined],
      coded,
      {
        a: 1,
        failure: {
          name: 'TypeError',
          message: 'no',
          code: 'E_NO',
          cause: { name: 'Error', message: 'why', stack: why.stack },
        },
      },
    ],
    [
      'of several keeps its own stack, if it is not the first',
      [{}, { error, why }, undefined],
      error,
      { error: plain, why: { name: 'Error', message: 'why', stack: why.stack } },
    ],
    ['as the message is the field `error`', [{}, undefined, error], error, { error: plain }],
    [
      'as the message is no field if there is one',
      [{}, { error: 'other' }, error],
      error,
      { error: 'other' },
    ],
    [
      'in place of the fields is the field `error`',
      [{ a: 1 }, error, undefined],
      error,
      { a: 1, error: plain },
    ],
    [
      'of another realm is recognised',
      [{}, { far }, undefined],
      far,
      { far: { name: 'RangeError', message: 'far' } },
    ],
  ])('%s', (_name, args, { stack }, metadata) => {
    expect(plainMetadata(...args)).toEqual({ stack, metadata })
  })

  test('that is its own cause is not followed', () => {
    const circle = new Error('no')
    circle.cause = circle
    expect(convert({ error: circle })).toEqual({
      error: { name: 'Error', message: 'no', cause: '[Circular]' },
    })
  })

  test('with several errors shows them', () => {
    const all = new AggregateError([new Error('1'), new Error('2')], 'all')
    expect(convert({ all })).toMatchObject({
      all: { message: 'all', errors: [{ message: '1' }, { message: '2' }] },
    })
  })

  test('with a stack that throws or is no string is converted', () => {
    const broken = Object.defineProperty(new Error('a'), 'stack', { get: () => raise(new Error('b')) })
    expect(plainMetadata({}, { broken }, undefined).stack).toBe('[Threw: b]')
    const numeric = Object.assign(new Error('a'), { stack: 1 })
    expect(plainMetadata({}, { numeric }, undefined).stack).toBeUndefined()
  })
})

/** Objects in objects; the metadata itself is level 1. */
const nested = (levels: number): object => {
  let value: object = {}
  for (let level = 2; level < levels; level += 1) value = level % 2 === 0 ? { value } : [value]
  return { value }
}
const codeOf = (fields: object): string => {
  try {
    convert(fields)
  } catch (error) {
    if (error instanceof LimitError) return `${error.entryError.path} ${error.entryError.code}`
  }
  return 'valid'
}

describe('a limit', () => {
  test('of levels is exact', () => {
    expect(codeOf(nested(contractLimits.metadataDepthMax))).toBe('valid')
    expect(codeOf(nested(contractLimits.metadataDepthMax + 1))).toBe('/metadata too_deep')
  })

  test('of levels does not count strings, such as dates and causes at the end', () => {
    const levels = nested(contractLimits.metadataDepthMax) as { value: unknown }
    let deepest: unknown = levels
    while (Object.values(deepest as object)[0] !== undefined)
      [deepest] = Object.values(deepest as object) as [unknown]
    Object.assign(deepest as object, { date: new Date(0), url: new URL('https://a.example') })
    expect(codeOf(levels)).toBe('valid')
  })

  test('of bytes stops the conversion of a graph that doubles with each level', () => {
    expect(codeOf({ value: doubling(16) })).toBe('/metadata too_large')
  })
})

/** An object in which each level refers to the next one 16 times: 16 to the power of its levels when it is written out. */
function doubling(levels: number): object {
  let value: object = {}
  for (let level = 2; level < levels; level += 1) {
    const next = value
    value = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [i, next]))
  }
  return value
}
