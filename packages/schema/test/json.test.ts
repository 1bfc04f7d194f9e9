import { describe, expect, it } from 'vitest'
import { isInexact, isRawJson } from '../src/exact-json.ts'
import { parseJson, parseJsonExactly } from '../src/json.ts'

const roundTrip = (text: string): string => JSON.stringify(parseJsonExactly(text))

describe('parseJsonExactly', () => {
  it.each([
    '9007199254740991',
    '9007199254740992',
    '9007199254740993',
    '-9007199254740991',
    '-9007199254740993',
    '9223372036854775807',
    '-9223372036854775808',
    '18446744073709551615',
    '18446744073709551616',
    '123456789012345678901234567890',
    '9007199254740993.5',
    '1e400',
    '-1E+400',
    '1e308',
  ])('gives %s back digit by digit', (digits) => {
    expect(roundTrip(`[${digits}]`)).toBe(`[${digits}]`)
    expect(roundTrip(`{"a":{"b":${digits}}}`)).toBe(`{"a":{"b":${digits}}}`)
    expect(roundTrip(digits)).toBe(digits)
  })

  it.each(['{}', '[]', 'null', 'true', '"9007199254740993"', '[1.5,-2,0]', '{"a":[{"b":null}]}'])(
    'agrees with JSON.parse on %s',
    (text) => {
      expect(parseJsonExactly(text)).toEqual(JSON.parse(text))
    },
  )

  it('takes the last of duplicate names, with its own digits', () => {
    expect(roundTrip('{"a":1,"a":9007199254740993}')).toBe('{"a":9007199254740993}')
    expect(roundTrip('{"a":9007199254740993,"a":1}')).toBe('{"a":1}')
  })

  it('gives each number its own digits when names are reordered', () => {
    const text = '{"b":9007199254740993,"1":9007199254740995,"0":9007199254740997}'
    expect(roundTrip(text)).toBe('{"0":9007199254740997,"1":9007199254740995,"b":9007199254740993}')
  })

  it('keeps a number under __proto__ as data', () => {
    const value = parseJsonExactly('{"__proto__":9007199254740993}')
    expect(Object.hasOwn(value as object, '__proto__')).toBe(true)
    expect(JSON.stringify(value)).toBe('{"__proto__":9007199254740993}')
  })

  it.each(['{"a":1,}', '[1,]', '{a:1}', 'NaN', '', '01', '1.', '+1', "{'a':1}"])(
    'throws a SyntaxError for %s',
    (text) => {
      expect(() => parseJsonExactly(text)).toThrow(SyntaxError)
    },
  )
})

describe.each([
  ['parseJson', parseJson],
  ['parseJsonExactly', parseJsonExactly],
])('%s', (_name, parse) => {
  // V8 takes the second name of such a pair for the first, when an object with the first was parsed before.
  it.each([
    ['\\', '"'],
    ['\\', '\n'],
    ['\\\\', '\\N'],
    ['a\\', 'a\t'],
    ['\\u006', '\u0000evel'],
  ])('is not misled by an earlier name %j about %j', (earlier, name) => {
    for (const place of [{}, { place: 1 }, { place: 1, [`of ${name}`]: 2 }]) {
      parse(JSON.stringify({ ...place, [earlier]: 1 }))
      const text = JSON.stringify({ ...place, [name]: [{ [name]: 9_007_199_254_740_991 }] })
      expect(JSON.stringify(parse(text))).toBe(text)
    }
  })

  it.each([
    ['blanks around the colon', '{"\\n" \r\n\t : 1}', '{"\\n":1}'],
    ['an escape that need not be one', '{"\\u0061":1,"b":2}', '{"a":1,"b":2}'],
    ['a name twice, once escaped', '{"a":1,"b":2,"\\u0061":3}', '{"a":3,"b":2}'],
    ['an escaped integer, which comes first', '{"b":2,"\\u0031":1}', '{"1":1,"b":2}'],
    ['an escaped __proto__', '{"\\u005f_proto__":{"a":1}}', '{"__proto__":{"a":1}}'],
    ['a text like a name', '{"a":"\\":","b":"\\\\"}', '{"a":"\\":","b":"\\\\"}'],
    ['names and texts by turns', '{"\\t":"\\"x\\":1","\\\\":{"\\"":"\\t"}}', undefined],
  ])('reads %s', (_what, text, expected) => {
    expect(JSON.stringify(parse(text))).toBe(expected ?? text)
  })

  it.each(['{"\\x":1}', '{"\\', '"\\', '{"\\n":1', '{"\\n":}', '{"a":1}\\'])(
    'throws the SyntaxError of JSON.parse for %j',
    (text) => {
      let message = ''
      try {
        JSON.parse(text)
      } catch (error) {
        ;({ message } = error as Error)
      }
      expect(() => parse(text)).toThrow(new SyntaxError(message))
    },
  )
})

describe('isInexact', () => {
  it.each([
    [2 ** 53 - 1, false],
    [2 ** 53, true],
    [-(2 ** 53 - 1), false],
    [-(2 ** 53), true],
    [Infinity, true],
    [-Infinity, true],
    [0, false],
    [0.1, false],
  ])('of %d is %s', (value, expected) => {
    expect(isInexact(value)).toBe(expected)
  })
})

describe('isRawJson', () => {
  it('does not take an object with a field rawJSON for a number', () => {
    const value = parseJsonExactly('{"x":{"rawJSON":"1e400"}}')
    expect(isRawJson((value as { x: unknown }).x)).toBe(false)
  })
})
