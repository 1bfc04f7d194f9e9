import { anyStyle, textPrefix, toJson, textOfBlocks } from '@sluice/rows/testing'
import { environmentsByName, levelsByName, rolesByName, wrappers } from '@sluice/records/tables'
import { limits } from '@sluice/schema'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { isUtf8 } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import { RejectedBody, type ScannedRecords, Scanner } from '../src/index.ts'
import { rowColumns } from '@sluice/rows'
import { ID, stamp } from './support/reference.ts'
import {
  bulkReference,
  comparable,
  sorted,
  datadogReference,
  hecLinesReference,
  hecReference,
  type Records,
  Rejected,
} from './support/shippers.ts'
import { anyLarge, deep, many } from './support/any-large.ts'

const pieces = { rowsMax: 3, bytesMax: 1_000_000 }
const ID_COLUMN = rowColumns.indexOf('id')
let nowMs = 0
/** Each body has the same ids. */
const scanner = new Scanner({ reserve: () => ID }, () => (nowMs += 1), pieces)
const prefix = textPrefix(stamp)

/** What a scan makes of a body, in the form of the reference. */
function outcomeOf(
  scan: () => ScannedRecords & { readonly items?: readonly unknown[] },
  form: (column: string) => string = comparable,
): Records | string {
  try {
    const { rejected, pieces: found, ...rest } = scan()
    const rows = found.flatMap((piece) => {
      const text = Buffer.alloc(piece.rows.byteLength)
      piece.rows.copyTo(text, 0)
      return textOfBlocks(text).split('\n').slice(0, -1)
    })
    return {
      rows: rows.map((row) => {
        const values = row
          .split('\t')
          .map((value) => value.replaceAll(/\\(.)/gs, (_, letter: string) => letters[letter] ?? letter))
        const metadata = JSON.parse(values.at(-1) ?? '') as unknown
        return {
          columns: withoutId(values.slice(0, -1)).map(form),
          metadata: form === comparable ? sorted(metadata) : metadata,
        }
      }),
      rejected: [...rejected].map(([index, { code, path }]) => [
        index,
        code,
        path.startsWith('/metadata') ? '/metadata' : path,
      ]),
      ...('items' in rest ? { items: rest.items } : {}),
    }
  } catch (error) {
    if (!(error instanceof RejectedBody)) throw error
    const message = placed(error.message)
    return error.reason === 'json'
      ? `${error.records} ${message}`
      : error.reason === 'action'
        ? message
        : error.reason
  }
}
const placed = (message: string): string => message.replace(/: expected .*/s, '')
/** Ids ascend. */
const withoutId = (columns: readonly string[]): string[] => columns.toSpliced(ID_COLUMN, 1)
const letters: Readonly<Record<string, string>> = { n: '\n', t: '\t' }

function expected(reference: () => Records): Records | string {
  try {
    return JSON.parse(JSON.stringify(reference())) as Records
  } catch (error) {
    if (error instanceof Rejected) return error.message
    throw error
  }
}

