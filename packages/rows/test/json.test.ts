import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isInexact, isRawJson } from '../src/exact-json.ts'
import { parseJson, parseJsonExactly } from '../src/json.ts'
import { runs } from './support/arbitrary-entry.ts'

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
  ])('keeps all digits of %s', (digits) => {
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

  it('uses the last of duplicate names, with its digits', () => {
    expect(roundTrip('{"a":1,"a":9007199254740993}')).toBe('{"a":9007199254740993}')
    expect(roundTrip('{"a":9007199254740993,"a":1}')).toBe('{"a":1}')
  })

  it('keeps the digits of each number when names are reordered', () => {
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

  it('keeps all digits of the numbers in any JSON', () => {
    const digits = fc.stringMatching(/^-?[1-9]\d{16,40}$/)
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), digits, (value, number) => {
        const text = `[${JSON.stringify(value)},${number},{"a":${number}e5}]`
        expect(JSON.stringify(parseJsonExactly(text))).toBe(text)
      }),
      runs,
    )
  })

  it('agrees with JSON.parse on whether any text is JSON', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-0-9eE.+[\]{}",: ]{0,20}$/)), (text) => {
        expect(parses(parseJsonExactly, text)).toBe(parses(JSON.parse, text))
      }),
      runs,
    )
  })
})

function parses(parse: (text: string) => unknown, text: string): boolean {
  try {
    parse(text)
    return true
  } catch {
    return false
  }
}

describe.each([
  ['parseJson', parseJson],
  ['parseJsonExactly', parseJsonExactly],
])('%s', (_name, parse) => {
  // V8 reads the second name as the first if it has parsed an object with the first name before.
  it.each([
    ['\\', '"'],
    ['\\', '\n'],
    ['\\\\', '\\N'],
    ['a\\', 'a\t'],
    ['\\u006', '\u0000evel'],
  ])('after the name %j reads the name %j', (earlier, name) => {
    for (const place of [{}, { place: 1 }, { place: 1, [`of ${name}`]: 2 }]) {
      parse(JSON.stringify({ ...place, [earlier]: 1 }))
      const text = JSON.stringify({ ...place, [name]: [{ [name]: 9_007_199_254_740_991 }] })
      expect(JSON.stringify(parse(text))).toBe(text)
    }
  })

  it.each([
    ['whitespace around the colon', '{"\\n" \r\n\t : 1}', '{"\\n":1}'],
    ['an unnecessary escape', '{"\\u0061":1,"b":2}', '{"a":1,"b":2}'],
    ['a duplicate name that is escaped once', '{"a":1,"b":2,"\\u0061":3}', '{"a":3,"b":2}'],
    ['an escaped integer, which becomes the first name', '{"b":2,"\\u0031":1}', '{"1":1,"b":2}'],
    ['an escaped __proto__', '{"\\u005f_proto__":{"a":1}}', '{"__proto__":{"a":1}}'],
    ['a string that looks like a name', '{"a":"\\":","b":"\\\\"}', '{"a":"\\":","b":"\\\\"}'],
    ['names and strings in turn', '{"\\t":"\\"x\\":1","\\\\":{"\\"":"\\t"}}', undefined],
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
  ])('returns for %d: %s', (value, expected) => {
    expect(isInexact(value)).toBe(expected)
  })
})

describe('isRawJson', () => {
  it('returns false for an object with a field rawJSON', () => {
    const value = parseJsonExactly('{"x":{"rawJSON":"1e400"}}')
    expect(isRawJson((value as { x: unknown }).x)).toBe(false)
  })
})
