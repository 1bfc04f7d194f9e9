import * as fc from 'fast-check'
import type { QueriedEntry } from '../../src/match.ts'
import type { Field, Query, QueryColumn, Test } from '../../src/query.ts'

/** Few texts, so that queries and entries often have the same: of numbers in every form, with escapes, patterns and letters of many kinds. */
const numbers =
  '0 -0 -0.0 1 4 42 42.0 4.2e1 420E-1 499.99999999999999999 500 5e2 0.1 0.10 1e-7 0.0000001 1e21 1E+21 1e400 -1e400 1e-400 ' +
  '9007199254740991 9007199254740992 9007199254740993 9007199254740993.0 -9007199254740993 18446744073709551615 18446744073709551616 ' +
  '-9223372036854775808 -9223372036854775809 12345678901234567890 123456789012345678901234567890 123456789012345678901234567890.5'
const numberTexts = [...numbers.split(' '), '9'.repeat(76), '9'.repeat(77), `-${'8'.repeat(80)}`]
const letters = [
  'a',
  'A',
  'ab',
  'Ab',
  'é',
  'É',
  'ÉT',
  'Ét',
  'straße',
  'STRASSE',
  'K',
  'İ',
  'ſ',
  '😀',
  '\uffff',
  '\ue000',
]
const escapes = [
  '',
  ' ',
  'a b',
  'a"b',
  'a\\b',
  '\\',
  '"',
  'x/y',
  '/',
  '\n',
  '\t',
  '\u0000',
  '\u0001a',
  '\u007f',
  '\u2028',
]
const signs = [
  '%',
  '_',
  'a%b',
  'a_b',
  "'",
  '{',
  '[',
  '[1]',
  '["a"]',
  '{"a":1}',
  ' 4',
  '4 ',
  '2026-11-24T10:00:00Z',
]
const words = 'true false null nul t 007 +4 .5 5. NaN inf 2026-11-24'.split(' ')
const texts = [letters, escapes, signs, words].flat()
const number = fc.oneof(
  fc.constantFrom(...numberTexts),
  fc.integer().map(String),
  fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => JSON.stringify(value)),
  fc
    .tuple(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.nat(999_999), fc.integer({ min: -330, max: 320 }))
    .map(([whole, fraction, exponent]) => `${whole}.${fraction}e${exponent}`),
)
const text = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...texts, ...numberTexts) },
  {
    weight: 1,
    arbitrary: fc.string({ unit: 'binary', maxLength: 4 }).map((string) => string.toWellFormed()),
  },
)
const value = fc.oneof({ weight: 2, arbitrary: text }, { weight: 1, arbitrary: number })

const name = fc.constantFrom('a', 'b', 'c', 'a.b', 'b.c', 'a.b.c', 'é', 'x"y', 'x\\y', 'x/y', '\n')

/** A string of JSON, some of whose characters are escaped without need. */
const jsonString = (string: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(string, fc.constantFrom(0, 0, 0, 1, 2)).map(([content, every]) => {
    const plain = JSON.stringify(content)
    if (every === 0) return plain
    if (every === 1) return plain.replaceAll('/', String.raw`\/`)
    const units = content.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'))
    return `"${units.map((unit) => `\\u${unit}`).join('')}"`
  })

const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 3, arbitrary: fc.oneof(jsonString(text), number, fc.constantFrom('true', 'false', 'null')) },
    { weight: 2, arbitrary: objectOf(tie('json')) },
    { weight: 1, arbitrary: listOf(tie('json'), '[', ']') },
  ),
}))

function objectOf(content: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const member = fc
    .tuple(jsonString(name), fc.constantFrom(':', ':', ' : '), content)
    .map((parts) => parts.join(''))
  return listOf(member, '{', '}')
}

function listOf(content: fc.Arbitrary<string>, open: string, close: string): fc.Arbitrary<string> {
  return fc
    .tuple(fc.array(content, { maxLength: 4 }), fc.constantFrom(',', ' ,\n '))
    .map(([parts, comma]) => `${open}${parts.join(comma)}${close}`)
}

