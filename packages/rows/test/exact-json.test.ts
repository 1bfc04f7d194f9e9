import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { keepInexact, parseJsonExactly } from '../src/exact-json.ts'
import { anyStyle, toJson, validEntry } from './support/index.ts'

const roundTrip = (text: string): string => JSON.stringify(parseJsonExactly(text))

it('reads any entry, in any style of JSON', () => {
  fc.assert(
    fc.property(validEntry, anyStyle, (entry, style) => {
      expect(roundTrip(toJson(entry, style))).toBe(JSON.stringify(entry))
    }),
    runsOf(100),
  )
})

it.each(['', '{"a":1,}', '01', '{"\\x":1}', '{"\\', '{"\\n":}', '{"a":1}\\'])(
  'throws a SyntaxError for %s',
  (text) => {
    expect(() => parseJsonExactly(text)).toThrow(SyntaxError)
  },
)

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
  ['a number that is not exact', '1e400', undefined],
  ['whitespace around the colon', '{"\\n" \r\n\t : 1}', '{"\\n":1}'],
  ['a string that looks like a name', '{"a":"\\":","b":"\\\\"}', '{"a":"\\":","b":"\\\\"}'],
  ['names and strings in turn', '{"\\t":"\\"x\\":1","\\\\":{"\\"":"\\t"}}', undefined],
])('reads %s', (_what, text, expected) => {
  expect(JSON.stringify(parseJsonExactly(text))).toBe(expected ?? text)
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
      expect(JSON.stringify(parseJsonExactly(text))).toBe(JSON.stringify(JSON.parse(plain, withSource)))
    }),
    runsOf(500),
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
