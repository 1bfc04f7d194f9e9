import { bytesField, varintField } from './support/wire.ts'
import { textPrefix, textOfBlocks } from '@sluice/rows/testing'
import { limits } from '@sluice/schema'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { isUtf8 } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import { RejectedBody, type ScannedRecords, Scanner } from '../src/index.ts'
import { type LokiOutcome, lokiReference } from './support/loki.ts'
import { ID, stamp, withOneId } from './support/reference.ts'
import { comparable } from './support/shippers.ts'

const pieces = { rowsMax: 2_000, bytesMax: 1_000_000 }
const scanner = new Scanner({ reserve: () => ID }, Date.now, pieces)
const prefix = textPrefix(stamp)

const scanLoki = (body: Buffer, isJson: boolean, hasRecords = false): ScannedRecords =>
  scanner.scanRecords(isJson ? 'LokiJson' : 'Loki', body, prefix, hasRecords)

function scan(body: Buffer, isJson: boolean, hasRecords = false): LokiOutcome {
  try {
    const { records, rejected, pieces: found } = scanLoki(body, isJson, hasRecords)
    const texts = found.map(({ rows }) => {
      const text = Buffer.alloc(rows.byteLength)
      rows.copyTo(text, 0)
      return textOfBlocks(text)
    })
    const errors = [...rejected].map(([index, { code, path }]) => ({ index, code, path }))
    expect(found.reduce((count, { rows }) => count + rows.count, errors.length)).toBe(records)
    return { rows: withOneId(texts.join('')), errors }
  } catch (error) {
    if (!(error instanceof RejectedBody)) throw error
    if (error.reason === 'json' || error.reason === 'shape') return { invalid: error.reason }
    if (error.reason === 'message') return { invalid: 'protobuf' }
    throw error
  }
}

const anyName = fc.constantFrom(
  ...'level detected_level severity severity_text service_name service app job env environment a b a_2 é'.split(
    ' ',
  ),
  'timeUnixNano',
  'timeUnixNano_2',
  'originalLevel',
  'deployment_environment_name',
  '',
  '__proto__',
  'tab\t"\\/~',
)
const anyText = fc.oneof(
  fc.constantFrom(
    'info',
    'WARN',
    ' Fatal ',
    '30',
    '060',
    ' 20',
    'critical',
    'shop',
    '',
    'unknown_service',
    'Prod',
    'qa',
  ),
  fc.constantFrom('x'.repeat(257), '😀'.repeat(200), 'a\tb\nc\\"d', '\u0001', 'v', '1'),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
)
const anyValue = fc.oneof(
  { weight: 6, arbitrary: anyText },
  fc.constantFrom<unknown>(1, true, null, 1.5, '\ud800', [1, { a: '\ud800x' }], { b: [], c: {} }, []),
  fc.jsonValue({ maxDepth: 2 }),
)
const anyTime = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      '"1763632800123456789"',
      '"1763632800123456000"',
      '"0"',
      '1763632800123456789',
    ),
  },
  fc.constantFrom(
    '"soon"',
    '9999999999999999999',
    '"9214646400000000000"',
    '"9214646399999999999"',
    '-1',
    'null',
    '1.5',
  ),
  fc.constantFrom('[]', String.raw`"\u0031"`, '""', '"17636328001234567890"', '1e3'),
)

/** An object with escapes and white space, and perhaps with repeated names. */
const anyObject = fc
  .tuple(fc.array(fc.tuple(anyName, anyValue), { maxLength: 5 }), fc.constantFrom(':', ' : '), fc.boolean())
  .map(([members, colon, isEscaped]) => {
    const text = members
      .map(([name, value]) => `${JSON.stringify(name)}${colon}${JSON.stringify(value)}`)
      .join(',')
    return `{${isEscaped ? text.replaceAll('l', String.raw`\u006c`).replace(/n\\u006c\\u006c|fa\\u006cse/g, 'null') : text}}`
  })

