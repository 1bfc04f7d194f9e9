import { makeRowPrefix } from '@sluice/rows'
import { anyStyle, invalidEntry, toJson, validEntry } from '@sluice/rows/testing'
import { limits } from '@sluice/schema'
import * as fc from 'fast-check'
import { isUtf8 } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import { makeScanner, parse, scan, scanText, stamp } from './support/reference.ts'

/** About two seconds for all of them. */
const runs = { numRuns: 800 }

const scanner = makeScanner()
const isScanned = (body: string | Buffer, isNdjson = false): boolean =>
  scan(scanner, body, isNdjson) !== undefined

/** What the scanner makes of a body, or the parser if the scanner leaves it to the parser. It must equal `parse`. */
const scanOrParse = (body: string | Buffer, isNdjson = false): unknown =>
  scan(scanner, body, isNdjson) ?? parse(body, isNdjson)

/** Bodies with entries of any kind, most of them valid, in any style of JSON. */
const anyBody = fc
  .record({
    entries: fc.array(
      fc.oneof(
        { weight: 8, arbitrary: validEntry },
        { weight: 1, arbitrary: invalidEntry.map(({ entry }) => entry) },
        { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
      ),
      { minLength: 1, maxLength: 4 },
    ),
    style: anyStyle,
    shape: fc.constantFrom('entry', 'array', 'logs', 'lines'),
  })
  .map(({ entries, style, shape }) => {
    if (shape === 'lines') {
      return { body: entries.map((entry) => toJson(entry, style)).join('\n'), isNdjson: true }
    }
    const value = shape === 'entry' ? entries[0] : shape === 'logs' ? { logs: entries } : entries
    return { body: toJson(value, style), isNdjson: false }
  })

const entry = (members: string): string => `{"level":"info","message":"m"${members}}`
const metadata = (text: string): string => entry(`,"metadata":${text}`)
const names = (count: number): string =>
  `{${Array.from({ length: count }, (_, i) => `"n${i}":${i}`).join(',')}}`
const numbers = (count: number): string =>
  metadata(`{"a":[${Array.from({ length: count }, () => '1.0').join(',')}]}`)
const big = (messages: number): string =>
  `[${Array.from({ length: messages }, () => `{"level":"info","message":"${'x'.repeat(60_000)}"}`).join(',')}]`

/** Bytes with a meaning in JSON, and some that are invalid in it. */
const meaningful = [...Buffer.from('"\\{}[]:,0.-eEtfnu/ \n\r\t\0'), 0x7f, 0x80, 0xc3, 0xff]

describe('a body', () => {
  it('gives the same rows as with the parser, or is left to it, also if any of its bytes are changed, removed or inserted', () => {
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
        expect(scanOrParse(bytes, isNdjson)).toEqual(parse(bytes, isNdjson))
      }),
      { numRuns: 2 * runs.numRuns },
    )
  })

  it('is scanned if it has ordinary entries as JavaScript and Python write them', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 80 }),
      fc.constantFrom('a\nb\tc', 'C:\\temp', '"quoted"', '\u001b[31mred\u001b[0m', 'é…✓'),
    )
    const name = fc.stringMatching(/^[a-z_.]{1,12}$/)
    const value = fc.oneof(text, fc.integer(), fc.constantFrom(0, -0.5, 12.25, 1e-7, true, null))
    const items = { maxLength: 3, maxKeys: 3 }
    const nested = fc.oneof(value, fc.array(value, items), fc.dictionary(name, value, items))
    const ordinary = fc.record(
      {
        timestamp: fc.constantFrom('2026-11-20T22:43:01.123Z', '2026-11-20T22:43:01.123456+02:00', null),
        level: fc.constantFrom('debug', 'info', 'error'),
        message: text,
        service: fc.constantFrom('checkout', null),
        source: fc.constantFrom('server', 'client'),
        environment: fc.constantFrom('production', null),
        url: fc.webUrl(),
        stack: text,
        metadata: fc.dictionary(name, nested, { maxKeys: 8 }),
      },
      { requiredKeys: ['level', 'message'] },
    )
    const style = fc.record({
      whitespace: fc.constantFrom('', ' '),
      ascii: fc.constant(false),
      escaped: fc.constantFrom('', '/'),
    })
    fc.assert(
      fc.property(fc.array(ordinary, { minLength: 1, maxLength: 5 }), style, (entries, written) => {
        // An exponent is left to the parser.
        const body = toJson(entries, written).replaceAll('1e-7', '0.0000001')
        expect(isScanned(body)).toBe(true)
        expect(scanOrParse(body)).toEqual(parse(body))
      }),
      runs,
    )
  })
})

