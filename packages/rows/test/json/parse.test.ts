import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isRawJson, keepInexact } from '../../src/exact-json.ts'
import { parseChecked, parseJsonExactly } from '../../src/json/parse.ts'
import { runs } from '../support/arbitrary-entry.ts'
import { anyStyle, toJson, validEntry } from '../support/index.ts'

const roundTrip = (text: string): string => JSON.stringify(parseJsonExactly(text))

describe('parseJsonExactly', () => {
  it.each([
    '9007199254740992',
    '-9007199254740993',
    '18446744073709551616',
    '9007199254740993.5',
    '1e400',
    '-1E+400',
    '1e308',
  ])('keeps all digits of %s', (digits) => {
    for (const text of [digits, `[${digits}]`, `{"a":{"b":${digits}}}`, `{"__proto__":${digits}}`])
      expect(roundTrip(text)).toBe(text)
  })

  it('keeps the digits of each number when names are reordered', () => {
    const text = '{"b":9007199254740993,"1":9007199254740995,"0":9007199254740997}'
    expect(roundTrip(text)).toBe('{"0":9007199254740997,"1":9007199254740995,"b":9007199254740993}')
  })

  it('keeps all digits of the numbers in any JSON', () => {
    const digits = fc.stringMatching(/^-?[1-9]\d{16,40}$/)
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), digits, (value, number) => {
        const text = `[${JSON.stringify(value)},${number},{"a":${number}e5}]`
        expect(roundTrip(text)).toBe(text)
      }),
      runs,
    )
  })

  it('reads any entry, in any style of JSON', () => {
    fc.assert(
      fc.property(validEntry, anyStyle, (entry, style) => {
        expect(roundTrip(toJson(entry, style))).toBe(JSON.stringify(entry))
      }),
    )
  })

  it('throws a SyntaxError for any string that JSON.parse rejects, and only for those', () => {
    const examples = ['{"a":1,}', "{'a':1}", '', '01', '{"\\x":1}', '{"\\', '{"\\n":}', '{"a":1}\\']
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-0-9eE.+[\]{}",: ]{0,20}$/)), (text) => {
        expect(parses(parseJsonExactly, text)).toBe(parses(JSON.parse, text))
      }),
      { ...runs, examples: examples.map((text) => [text]) },
    )
  })
})

function parses(parse: (text: string) => unknown, text: string): boolean {
  try {
    parse(text)
    return true
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return false
  }
}

describe('escaped names', () => {
  // V8 reads the second name as the first if it has parsed an object with the first name before.
  it.each([
    ['\\', '"'],
    ['\\', '\n'],
    ['\\\\', '\\N'],
    ['a\\', 'a\t'],
    ['\\u006', '\u0000evel'],
  ])('after the name %j reads the name %j', (earlier, name) => {
    for (const place of [{}, { place: 1 }, { place: 1, [`of ${name}`]: 2 }]) {
      parseJsonExactly(JSON.stringify({ ...place, [earlier]: 1 }))
      const text = JSON.stringify({ ...place, [name]: [{ [name]: 9_007_199_254_740_991 }] })
      expect(JSON.stringify(parseJsonExactly(text))).toBe(text)
    }
  })

  it.each([
    ['whitespace around the colon', '{"\\n" \r\n\t : 1}', '{"\\n":1}'],
    ['an unnecessary escape', '{"\\u0061":1,"b":2}', '{"a":1,"b":2}'],
    ['a duplicate name that is escaped once', '{"a":1,"b":2,"\\u0061":3}', '{"a":3,"b":2}'],
    ['an escaped integer, which becomes the first name', '{"b":2,"\\u0031":1}', '{"1":1,"b":2}'],
    ['a duplicate between two others', '{"a":1,"\\u0061":2,"a":3}', '{"a":3}'],
    ['a duplicate integer that is escaped at first', '{"\\u0031":"first","1":"second"}', '{"1":"second"}'],
    ['duplicates at their first place', '{"a":1,"b":2,"\\u0062":3,"a":4}', '{"a":4,"b":3}'],
    ['a duplicate __proto__', '{"__proto__":1,"a":2,"\\u005f_proto__":3}', '{"__proto__":3,"a":2}'],
    ['an escaped __proto__', '{"\\u005f_proto__":{"a":1}}', '{"__proto__":{"a":1}}'],
    ['a string that looks like a name', '{"a":"\\":","b":"\\\\"}', '{"a":"\\":","b":"\\\\"}'],
    ['names and strings in turn', '{"\\t":"\\"x\\":1","\\\\":{"\\"":"\\t"}}', undefined],
  ])('reads %s', (_what, text, expected) => {
    expect(JSON.stringify(parseJsonExactly(text))).toBe(expected ?? text)
  })
})

it('resolves any duplicates as JSON.parse does', () => {
  const name = fc.constantFrom('a', 'b', '1', '0', '', 'level', '__proto__', 'toString', '-1', '01')
  const value = fc.oneof(fc.constantFrom('1', '"x"', 'null', '1e400', '{}'), fc.nat().map(String))
  const object = (member: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc
      .array(fc.tuple(name, fc.boolean(), member), { maxLength: 8 })
      .map(
        (members) =>
          `{${members.map(([text, isEscaped, json]) => `${isEscaped ? escaped(text) : JSON.stringify(text)}:${json}`).join(',')}}`,
      )
  fc.assert(
    fc.property(object(fc.oneof(value, object(value))), (text) => {
      const plain = text.replaceAll(/\\u(....)/g, (_, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      )
      expect(JSON.stringify(parseChecked(text, true))).toBe(JSON.stringify(JSON.parse(plain, withSource)))
    }),
    runs,
  )
})

/** The name as JSON, with an escape for each character. */
function escaped(name: string): string {
  return `"${Array.from(name, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`
}

/** A reviver that keeps the digits of inexact numbers. */
function withSource(_name: string, value: unknown, ...[context]: unknown[]): unknown {
  const { source = '' } = (context ?? {}) as { source?: string }
  return typeof value === 'number' ? keepInexact(source) : value
}

it('isRawJson returns false for an object with a field rawJSON', () => {
  const value = parseJsonExactly('{"x":{"rawJSON":"1e400"}}')
  expect(isRawJson((value as { x: unknown }).x)).toBe(false)
})