const anyLine = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .tuple(anyTime, fc.oneof({ weight: 9, arbitrary: anyText }, anyValue), fc.option(anyObject), fc.nat(20))
      .map(([time, line, metadata, more]) => {
        const parts = [time, JSON.stringify(line), ...(metadata === null ? [] : [metadata])]
        return `[${[...parts, ...(more === 0 ? ['1'] : [])].join(', ')}]`
      }),
  },
  fc.jsonValue({ maxDepth: 1 }).map((value) => JSON.stringify(value)),
)
const anyJson = fc
  .array(fc.tuple(fc.option(anyObject), fc.array(anyLine, { maxLength: 4 }), fc.boolean()), { maxLength: 3 })
  .map((streams) => {
    const texts = streams.map(([labels, lines, isFirst]) => {
      const values = [`"values":[${lines.join(',')}]`]
      const stream = labels === null ? [] : [`"stream":${labels}`]
      return `{${[...(isFirst ? stream : []), ...values, ...(isFirst ? [] : stream)].join(',')}}`
    })
    return Buffer.from(`{"streams":[${texts.join(',')}]}`)
  })

const brokenText = [
  0x61, 0xff, 0xc3, 0xa9, 0xe2, 0x80, 0xa8, 0xed, 0xa0, 0xf0, 0x9f, 0x98, 0x80, 0xf4, 0x90, 0xc0, 0x22,
]
const anyBytes = fc.oneof(
  { weight: 6, arbitrary: anyText.map((text) => Buffer.from(text)) },
  fc.array(fc.constantFrom(...brokenText), { maxLength: 24 }).map((bytes) => Buffer.from(bytes)),
)
const anyUnknown = fc.constantFrom(
  ...['4805', '7b08017c', '4d01020304', '490102030405060708'].map((hex) => Buffer.from(hex, 'hex')),
)
const anyEntry = fc
  .array(
    fc.oneof(
      fc
        .tuple(
          fc.constantFrom(
            1763632800n,
            1763632800n,
            0n,
            -1n,
            9214646400n,
            9214646399n,
            2n ** 62n,
            -(2n ** 63n),
          ),
          fc.constantFrom(123456789n, 123456000n, 0n, 1500000000n, -5n, 999999999n),
        )
        .map(([seconds, nanos]) => bytesField(1, varintField(1, seconds), varintField(2, nanos))),
      anyBytes.map((line) => bytesField(2, line)),
      {
        weight: 3,
        arbitrary: fc
          .tuple(anyName, anyBytes)
          .map(([name, value]) => bytesField(3, bytesField(1, Buffer.from(name)), bytesField(2, value))),
      },
      // More of them than there are numbers.
      fc
        .array(fc.constantFrom('', '_2', 'a', 'a_2', 'a_2_2', 'b'), { maxLength: 40, size: 'large' })
        .map((names) => Buffer.concat(names.map((name) => bytesField(3, bytesField(1, Buffer.from(name)))))),
      anyUnknown,
    ),
    { maxLength: 7 },
  )
  .map((fields) => bytesField(2, ...fields))
const anyQuoted = fc.oneof(
  { weight: 6, arbitrary: anyText.map((text) => Buffer.from(JSON.stringify(text))) },
  fc
    .constantFrom(
      ...String.raw`"\x41\101\xff\u00e9\U0001F600\ud800\q\a\400" ~raw\n~ "\" "a\é" "\u12" x ~`.split(' '),
    )
    .map((text) => Buffer.from(text.replaceAll('~', '`'))),
  anyBytes,
)
const anyLabel = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .constantFrom(...'level app a a a_2 env timeUnixNano x.y:z _ job 1a a-b é }a'.split(' '))
      .map((name) => Buffer.from(name)),
  },
  anyQuoted,
)
const anyLabels = fc
  .tuple(
    fc.constantFrom('{', ' { ', 'x{', ''),
    fc.array(fc.tuple(anyLabel, fc.constantFrom('=', ' = '), anyQuoted, fc.constantFrom(',', ' , ')), {
      maxLength: 4,
    }),
    fc.constantFrom('}', ' } ', '}x', ''),
    fc.nat(4),
  )
  .map(([open, labels, close, rare]) => {
    const parts = labels.flat().map((part) => Buffer.from(part as string))
    return Buffer.concat([
      Buffer.from(rare === 0 ? open : '{'),
      ...parts,
      Buffer.from(rare === 0 ? close : '}'),
    ])
  })
const anyProtobuf = fc
  .array(
    fc.oneof(
      {
        weight: 8,
        arbitrary: fc
          .tuple(
            fc.array(anyLabels, { maxLength: 2 }),
            fc.array(fc.oneof({ weight: 5, arbitrary: anyEntry }, anyUnknown), { maxLength: 4 }),
          )
          .map(([labels, fields]) =>
            bytesField(
              1,
              ...fields.slice(0, 2),
              ...labels.map((text) => bytesField(1, text)),
              ...fields.slice(2),
            ),
          ),
      },
      anyUnknown,
    ),
    { maxLength: 3 },
  )
  .map((fields) => Buffer.concat(fields))

