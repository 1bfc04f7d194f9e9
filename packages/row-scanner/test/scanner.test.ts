import { IdSource } from '@sluice/rows'
import {
  anyStyle,
  invalidEntry,
  invalidTimestamps,
  textPrefix,
  toJson,
  validEntry,
  validTimestamps,
  textOfBlocks,
} from '@sluice/rows/testing'
import { limits } from '@sluice/schema'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { isUtf8 } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import { RejectedBody, Scanner } from '../src/index.ts'
import { ID, type Outcome, referenceOf, stamp } from './support/reference.ts'

const pieces = { rowsMax: 2_000, bytesMax: 1_000_000 }
let nowMs = 0
/** Each body has the same ids. */
const scanner = new Scanner({ reserve: () => ID }, () => (nowMs += 1), pieces)
const prefix = textPrefix(stamp)

/** What the scanner makes of a body. Of the message of a fault only the place. */
function scan(body: Buffer, isNdjson = false): Outcome {
  try {
    return scanner.scan(body, prefix, isNdjson, ({ kind, entries, rows, errors, single }) => {
      const text = Buffer.alloc(rows.byteLength)
      rows.copyTo(text, 0)
      const placed = errors.map((error) => ({
        ...error,
        message: error.message.replace(/: expected .*/s, ''),
      }))
      return { kind, entries, rows: textOfBlocks(text), errors: placed, single }
    })
  } catch (error) {
    if (error instanceof RejectedBody) return { invalid: error.message.replace(/: expected .*/s, '') }
    throw error
  }
}

/** Bodies with entries of any kind, most of them valid, in any style of JSON. */
const anyBody = fc
  .record({
    entries: fc.array(
      fc.oneof(
        { weight: 8, arbitrary: validEntry },
        { weight: 2, arbitrary: invalidEntry.map(({ entry }) => entry) },
        { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
      ),
      { minLength: 1, maxLength: 4 },
    ),
    style: anyStyle,
    shape: fc.constantFrom('entry', 'array', 'logs', 'lines'),
  })
  .map(({ entries, style, shape }) => {
    if (shape === 'lines')
      return { body: entries.map((entry) => toJson(entry, style)).join('\n'), isNdjson: true }
    const value = shape === 'entry' ? entries[0] : shape === 'logs' ? { logs: entries } : entries
    return { body: toJson(value, style), isNdjson: false }
  })

/** Bytes with a meaning in JSON, and some that are invalid in it. */
const meaningful = [...Buffer.from('"\\{}[]:,0.-eEtfnu/ \n\r\t\0'), 0x7f, 0xc3]

it('gives the same rows, errors and faults as the reference, also if any bytes of a body are changed, removed or inserted', () => {
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    cut: fc.integer({ min: 0, max: 3 }),
    put: fc.array(fc.constantFrom(...meaningful), { maxLength: 3 }),
  })
  fc.assert(
    fc.property(anyBody, fc.array(change, { maxLength: 2 }), ({ body, isNdjson }, changes) => {
      let bytes = Buffer.from(body)
      for (const { at, cut, put } of changes) {
        const from = Math.floor(at * bytes.length)
        bytes = Buffer.concat([bytes.subarray(0, from), Buffer.from(put), bytes.subarray(from + cut)])
      }
      fc.pre(isUtf8(bytes))
      expect(scan(bytes, isNdjson)).toEqual(referenceOf(bytes, isNdjson))
    }),
    runsOf(900),
  )
})

const entry = (members: string): string => `{"level":"info","message":"m"${members}}`
const metadata = (text: string): string => entry(`,"metadata":${text}`)
const names = (count: number): string =>
  `{${Array.from({ length: count }, (_, i) => `"n${i}":${i}`).join(',')}}`
const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
const { entriesPerRequestMax, metadataBytesMax, metadataDepthMax, metadataNamesMax, serviceCharactersMax } =
  limits

/** The codes of the errors of a body, or why it is rejected. */
const codesOf = (body: string): unknown => {
  const bytes = Buffer.from(body)
  const outcome = scan(bytes)
  expect(outcome).toEqual(referenceOf(bytes, false))
  return outcome.invalid ?? outcome.errors?.map((error) => (error as { code: string }).code).join(' ')
}