describe('the scanner', () => {
  it.each([
    ['an entry', entry('')],
    ['a batch', `[${entry('')},${entry('')}]`],
    ['a batch in an object', ` { "logs" : [ ${entry('')} ] } `],
    ['the largest number of entries', `[${Array(limits.entriesPerRequestMax).fill(entry('')).join(',')}]`],
    ['optional fields that are null', entry(',"metadata":null,"url":null,"timestamp":null,"source":null')],
    ['the same name in different objects', metadata('{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":1}]}')],
    ['the largest number of names in an object', metadata(names(32))],
    ['the largest number of levels', metadata(`${'{"a":'.repeat(16)}1${'}'.repeat(16)}`)],
    ['numbers of many digits', metadata('{"a":9007199254740991,"b":0.1234567890123456789,"c":-0,"d":10.0}')],
    [
      'escapes of all kinds',
      metadata(String.raw`{"a":"\"\\\/\b\f\n\r\t\u0000\u001f\u007f\u00e9\u20ac\u0041\u005C"}`),
    ],
    ['characters whose low byte is escaped', entry(',"url":"ĢŜĉĊ","metadata":{"a":"ĢŜĉĊ"}')],
    [
      'escapes of all kinds in a text',
      entry(String.raw`,"url":"\"\\\/\b\f\n\r\t\u0000\u001f\u00e9\u005c\u000a"`),
    ],
  ])('scans %s', (_what, body) => {
    expect(isScanned(body)).toBe(true)
    expect(scanOrParse(body)).toEqual(parse(body))
  })

  it.each([
    ['scans', 'lines', `${entry('')}\n${entry('')}`],
    ['scans', 'blank lines, and both kinds of line ends', `\n ${entry('')} \r\n\r\n\t${entry('')}\n \n`],
    ['leaves to the parser', 'two entries on a line', `${entry('')}${entry('')}`],
    ['leaves to the parser', 'an entry over two lines', entry(',\n"url":"u"')],
    ['leaves to the parser', 'a line that is not an entry', `${entry('')}\n5`],
    ['leaves to the parser', 'no lines', '\n'],
  ])('%s %s', (what, _body, body) => {
    expect(isScanned(body, true)).toBe(what === 'scans')
    expect(scanOrParse(body, true)).toEqual(parse(body, true))
  })

  it.each([
    ['an empty array', '[]'],
    ['an object with "logs" and another field', `{"logs":[${entry('')}],"a":1}`],
    ['more text after the entry', `${entry('')},`],
    ['a zero after the entry', `${entry('')}\0`],
    ['a byte order mark', `\ufeff${entry('')}`],
    ['too many entries', `[${Array(limits.entriesPerRequestMax).fill(entry('')).join(',')},${entry('')}]`],
    ['an unknown field', entry(',"requestId":"r"')],
    ['a duplicate field', entry(',"level":"warn"')],
    ['an unknown level', '{"level":"fatal","message":"m"}'],
    ['a level that is null', '{"level":null,"message":"m"}'],
    ['an entry without a message', '{"level":"info"}'],
    ['an escaped level', String.raw`{"level":"\u0069nfo","message":"m"}`],
    ['an escaped field name', String.raw`{"level":"info","m\u0065ssage":"m"}`],
    ['an invalid timestamp', entry(',"timestamp":"yesterday"')],
    ['a text that may be too long', entry(`,"stack":"${'é'.repeat(limits.stackCharactersMax / 2 + 1)}"`)],
    ['a text instead of the metadata', metadata('"m"')],
    ['an object instead of a text', entry(',"url":{}')],
    ['too many names in an object', metadata(names(33))],
    ['a duplicate name', metadata('{"a":1,"b":2,"a":3}')],
    ['names that are numbers', metadata('{"b":1,"1":2}')],
    ['an escaped name', metadata(String.raw`{"\n":1}`)],
    ['too many levels', metadata(`${'{"a":'.repeat(17)}1${'}'.repeat(17)}`)],
    ['metadata that may be too large', metadata(`{"a":"${'x'.repeat(limits.metadataBytesMax)}"}`)],
    ['half of a surrogate pair', metadata(String.raw`{"a":"\ud83d"}`)],
    ['an escaped surrogate pair', metadata(String.raw`{"a":"\ud83d\ude00"}`)],
    ['an exponent', metadata('{"a":1e3}')],
    ['a number that is not exact', metadata('{"a":9007199254740992}')],
    ['a number with a leading zero', metadata('{"a":01}')],
    ['a number that ends with its point', metadata('{"a":1.}')],
    ['a trailing comma in an object', metadata('{"a":1,}')],
    ['a truncated literal', metadata('{"a":tru}')],
    ['a newline in a string', metadata('{"a":"\n"}')],
    ['an unknown escape', metadata(String.raw`{"a":"\x"}`)],
    ['invalid hexadecimal digits', metadata(String.raw`{"a":"\u00g0"}`)],
  ])('leaves %s to the parser', (_what, body) => {
    expect(isScanned(body)).toBe(false)
    expect(scanOrParse(body)).toEqual(parse(body))
  })

  it('leaves a body to the parser if JavaScript would have to write too many of its numbers', () => {
    expect(isScanned(`[${numbers(5_000)},${numbers(5_000)}]`)).toBe(true)
    expect(isScanned(`[${numbers(5_000)},${numbers(5_001)}]`)).toBe(false)
  })

  it('leaves a body that is larger than its memory to the parser', () => {
    expect(isScanned(big(17))).toBe(true)
    expect(isScanned(big(18))).toBe(false)
    expect(scanOrParse(big(18))).toEqual(parse(big(18)))
  })

  it('has room for the largest rows of the largest body', () => {
    const metadataText = `{"a":"${String.raw`\\`.repeat(16_000)}"}`
    const body = `[${Array.from({ length: 32 }, () => metadata(metadataText)).join(',')}]`
    expect(body.length).toBeGreaterThan(1_000_000)
    expect(isScanned(body)).toBe(true)
    expect(scanOrParse(body)).toEqual(parse(body))
  })

  it('reads texts of any length, though it reads sixteen bytes at a time', () => {
    const lengths = [...Array.from({ length: 70 }, (_, i) => i), 511, 512, 513, 529]
    for (const length of lengths) {
      const text = 'x'.repeat(length)
      for (const end of ['', 'é', String.raw`\n`, String.raw`\\x`, String.raw`\"`, String.raw`\u0001xx`]) {
        const members = `,"service":"${text.slice(0, 250)}","metadata":{"${text}":"${text}${end}","${text}y":1}`
        const body = `{"level":"info","message":"${text}${end}"${members}}`
        expect(isScanned(body)).toBe(true)
        expect(scanOrParse(body)).toEqual(parse(body))
      }
    }
  })

  it('distinguishes names that differ in one byte, or only in length', () => {
    for (let length = 1; length < 40; length += 1) {
      const name = 'n'.repeat(length)
      for (let at = 0; at < length; at += 1) {
        const other = `${name.slice(0, at)}m${name.slice(at + 1)}`
        expect(isScanned(metadata(`{"${name}":1,"${other}":2,"${name}n":3}`))).toBe(true)
      }
      expect(isScanned(metadata(`{"${name}":1,"a":2,"${name}":3}`))).toBe(false)
    }
  })

  it('uses the prefix of each request, and keeps nothing of a body for the next one', () => {
    expect(isScanned(entry(',"url":"u","timestamp":"2026-11-20T22:43:01Z","metadata":{"a":1}'))).toBe(true)
    expect(scanOrParse(entry(''))).toEqual(parse(entry('')))
    const projects = ['a', 'b', 'a'].map((projectId) => {
      return scanText(scanner, entry(''), makeRowPrefix({ ...stamp, projectId }))?.split('\t')[0]
    })
    expect(projects).toEqual(['a', 'b', 'a'])
  })
})