/** Bytes with a meaning in JSON or as tags, and some that are invalid. */
const meaningful = [...Buffer.from('"\\{}[]:,0.-eEtfnu/ \n\r\t\0'), 0x7f, 0xc3, 0x0a, 0x12, 0x1a]
const anyChange = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  cut: fc.integer({ min: 0, max: 3 }),
  put: fc.array(fc.constantFrom(...meaningful), { maxLength: 3 }),
})

it.each([
  ['JSON', true, anyJson],
  ['Protocol Buffers', false, anyProtobuf],
] as const)(
  'gives the same rows and errors as the reference for %s, also if any bytes are changed',
  (_what, isJson, anyBody) => {
    fc.assert(
      fc.property(anyBody, fc.array(anyChange, { maxLength: 2 }), (whole, changes) => {
        let body = whole
        for (const { at, cut, put } of changes) {
          const from = Math.floor(at * body.length)
          body = Buffer.concat([body.subarray(0, from), Buffer.from(put), body.subarray(from + cut)])
        }
        fc.pre(!isJson || isUtf8(body))
        expect(scan(body, isJson)).toEqual(lokiReference(body, isJson, prefix))
      }),
      runsOf(600),
    )
  },
)

/** A record of a logger, or nearly one. */
const anyRecord = fc
  .tuple(
    fc.array(
      fc.tuple(
        fc.oneof(
          anyName,
          fc.constantFrom(
            ...'message msg time timestamp Timestamp stack metadata log record hostname pid url'.split(' '),
          ),
        ),
        fc.oneof(
          anyValue,
          fc.constantFrom<unknown>(
            30,
            50,
            60,
            1763632800123,
            '2025-11-20T10:00:00.123456Z',
            '2025-11-20T10:00:00.123Z',
            { level: 'WARN', time: 1763632800, a: 'b' },
            { metadata: 1, a: 2, timestamp: 3 },
            ['at f', 'at g'],
          ),
        ),
      ),
      { maxLength: 6 },
    ),
    fc.constantFrom('', ' ', 'x', '\n'),
    fc.boolean(),
  )
  .map(([members, end, isEscaped]) => {
    const text = members
      .map(([name, value]) => `${JSON.stringify(name)} : ${JSON.stringify(value)}`)
      .join(',')
    return `{${isEscaped ? text.replaceAll('g', String.raw`\u0067`) : text}}${end}`
  })
const anyRecordsJson = fc
  .tuple(
    fc.option(anyObject),
    fc.array(fc.tuple(anyTime, anyRecord, fc.option(anyObject)), { minLength: 1, maxLength: 4 }),
  )
  .map(([labels, lines]) => {
    const values = lines.map(
      ([time, line, metadata]) =>
        `[${time},${JSON.stringify(line)}${metadata === null ? '' : `,${metadata}`}]`,
    )
    return Buffer.from(`{"streams":[{"stream":${labels ?? '{}'},"values":[${values.join(',')}]}]}`)
  })
const anyRecordsProtobuf = fc
  .tuple(anyLabels, fc.array(fc.tuple(anyRecord, anyEntry), { maxLength: 4 }))
  .map(([labels, lines]) => {
    const entries = lines.map(([line, entry]) =>
      // The first field of the entry is its tag and its length.
      bytesField(2, entry.subarray(2), bytesField(2, Buffer.from(line)), varintField(7, 1n)),
    )
    return bytesField(1, bytesField(1, labels), ...entries)
  })

/** Rows without the forms of numbers and strings in their metadata. */
function withValues(outcome: LokiOutcome): object {
  const rows = outcome.rows
    ?.split('\n')
    .slice(0, -1)
    .map((row) => {
      const columns = row
        .split('\t')
        .map((column) => column.replaceAll(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter))
      return {
        columns: columns.slice(0, -1).map(comparable),
        metadata: JSON.parse(columns.at(-1) ?? '') as unknown,
      }
    })
  const errors = outcome.errors?.map(({ path, ...error }) => ({
    ...error,
    path: path.startsWith('/metadata') ? '/metadata' : path,
  }))
  return { ...outcome, rows, errors }
}
const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', 0: '\0' }