const anyCase = (text: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(text, fc.constantFrom('same', 'upper', 'first')).map(([name, form]) => {
    if (form === 'same') return name
    return form === 'upper' ? name.toUpperCase() : name.charAt(0).toUpperCase() + name.slice(1)
  })
const known = [...rolesByName.keys(), ...wrappers]
const parts = known.flatMap((name) => (name.includes('.') ? name.split('.') : []))
const anyName = fc.oneof(
  { weight: 4, arbitrary: anyCase(fc.constantFrom(...known)) },
  { weight: 2, arbitrary: anyCase(fc.constantFrom(...parts, ...wrappers)) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...'a a_2 b pid hostname v short_message originalLevel originalLevel_2 timestamp timestamp_2 _index _index_2 _id host line'.split(
        ' ',
      ),
      ...'attrs event fields status ddtags env service source t s __proto__ level message metadata'.split(
        ' ',
      ),
    ),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 4, unit: 'binary' }) },
)
const anyTime = fc.oneof(
  fc.constantFrom(
    '2026-11-20T22:43:01.123456789Z',
    '2026-11-20 22:43:01,5',
    '20261120T224301',
    '2026/11/20 22:43 UTC',
    '2026.11.20_22:43:01.5+02',
    '2026-11-20T22:43:01 -0330',
    ' 2026-11-20t22:43Z ',
    '2026-02-29T00:00:00Z',
    '2261-12-31T23:59:60Z',
    '1970-01-01T00:30:00+01:00',
    '2026-11/20 22:43:01',
    '2026-11-20T22:43:01.',
    '2026-11-20T2243:01',
    '2026-11-20T22:4301GMT',
  ),
  fc.constantFrom(
    '1763000000',
    '1763000000.25',
    '1763000000123',
    '1763000000123456',
    '1763000000123456789',
    '99999999',
    '0001763000000',
  ),
  fc.constantFrom(
    1763000000,
    1763000000.25,
    1763000000123,
    1.763e18,
    1e21,
    5,
    -1763000000,
    9214646400,
    9214646399999,
  ),
  fc.record({ $date: fc.constantFrom('2026-11-20T22:43:01Z', 1763000000123, null) }),
  fc.record(
    { seconds: fc.constantFrom(1763000000, 1.5), nanos: fc.constantFrom(5, 1, 123456789, '1') },
    { requiredKeys: [] },
  ),
  fc.record({ epochSecond: fc.constant(1763000000), nanoOfSecond: fc.constantFrom(5, 999999999) }),
  fc.record({ repr: fc.constantFrom('2026-11-20 22:43:01+01:00', 'x'), timestamp: fc.constant(1) }),
)
const anyLevel = fc.oneof(
  anyCase(fc.constantFrom(...levelsByName.keys())),
  fc.constantFrom(
    ' info\t',
    'ok',
    'OK',
    '30',
    ' 3',
    '7',
    '1000',
    0,
    3,
    10,
    17,
    24,
    25,
    30,
    35,
    40,
    50,
    60,
    30.5,
    -30,
  ),
  fc.record({ name: anyCase(fc.constantFrom('info', 'error', 'x')), no: fc.constant(40) }),
)
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom(
    'line\n',
    'a\\n',
    '\n',
    '',
    'x'.repeat(300),
    '\ud800',
    'tab\tquote"',
    'env:prod, service : shop ,env : qa',
    'service:',
    'E',
    'D2',
    'F',
  ),
  fc.string({ unit: 'binary', maxLength: 6 }),
)
const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: anyText },
  { weight: 2, arbitrary: anyTime },
  { weight: 3, arbitrary: anyLevel },
  { weight: 1, arbitrary: anyCase(fc.constantFrom(...environmentsByName.keys(), 'server', 'client')) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  { weight: 1, arbitrary: fc.array(anyText, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.constant(null) },
)
const objectOf = (value: fc.Arbitrary<unknown>, maxLength: number): fc.Arbitrary<object> =>
  fc.array(fc.tuple(anyName, value), { maxLength }).map((members) => Object.fromEntries(members))
/** With objects in wrappers, such as `record.extra.error.stack`. */
const anyRecord = [4, 4, 12].reduce(
  (value, namesMax) =>
    objectOf(fc.oneof({ weight: 4, arbitrary: anyValue }, { weight: 1, arbitrary: value }), namesMax),
  objectOf(anyValue, 4),
)
const anyMember = fc.oneof(
  { weight: 6, arbitrary: anyRecord },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 1 }) },
)

const meaningful = [...Buffer.from('"\\{}[]:,0.-eEtfnu/ \n\r\t\0'), 0x7f, 0xc3]
const anyChanges = fc.array(
  fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    cut: fc.integer({ min: 0, max: 3 }),
    put: fc.array(fc.constantFrom(...meaningful), { maxLength: 3 }),
  }),
  { maxLength: 2 },
)

function changed(
  body: string,
  changes: typeof anyChanges extends fc.Arbitrary<infer Changes> ? Changes : never,
): Buffer {
  let bytes = Buffer.from(body)
  for (const { at, cut, put } of changes) {
    const from = Math.floor(at * bytes.length)
    bytes = Buffer.concat([bytes.subarray(0, from), Buffer.from(put), bytes.subarray(from + cut)])
  }
  return bytes
}

const runs = runsOf(400)

describe('the logs of Datadog', () => {
  it('become the rows of the reference, also if any bytes of a body are changed', () => {
    const anyBody = fc.tuple(fc.array(anyMember, { minLength: 1, maxLength: 5 }), anyStyle, fc.boolean())
    fc.assert(
      fc.property(anyBody, anyChanges, ([logs, style, isSingle], changes) => {
        const body = changed(toJson(isSingle ? logs[0] : logs, style), changes)
        fc.pre(isUtf8(body))
        expect(outcomeOf(() => scanner.scanRecords('Datadog', body, prefix))).toEqual(
          expected(() => datadogReference(body, prefix)),
        )
      }),
      runs,
    )
  })
})