it.each([
  ['', metadata(names(metadataNamesMax))],
  ['too_many_names', metadata(names(metadataNamesMax + 1))],
  ['', entry(`,"x":1,"metadata":${names(metadataNamesMax - 1)}`)],
  ['too_many_names', entry(`,"x":1,"metadata":${names(metadataNamesMax)}`)],
  ['', entry(`,"n1":1,"metadata":${names(metadataNamesMax)}`)],
  ['', metadata(nested(metadataDepthMax))],
  ['too_deep', metadata(nested(metadataDepthMax + 1))],
  ['too_deep', metadata(nested(40))],
  ['too_deep', entry(`,"x":${'['.repeat(1_000)}${']'.repeat(1_000)}`)],
  ['', entry(`,"x":${nested(metadataDepthMax - 1)}`)],
  ['too_deep', entry(`,"x":${nested(metadataDepthMax)}`)],
  ['', metadata(`{"a":"${'x'.repeat(metadataBytesMax - 8)}"}`)],
  ['too_large', metadata(`{"a":"${'x'.repeat(metadataBytesMax - 7)}"}`)],
  ['', metadata(`{ "a" : "${'x'.repeat(metadataBytesMax - 8)}" }`)],
  ['', entry(`,"service":"${'é'.repeat(serviceCharactersMax)}"`)],
  ['too_long', entry(`,"service":"${'é'.repeat(serviceCharactersMax + 1)}"`)],
  ['', entry(`,"service":"${String.raw`\ud83d\ude00`.repeat(serviceCharactersMax)}"`)],
  ['too_long', entry(`,"service":"${String.raw`\n`.repeat(serviceCharactersMax + 1)}"`)],
  ['', entry(',"metadata":{"a":1,"b":2,"a":3}')],
  ['', entry(',"metadata":{"__proto__":{"x":1},"1":2,"constructor":null}')],
  ['', metadata('{"a":[1.0,-0,1E5,1e400,12345678901234567890,0.1000]}')],
  ['', String.raw`{"l\u0065vel":"\u0069nfo","message":"\ud83d\ude00","\u0061\n":1,"a\n":2}`],
  ['invalid_unicode', metadata(String.raw`{"a~/b":[{"c":"\ud83d"}]}`)],
  ['invalid_unicode', metadata(String.raw`{"a":{"\udc00":1}}`)],
  ['', metadata(String.raw`{"a":"\ud83d","a":1}`)],
  ['missing missing', '{}'],
  ['wrong_type not_allowed wrong_type', '{"level":null,"message":"","environment":"x","url":1}'],
])('an entry has the errors %j: %s', (codes, body) => {
  expect(codesOf(body)).toBe(codes)
})

it.each([
  ['the text ends too early at line 1, column 2', '['],
  ['the text ends too early at line 1, column 5', '[tru'],
  ['unexpected "x" at line 2, column 2', '[\n x]'],
  ['unexpected "}" at line 1, column 42', `${'['.repeat(40)}1}`],
  ['unexpected "1" at line 1, column 3', '[01]'],
  ['unexpected "\\u0000" at line 1, column 3', '[]\0'],
  ['unexpected "\ufeff" at line 1, column 1', '\ufeff[]'],
])('a text is not JSON: %s', (fault, body) => {
  const { invalid } = scan(Buffer.from(body))
  expect(invalid).toBe(referenceOf(Buffer.from(body), false).invalid)
  expect(invalid).toBe(fault)
})

it('counts the entries that are more than a request may have, and makes no rows of them', () => {
  const all = Array<string>(entriesPerRequestMax + 1).fill(entry(''))
  for (const [body, isNdjson] of [
    [`[${all.join(',')}]`, false],
    [all.join('\n'), true],
  ] as const) {
    const { entries, rows } = scan(Buffer.from(body), isNdjson)
    expect(entries).toBe(entriesPerRequestMax + 1)
    expect(rows?.split('\n')).toHaveLength(entriesPerRequestMax + 1)
  }
})

it('reads the same times as parseTimestamp', () => {
  const texts = [...validTimestamps, ...invalidTimestamps].map(([, text]) => text)
  for (const common of [
    '2026-11-20T22:43:01',
    '1999-02-28T19:59:59.123456789Z',
    '2261-12-31T23:00:00.1-01:00',
  ])
    for (let at = 0; at < common.length; at += 1)
      for (const put of ['', '0', '1', '2', '3', '6', '9', '-', ':', '.', 'T', 'Z', 'x'])
        texts.push(`${common.slice(0, at)}${put}${common.slice(at + 1)}`)
  for (const timestamp of texts) {
    const body = Buffer.from(JSON.stringify({ level: 'info', message: '', timestamp }))
    expect([timestamp, scan(body)]).toEqual([timestamp, referenceOf(body, false)])
  }
})