it.each([
  ['JSON', true, anyRecordsJson],
  ['Protocol Buffers', false, anyRecordsProtobuf],
] as const)(
  'gives the same rows and errors as the reference for lines that are records, in %s',
  (_what, isJson, anyBody) => {
    fc.assert(
      fc.property(anyBody, (body) => {
        expect(withValues(scan(body, isJson, true))).toEqual(
          withValues(lokiReference(body, isJson, prefix, true)),
        )
      }),
      runsOf(600),
    )
  },
)

const stringsOf = (count: number, prefixOfName = 'l'): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefixOfName}${i}`, '']))
const push = (...streams: readonly object[]): Buffer => Buffer.from(JSON.stringify({ streams }))
const oneLine = (stream: unknown, line: readonly unknown[] = ['0', 'x']): Buffer =>
  push({ stream, values: [line] })
const labelled = (labels: string): Buffer => bytesField(1, bytesField(1, Buffer.from(labels)), bytesField(2))
const longLabels = (bytes: number): string => `{a="${'x'.repeat(bytes - 'a'.length)}"}`
const taken = Object.fromEntries(Object.keys(stringsOf(64)).map((name) => [name, 'other']))
const takenFrom = (from: number, end: number): object =>
  Object.fromEntries(Object.entries(taken).slice(from, end))
const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])

it('half of a surrogate pair becomes U+FFFD, also in labels whose names are taken', () => {
  const lone = { a: '\ud800' }
  const body = oneLine({ level: [lone], é: [lone] }, ['0', '', { level: null, é: '' }])
  expect(scan(body, true)).toEqual(lokiReference(body, true, prefix))
})

describe('what is above a limit is repaired, and marked', () => {
  it.each<[what: string, body: Buffer, isJson: boolean, code: string | undefined]>([
    ['labels of 16 KiB in JSON', oneLine({ name: 'v'.repeat(16_384 - 'name'.length) }), true, undefined],
    ['one byte more', oneLine({ name: 'v'.repeat(16_385 - 'name'.length), b: '' }), true, 'too_large'],
    ['labels of 16 KiB', labelled(longLabels(16_384)), false, undefined],
    ['one byte more', labelled(longLabels(16_385)), false, 'too_large'],
    ['labels far above', labelled(`{${'a="",'.repeat(900_000)}}`), false, 'too_many_names'],
    ['64 labels', oneLine(stringsOf(64)), true, undefined],
    ['65 labels', oneLine(stringsOf(65)), true, 'too_many_names'],
    ['5,000 labels', oneLine(stringsOf(5_000)), true, 'too_many_names'],
    // Each number is tried once: otherwise the sixteen numbers would be enough for six labels.
    ['17 labels with one name', labelled(`{${'level="info",'.repeat(17)}}`), false, undefined],
    ['18 labels with one name', labelled(`{${'level="info",'.repeat(18)}}`), false, 'too_many_names'],
    ['16 labels with names of metadata', oneLine(stringsOf(16), ['0', 'x', taken]), true, undefined],
    ['17 labels with names of metadata', oneLine(stringsOf(17), ['0', 'x', taken]), true, 'too_many_names'],
    ['256 names with the labels', oneLine(stringsOf(50), ['0', 'x', stringsOf(256)]), true, undefined],
    ['257 names with the labels', oneLine({ a: '' }, ['0', 'x', stringsOf(256)]), true, 'too_many_names'],
    ['5,000 names', oneLine({}, ['0', 'x', stringsOf(5_000)]), true, 'too_many_names'],
    ['a time after 2261', oneLine({}, ['9214646400000000000', 'x']), true, 'invalid_timestamp'],
    ['half a surrogate pair', oneLine({}, ['0', '\ud800']), true, 'invalid_unicode'],
    [
      'many pairs',
      bytesField(1, bytesField(2, Buffer.alloc(200_000, bytesField(3)))),
      false,
      'too_many_names',
    ],
    ['a line of 65,536 characters', oneLine({}, ['0', '😀'.repeat(65_536)]), true, undefined],
    ['one character more', oneLine({}, ['0', '😀'.repeat(65_537)]), true, 'too_long'],
    [
      'metadata of 64 KiB',
      oneLine({}, ['0', 'x', { a: 'v'.repeat(65_536 - '{"a":""}'.length) }]),
      true,
      undefined,
    ],
    [
      'one byte more',
      oneLine({}, ['0', 'x', { a: 'v'.repeat(65_537 - '{"a":""}'.length) }]),
      true,
      'too_large',
    ],
    [
      'metadata that becomes large',
      bytesField(1, bytesField(2, bytesField(3, bytesField(2, Buffer.alloc(5_000_000, 1))))),
      false,
      'too_large',
    ],
    ['16 levels', oneLine({ a: nested(15) }), true, undefined],
    ['17 levels', oneLine({}, ['0', 'x', { a: nested(16) }]), true, 'too_deep'],
    ['40 levels', oneLine({ a: nested(40) }), true, 'too_deep'],
  ])('%s', (_what, body, isJson, code) => {
    const { rows } = scan(body, isJson)
    expect(/"sluiceRepaired":\["(\w+)"\]\}\n$/.exec(rows ?? '')?.[1]).toBe(code)
    expect(scan(body, isJson)).toEqual(lokiReference(body, isJson, prefix))
  })

  it('a request may have 16,384 lines', () => {
    const values = Array.from({ length: limits.recordsPerRequestMax }, (): unknown => ['0', 'x'])
    expect(scanLoki(push({ values }), true).records).toBe(limits.recordsPerRequestMax)
    expect(() => scanLoki(push({ values: [...values, 7] }), true)).toThrow('too many records')
  })

  it('rows cannot become much larger than the body, also by labels of repaired lines', () => {
    const stream = { app: 'x', long: 'l'.repeat(16_000) }
    const values = Array.from({ length: 4_000 }, () => ['0', '\ud800'])
    expect(() => scanLoki(push({ stream, values }), true)).toThrow('the request has too many bytes')
  })
})

it('a label goes if sixteen numbers do not make a new name for it', () => {
  const stream = Object.fromEntries(
    ['a', ...Array.from({ length: 250 }, (_, i) => `a_${i + 2}`)].map((name) => [name, '']),
  )
  const values = Array.from({ length: 100 }, () => ['0', 'x', { a: 'y' }])
  const body = push({ stream, values: [['0', 'x'], ...values] })
  expect(scan(body, true).rows?.split('\n')[1]).toContain('"sluiceRepaired":["too_many_names"]')
  expect(scan(body, true)).toEqual(lokiReference(body, true, prefix))
})

it('a number makes no name of another label, also if metadata has many names', () => {
  const names = 'a b c d e f g h'.split(' ')
  const stream = Object.fromEntries(names.flatMap((name) => [name, `${name}_2`]).map((name) => [name, '']))
  const metadata = { ...stringsOf(16), ...Object.fromEntries(names.map((name) => [name, 'other'])) }
  const body = oneLine(stream, ['0', 'x', metadata])
  expect(scan(body, true)).toEqual(lokiReference(body, true, prefix))
})

it.each([
  [6, 16, false],
  [7, 16, true],
])('a line has sixteen numbers, ten for metadata and %i for its record', (names, numbers, isMarked) => {
  const body = oneLine(stringsOf(20), ['0', JSON.stringify(takenFrom(10, 10 + names)), takenFrom(0, 10)])
  const outcome = scan(body, true, true)
  const { rows = '' } = outcome
  expect(rows.match(/"l\d+_2":/g)).toHaveLength(numbers)
  expect(rows.includes('too_many_names')).toBe(isMarked)
  expect(withValues(outcome)).toEqual(withValues(lokiReference(body, true, prefix, true)))
})

it.each<[string, Buffer, RegExp]>([
  ['a field without a number', Buffer.from([0]), /^a field has an invalid number, at byte 1$/],
  ['an unknown type', Buffer.from([0x4f]), /^a field has an invalid type/],
  ['an open group', Buffer.from([0x7b]), /^a group has no end/],
  ['groups that overlap', Buffer.from([0x7b, 0x6b, 0x7c]), /^a field has an invalid type/],
  ['101 groups', Buffer.alloc(101, 0x7b), /^groups are nested too deeply/],
  ['a long value', Buffer.from([10, 5, 1]), /^a value is longer than the message/],
  ['half of a number', Buffer.from([0x48, 0x80]), /^a value is longer than the message/],
  [
    'a long number',
    Buffer.from([0x48, ...Array<number>(11).fill(0x80)]),
    /^a number has more than ten bytes/,
  ],
])('says why bytes are no request: %s', (_what, body, message) => {
  expect(() => scanLoki(body, false)).toThrow(RejectedBody)
  expect(() => scanLoki(body, false)).toThrow(message)
})