/** Any JSON object, repeated names included. */
const metadata = objectOf(json)

const times = ['2026-11-24T10:00:00.000000Z', '2026-11-24T10:00:00.123456Z', '2026-11-23T23:59:59.999999Z']
const ids = ['01990000-0000-7000-8000-00000000000a', '01990000-0000-7000-8000-00000000000b']
const time = fc.constantFrom(...times)

export const anyEntry: fc.Arbitrary<QueriedEntry> = fc.record({
  id: fc.oneof(fc.constantFrom(...ids), fc.uuid()),
  timestamp: time,
  received_at: time.map((micros) => `${micros.slice(0, 23)}Z`),
  level: fc.constantFrom('log', 'debug', 'info', 'success', 'warn', 'error'),
  service: value,
  environment: fc.constantFrom('', 'production'),
  source: fc.constantFrom('', 'server'),
  message: value,
  url: value,
  pathname: value,
  stack: value,
  metadata,
})

const path: fc.Arbitrary<Field> = fc
  .array(name, { minLength: 1, maxLength: 3 })
  .map((names) => ({ type: 'path', path: names }))
const column = (...names: readonly QueryColumn[]): fc.Arbitrary<Field> =>
  fc.constantFrom(...names).map((of) => ({ type: 'column', name: of }))

const bound = fc.record({ text: value, inclusive: fc.boolean() })
const exists: fc.Arbitrary<Test> = fc.constant({ type: 'exists' })
const equals = (of: fc.Arbitrary<string>): fc.Arbitrary<Test> =>
  of.map((only) => ({ type: 'equals', texts: [only] }))
const textTest: fc.Arbitrary<Test> = fc.oneof(
  exists,
  equals(value),
  value.filter((prefix) => prefix !== '').map((prefix): Test => ({ type: 'prefix', text: prefix })),
  bound.map((from): Test => ({ type: 'range', from })),
  bound.map((to): Test => ({ type: 'range', to })),
)
const timeText = time.map((iso) => iso.slice(0, 26).replace('T', ' '))
const timeTest: fc.Arbitrary<Test> = fc.oneof(
  exists,
  timeText.map((from): Test => ({ type: 'range', from: { text: from, inclusive: true } })),
  timeText.map((to): Test => ({ type: 'range', to: { text: to, inclusive: false } })),
)
const contained = value.map((part): Test => ({ type: 'contains', text: part }))

const termOf = (field: fc.Arbitrary<Field>, test: fc.Arbitrary<Test>): fc.Arbitrary<Query> =>
  fc.record({ type: fc.constant('term'), position: fc.constant(0), end: fc.constant(0), field, test })
export const anyTerm: fc.Arbitrary<Query> = fc.oneof(
  { weight: 4, arbitrary: termOf(path, textTest) },
  { weight: 2, arbitrary: termOf(column('message', 'url', 'stack'), fc.oneof(textTest, contained)) },
  { weight: 1, arbitrary: termOf(column('service', 'pathname', 'environment', 'source'), textTest) },
  { weight: 1, arbitrary: termOf(column('timestamp', 'received_at'), timeTest) },
  {
    weight: 1,
    arbitrary: termOf(column('level'), fc.oneof(exists, equals(fc.constantFrom('error', 'warn', 'x')))),
  },
  { weight: 1, arbitrary: termOf(column('id'), fc.oneof(exists, equals(fc.constantFrom(...ids)))) },
)

export const { query: anyQuery } = fc.letrec<{ query: Query }>((tie) => {
  const operands = fc.array(tie('query'), { minLength: 2, maxLength: 3 })
  return {
    query: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      { weight: 4, arbitrary: anyTerm },
      { weight: 1, arbitrary: operands.map((of): Query => ({ type: 'and', operands: of })) },
      { weight: 1, arbitrary: operands.map((of): Query => ({ type: 'or', operands: of })) },
      { weight: 1, arbitrary: tie('query').map((operand): Query => ({ type: 'not', operand })) },
    ),
  }
})