const anyEvent = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record(
      {
        event: fc.oneof(anyValue, anyRecord, objectOf(fc.oneof(anyValue, anyRecord), 3)),
        time: anyTime,
        fields: fc.oneof({ weight: 4, arbitrary: anyRecord }, { weight: 1, arbitrary: anyValue }),
        host: anyValue,
        source: anyText,
        a: anyValue,
      },
      { requiredKeys: [] },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      event: fc.record(
        { line: anyMember, source: anyText, attrs: anyMember, tag: anyText },
        { requiredKeys: ['line'] },
      ),
      time: anyTime,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      event: fc.record(
        { message: anyRecord, a: anyValue, line: anyValue, severity: anyLevel },
        { requiredKeys: ['message'] },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 1 }) },
)

describe('the events of HEC', () => {
  it('become the rows of the reference, also if any bytes of a body are changed', () => {
    const anyBody = fc.tuple(
      fc.array(
        fc.oneof(
          { weight: 3, arbitrary: anyEvent },
          { weight: 1, arbitrary: fc.array(anyEvent, { maxLength: 3 }) },
        ),
        { maxLength: 4 },
      ),
      anyStyle,
      fc.constantFrom('', ' ', '\n', '\r\n\t'),
    )
    fc.assert(
      fc.property(anyBody, anyChanges, ([events, style, between], changes) => {
        const body = changed(events.map((event) => toJson(event, style)).join(between), changes)
        fc.pre(isUtf8(body))
        expect(outcomeOf(() => scanner.scanRecords('HecEvents', body, prefix))).toEqual(
          expected(() => hecReference(body, prefix)),
        )
      }),
      runs,
    )
  })

  it('of /raw are lines in UTF-8 or not', () => {
    const origin = { timestamp: '2026-11-20T22:43:01.5Z', metadata: { host: 'a"b' } }
    const anyByte = fc.constantFrom(
      0x0a,
      0x0d,
      0x41,
      0x09,
      0x5c,
      0xc3,
      0xa9,
      0xe2,
      0x82,
      0xac,
      0xf0,
      0x9f,
      0x98,
      0x80,
      0xed,
      0xa0,
      0xf4,
      0x90,
      0xff,
    )
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 1 }),
        fc.array(anyByte, { maxLength: 40 }),
        fc.boolean(),
        (first, bytes, hasTime) => {
          const body = Buffer.from([...first, ...bytes])
          const from = hasTime ? origin : { metadata: origin.metadata }
          expect(outcomeOf(() => scanner.scanHecLines(body, prefix, from))).toEqual(
            expected(() => hecLinesReference(body, prefix, from)),
          )
        },
      ),
      runs,
    )
  })
})

describe('a bulk request', () => {
  const anyIndex = fc.oneof(
    fc.constantFrom(
      'logs',
      'Logs',
      '',
      '.',
      '..',
      '.a',
      '-a',
      'a b',
      'a#b',
      'a:b',
      'ä',
      'Ä',
      'a\u0085',
      'a\u007f',
      'x'.repeat(256),
      'ß'.repeat(127),
      '\ud800',
    ),
    fc.constantFrom(null, 5, true, [], {}),
  )
  const anyTarget = fc.record(
    { _index: anyIndex, _id: fc.oneof(anyText, anyIndex), other: anyValue },
    { requiredKeys: [] },
  )
  const anyAction = fc.oneof(
    { weight: 5, arbitrary: fc.constant({ create: { _index: 'logs' } }) },
    {
      weight: 5,
      arbitrary: fc
        .tuple(fc.constantFrom('index', 'create', 'update', 'delete'), anyTarget)
        .map(([name, target]) => ({ [name]: target })),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        {},
        { index: {}, create: {} },
        { create: { _index: 'logs' }, attempts: 0 },
        { attempts: 0, index: {} },
        { x: {} },
        { index: null },
        1,
      ),
    },
  )

  it('becomes the rows, items and faults of the reference, also if any bytes of a body are changed', () => {
    const anyBody = fc.tuple(
      fc.array(fc.tuple(anyAction, anyMember), { maxLength: 5 }),
      anyStyle,
      fc.constantFrom('\n', '\r\n', '\n\n'),
      fc.constantFrom(null, 'path', 'Path'),
    )
    fc.assert(
      fc.property(anyBody, anyChanges, ([pairs, style, end, pathIndex], changes) => {
        const flat = (value: unknown): string =>
          toJson(value, { ...style, whitespace: style.whitespace.replaceAll(/[\r\n]/g, ' ') })
        const lines = pairs.flatMap(([action, document]) =>
          Object.keys(action)[0] === 'delete' ? [flat(action)] : [flat(action), flat(document)],
        )
        const body = changed(lines.map((line) => line + end).join(''), changes)
        expect(outcomeOf(() => scanner.scanBulk(body, prefix, pathIndex))).toEqual(
          expected(() => bulkReference(body, prefix, pathIndex)),
        )
      }),
      runs,
    )
  })
})