it('reads strings of any length, though it reads sixteen bytes at a time', () => {
  for (const length of [...Array.from({ length: 40 }, (_, i) => i), 511, 512, 513, 529]) {
    const text = 'x'.repeat(length)
    for (const end of ['', 'é', String.raw`\n`, String.raw`\\x`, String.raw`\"`, String.raw`\u0001xx`]) {
      const members = `,"service":"${text.slice(0, 250)}","metadata":{"${text}":"${text}${end}","${text}y":1}`
      const body = Buffer.from(`{"level":"info","message":"${text}${end}"${members},"x${text}":"${end}"}`)
      expect(scan(body)).toEqual(referenceOf(body, false))
    }
  }
})

it('distinguishes names that differ in one byte, or only in length, in small and large objects', () => {
  for (let length = 1; length < 40; length += 1) {
    const name = 'n'.repeat(length)
    const others = Array.from({ length }, (_, at) => `"${name.slice(0, at)}m${name.slice(at + 1)}":${at}`)
    const body = Buffer.from(metadata(`{"${name}":"a",${others.join(',')},"${name}n":"b","${name}":"c"}`))
    expect(scan(body)).toEqual(referenceOf(body, false))
  }
})

it('keeps nothing of a body for the next one', () => {
  const first = scan(Buffer.from(entry(',"url":"u","timestamp":"2026-11-20T22:43:01Z","metadata":{"a":1}')))
  expect(first.rows).toContain('\tu\t')
  for (const body of [entry(''), '{"level":1}', entry('')])
    expect(scan(Buffer.from(body))).toEqual(referenceOf(Buffer.from(body), false))
  const rows = ['a', 'b', 'a'].map((projectId) =>
    scanner.scan(Buffer.from(entry('')), textPrefix({ ...stamp, projectId }), false, (scanned) => ({
      rows: scanned.rows.copy(),
    })),
  )
  expect(rows.map(({ rows: { count } }) => count)).toEqual([1, 1, 1])
})

it('gives each row another id, in ascending order, when a millisecond has no more', () => {
  const own = new Scanner(new IdSource(() => 1_000), () => 1_000, pieces)
  const body = Buffer.from(`[${Array<string>(entriesPerRequestMax).fill(entry('')).join(',')}]`)
  const ids = Array.from({ length: 100 }, () =>
    own.scan(body, prefix, false, ({ rows }) => {
      const text = Buffer.alloc(rows.byteLength)
      rows.copyTo(text, 0)
      return {
        ids: textOfBlocks(text)
          .trimEnd()
          .split('\n')
          .map((row) => row.split('\t')[3] ?? ''),
      }
    }),
  ).flatMap((scanned) => scanned.ids)
  expect(new Set(ids).size).toBe(100 * entriesPerRequestMax)
  expect(ids).toEqual(ids.toSorted())
})

it('has no pieces that are larger than its memory has room for', () => {
  const tooLarge = { rowsMax: 1, bytesMax: limits.bodyBytesMax + 1 }
  expect(() => new Scanner({ reserve: () => ID }, Date.now, tooLarge)).toThrow('too small')
})

describe('the largest body', () => {
  const max = limits.bodyBytesMax
  const fill = (unit: string, head = '', tail = ''): string =>
    head + unit.repeat(Math.floor((max - head.length - tail.length) / unit.length)) + tail

  it.each([
    ['brackets', fill('[')],
    ['closed brackets', '['.repeat(max / 2) + ']'.repeat(max / 2)],
    ['zeros', fill('0,', '[', '0]')],
    ['one name again and again', fill('"a":0,', '{', '"a":1}')],
    ['names with escapes', fill(String.raw`"\u0061\u0062":0,`, '{', '"a":1}')],
    [
      'different names',
      entry(`,${Array.from({ length: 450_000 }, (_, i) => `"${i.toString(36)}":0`).join(',')}`),
    ],
    [
      'rows that are twice as long',
      `[${Array<string>(80)
        .fill(metadata(`{"a":"${String.raw`\\`.repeat(32_000)}"}`))
        .join(',')}]`,
    ],
  ])('is scanned: %s', (_what, body) => {
    for (const isNdjson of [false, true]) expect(scan(Buffer.from(body), isNdjson)).toBeDefined()
  })
})
