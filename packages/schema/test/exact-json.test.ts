import { describe, expect, it } from 'vitest'
import { isInexact, isRawJson, parseJsonExactly } from '../src/exact-json.ts'

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