it('names in wrappers count as the reference says', () => {
  const bunyan = { pid: 1, v: 0, message: 'm' }
  const logs = [
    { message: 'm', meta: { service: 'shop', Env: 'dev', a: 1 }, fields: { service: 'other' } },
    { message: 'm', record: { extra: { service: { name: 'shop' }, error: { stack: 's', a: [[1]] } } } },
    { message: 'm', fields: { error: { stack: 's' } }, logEvent: { url: { path: '/a' } } },
    { message: 'm', meta: { fields: { service: 'x' }, date: '2026-01-01', level: 'fatal', msg: 'n' } },
    { message: 'm', meta: { service: 'inner' }, app: 'own' },
    { ...bunyan, name: 'shop' },
    { ...bunyan, name: 1, meta: { name: 'x' } },
  ]
  const body = Buffer.from(JSON.stringify(logs))
  expect(outcomeOf(() => scanner.scanRecords('Datadog', body, prefix))).toEqual(
    expected(() => datadogReference(body, prefix)),
  )
})

it('records above the limits are repaired, and numbered names are found in any number of names', () => {
  const logs = [
    { message: 'x'.repeat(limits.messageCharactersMax + 1) },
    { message: 'x', stack: ['é'.repeat(limits.stackCharactersMax), ''] },
    { message: 'x', a: deep(15) },
    { message: 'x', a: deep(16) },
    { message: 'x', a: deep(40) },
    { message: 'x', a: 'x'.repeat(limits.metadataBytesMax) },
    { message: 'x', ...many(limits.metadataNamesMax) },
    { message: 'x', ...many(limits.metadataNamesMax + 1) },
    { message: 'x', ...many(limits.metadataNamesMax + 100) },
    { message: 'x', metadata: many(200), ...many(50), a: 1, a_2: 2, a_2_2: 3 },
    { message: 'x', metadata: many(200, 'originalLevel'), level: 'fatal', originalLevel: 1 },
    { message: 'x', metadata: many(1_000) },
    { ...many(1_000), message: 'x', level: 'fatal', sluiceRepaired: 'by the client' },
    { a: 'x'.repeat(limits.metadataBytesMax), b: deep(40), c: '\ud800', d: many(300) },
    { stack: '\ud800', a: ['\udc00x', { b: '\ud83d\ude00\ud83d' }], '\ud800': { c: [deep(15), 1] } },
    ...fc.sample(anyLarge, { numRuns: 8, seed: 1 }),
  ]
  for (const log of logs) {
    const body = Buffer.from(JSON.stringify(log))
    expect(outcomeOf(() => scanner.scanRecords('Datadog', body, prefix))).toEqual(
      expected(() => datadogReference(body, prefix)),
    )
    const document = Buffer.from(`{"create":{"_index":"a"}}\n${JSON.stringify(log)}\n`)
    expect(outcomeOf(() => scanner.scanBulk(document, prefix, null))).toEqual(
      expected(() => bulkReference(document, prefix, null)),
    )
    const event = Buffer.from(JSON.stringify({ event: log, fields: { a_1: 1, a: 2 }, a_2: 3 }))
    expect(outcomeOf(() => scanner.scanRecords('HecEvents', event, prefix))).toEqual(
      expected(() => hecReference(event, prefix)),
    )
  }
})

it('lines and events that are long are cut', () => {
  const lines = Buffer.from(`${'é'.repeat(65_537)}\nx\n${'x'.repeat(65_536)}`)
  const origin = { metadata: { host: 'a' } }
  expect(outcomeOf(() => scanner.scanHecLines(lines, prefix, origin))).toEqual(
    expected(() => hecLinesReference(lines, prefix, origin)),
  )
  const event = Buffer.from(`{"event":[${'[1],'.repeat(40_000)}${'['.repeat(90)}${']'.repeat(90)}]}`)
  expect(outcomeOf(() => scanner.scanRecords('HecEvents', event, prefix))).toEqual(
    expected(() => hecReference(event, prefix)),
  )
})
