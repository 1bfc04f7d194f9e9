import { EntryValidator, limits, RowScanner, startRows, type RequestStamp } from '@sluice/schema'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { validEntry } from '../../../../packages/schema/test/support/arbitrary-entry.ts'
import { invalidEntry } from '../../../../packages/schema/test/support/arbitrary-invalid.ts'
import { anyStyle, toJson } from '../../../../packages/schema/test/support/json-text.ts'
import { jsonFormat, type BodyFormat } from '../../src/intake/body.ts'
import { Intake } from '../../src/intake/intake.ts'
import { ndjsonFormat } from '../../src/intake/ndjson.ts'
import { Problem } from '../../src/problems.ts'

/** Some five seconds for all of them. */
const runs = { numRuns: 2_000 }

const ID = '01a1fb4d-5bd1-74f9-83e0-56d2211cd84d'
const ids = {
  next: () => ID,
  write: (memory: Uint8Array, at: number) => memory.set(Buffer.from(ID), at),
}
const stamp: RequestStamp = { projectId: 'demo', retentionDays: 30, receivedAtMs: Date.UTC(2026, 10, 20) }
const start = startRows(stamp)
const scanner = new RowScanner(ids)
const scanning = new Intake(new EntryValidator(), ids)
const parsing = new Intake(new EntryValidator(), ids, { scan: () => undefined })

const isScanned = (body: string | Buffer, { isNdjson }: BodyFormat = jsonFormat): boolean =>
  scanner.scan(Buffer.from(body as string), start, isNdjson) !== undefined

/** All that comes of a body: its rows and its answer, or the problem. */
function resultOf(intake: Intake, body: string | Buffer, format: BodyFormat): unknown {
  try {
    const taken = intake.take(Buffer.from(body as string), stamp, format)
    return { ...taken, text: taken.text.toString() }
  } catch (error) {
    if (error instanceof Problem) return { code: error.code, message: error.message }
    throw error
  }
}

const byScanner = (body: string | Buffer, format = jsonFormat): unknown => resultOf(scanning, body, format)
const byParser = (body: string | Buffer, format = jsonFormat): unknown => resultOf(parsing, body, format)

/** Bodies as they come: entries of any kind, most of them valid, written in any style. */
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
      return { body: entries.map((entry) => toJson(entry, style)).join('\n'), format: ndjsonFormat }
    }
    const value = shape === 'entry' ? entries[0] : shape === 'logs' ? { logs: entries } : entries
    return { body: toJson(value, style), format: jsonFormat }
  })

const entry = (members: string): string => `{"level":"info","message":"m"${members}}`
const metadata = (text: string): string => entry(`,"metadata":${text}`)
const names = (count: number): string =>
  `{${Array.from({ length: count }, (_, i) => `"n${i}":${i}`).join(',')}}`
const big = (messages: number): string =>
  `[${Array.from({ length: messages }, () => `{"level":"info","message":"${'x'.repeat(60_000)}"}`).join(',')}]`

/** Bytes that mean something to a reader of JSON. */
const meaningful = [...Buffer.from('"\\{}[]:,0.-eEtfnu/ \n\r\t\0'), 0x7f, 0x80, 0xc3, 0xff]

describe('what is scanned', () => {
  it('becomes what it becomes when it is parsed, or is left to the parser', () => {
    fc.assert(
      fc.property(anyBody, ({ body, format }) => {
        expect(byScanner(body, format)).toEqual(byParser(body, format))
      }),
      runs,
    )
  })

  it('… whatever bytes of it are changed, cut out or put in', () => {
    const change = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.integer({ min: 0, max: 3 }),
      put: fc.array(fc.constantFrom(...meaningful), { maxLength: 3 }),
    })
    fc.assert(
      fc.property(anyBody, fc.array(change, { minLength: 1, maxLength: 2 }), ({ body, format }, changes) => {
        let bytes = Buffer.from(body)
        for (const { at, cut, put } of changes) {
          const from = Math.floor(at * bytes.length)
          bytes = Buffer.concat([bytes.subarray(0, from), Buffer.from(put), bytes.subarray(from + cut)])
        }
        expect(byScanner(bytes, format)).toEqual(byParser(bytes, format))
      }),
      runs,
    )
  })

  it('… wherever it is cut off', () => {
    const body = '[{"level":"info","message":"a\\u00e9\\n","metadata":{"a":[1.5,-2,true,null,{"b":"\\\\"}]}}]'
    for (let end = 0; end <= body.length; end += 1) {
      // What was there stays in the scanner's memory, behind the end of what is scanned next.
      expect(isScanned(body)).toBe(true)
      expect(byScanner(body.slice(0, end))).toEqual(byParser(body.slice(0, end)))
    }
  })

  it('is any ordinary entry, as JavaScript and Python write it', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 80 }),
      fc.constantFrom('a\nb\tc', 'C:\\temp', '"quoted"', '\u001b[31mred\u001b[0m', 'é…✓'),
    )
    const name = fc.stringMatching(/^[a-z_.]{1,12}$/)
    const value = fc.oneof(text, fc.integer(), fc.constantFrom(0, -0.5, 12.25, 1e-7, true, null))
    const nested = fc.oneof(
      value,
      fc.array(value, { maxLength: 3 }),
      fc.dictionary(name, value, { maxKeys: 3 }),
    )
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
      blank: fc.constantFrom('', ' '),
      ascii: fc.constant(false),
      escaped: fc.constantFrom('', '/'),
    })
    fc.assert(
      fc.property(fc.array(ordinary, { minLength: 1, maxLength: 5 }), style, (entries, written) => {
        // An exponent is the one thing here that is left to the parser.
        const body = toJson(entries, written).replaceAll('1e-7', '0.0000001')
        expect(isScanned(body)).toBe(true)
        expect(byScanner(body)).toEqual(byParser(body))
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
    [
      'as many entries as a batch may have',
      `[${Array(limits.entriesPerBatchMax).fill(entry('')).join(',')}]`,
    ],
    ['all fields that are null', entry(',"metadata":null,"url":null,"timestamp":null,"source":null')],
    ['names of objects that are closed', metadata('{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":1}]}')],
    ['as many names as it compares', metadata(names(32))],
    ['as many levels as are allowed', metadata(`${'{"a":'.repeat(16)}1${'}'.repeat(16)}`)],
    ['numbers of many digits', metadata('{"a":9007199254740991,"b":0.1234567890123456789,"c":-0,"d":10.0}')],
    [
      'escapes of all kinds',
      metadata(String.raw`{"a":"\"\\\/\b\f\n\r\t\u0000\u001f\u007f\u00e9\u20ac\u0041\u005C"}`),
    ],
    [
      'escapes whose low byte is one that is escaped',
      String.raw`{"level":"info","message":"ĢŜĉĊ","metadata":{"a":"ĢŜĉĊ"}}`,
    ],
    [
      '… in a message',
      String.raw`{"level":"info","message":"\"\\\/\b\f\n\r\t\u0000\u001f\u00e9\u20ac\u0041\u005c\u000a"}`,
    ],
  ])('knows %s', (_what, body) => {
    expect(isScanned(body)).toBe(true)
    expect(byScanner(body)).toEqual(byParser(body))
  })

  it.each([
    ['lines', `${entry('')}\n${entry('')}`],
    ['blank lines, and ends of lines of either kind', `\n ${entry('')} \r\n\r\n\t${entry('')}\n \n`],
  ])('knows %s', (_what, body) => {
    expect(isScanned(body, ndjsonFormat)).toBe(true)
    expect(byScanner(body, ndjsonFormat)).toEqual(byParser(body, ndjsonFormat))
  })

  it.each([
    ['two entries on a line', `${entry('')}${entry('')}`],
    ['an entry over two lines', entry(',\n"url":"u"')],
    ['an entry that begins on the line of another', `${entry('')} ${entry('')}\n`],
    ['a line that is no entry', `${entry('')}\n5`],
    ['no lines', '\n'],
    ['an array', `[${entry('')}]`],
  ])('leaves %s to the parser', (_what, body) => {
    expect(isScanned(body, ndjsonFormat)).toBe(false)
    expect(byScanner(body, ndjsonFormat)).toEqual(byParser(body, ndjsonFormat))
  })

  it.each([
    ['nothing', '[]'],
    ['nothing, in an object', '{"logs":[]}'],
    ['"logs" and more', `{"logs":[${entry('')}],"a":1}`],
    ['"logs" that are none', '{"logs":{}}'],
    ['what follows a body', `${entry('')},`],
    ['a zero behind a body', `${entry('')}\0`],
    ['a byte order mark', `\ufeff${entry('')}`],
    [
      'too many entries',
      `[${Array(limits.entriesPerBatchMax + 1)
        .fill(entry(''))
        .join(',')}]`,
    ],
    ['fields of other names', entry(',"requestId":"r"')],
    ['a field twice', entry(',"level":"warn"')],
    ['a field twice, null at first', entry(',"url":null,"url":"u"')],
    ['a level that there is not', '{"level":"fatal","message":"m"}'],
    ['the start of a level', '{"level":"inf","message":"m"}'],
    ['a level of null', '{"level":null,"message":"m"}'],
    ['an entry without a message', '{"level":"info"}'],
    ['a choice that is escaped', String.raw`{"level":"\u0069nfo","message":"m"}`],
    ['a field whose name is escaped', String.raw`{"level":"info","m\u0065ssage":"m"}`],
    ['a timestamp that is none', entry(',"timestamp":"yesterday"')],
    ['an empty timestamp', entry(',"timestamp":""')],
    [
      'a message that may be too long',
      `{"level":"info","message":"${'é'.repeat(limits.messageCharactersMax / 2 + 1)}"}`,
    ],
    ['a text in place of the metadata', metadata('"m"')],
    ['an object in place of a text', entry(',"url":{}')],
    ['more names than it compares', metadata(names(33))],
    ['a name twice', metadata('{"a":1,"b":2,"a":3}')],
    ['an empty name twice', metadata('{"":1,"":2}')],
    ['names that are numbers', metadata('{"b":1,"1":2}')],
    ['a name that is escaped', metadata(String.raw`{"\n":1}`)],
    ['more levels than are allowed', metadata(`${'{"a":'.repeat(17)}1${'}'.repeat(17)}`)],
    ['… in arrays', metadata(`{"a":${'['.repeat(16)}${']'.repeat(16)}}`)],
    ['metadata that may be too large', metadata(`{"a":"${'x'.repeat(limits.metadataBytesMax)}"}`)],
    ['half of a surrogate pair', metadata(String.raw`{"a":"\ud83d"}`)],
    ['a surrogate pair that is escaped', metadata(String.raw`{"a":"\ud83d\ude00"}`)],
    ['… in a message', String.raw`{"level":"info","message":"\ud83d\ude00"}`],
    ['an exponent', metadata('{"a":1e3}')],
    ['a number that is not exact', metadata('{"a":9007199254740992}')],
    ['a number with a zero before it', metadata('{"a":01}')],
    ['a number without its fraction', metadata('{"a":1.}')],
    ['a sign alone', metadata('{"a":-}')],
    ['a comma too many', metadata('{"a":1,}')],
    ['… in an array', metadata('{"a":[1,]}')],
    ['… in an entry', entry(',')],
    ['a word that is cut', metadata('{"a":tru}')],
    ['a string with a line end', metadata('{"a":"\n"}')],
    ['an escape that there is not', metadata(String.raw`{"a":"\x"}`)],
    ['… in a message', String.raw`{"level":"info","message":"\x"}`],
    ['an escape that is cut off by the end', String.raw`{"level":"info","message":"\ `.trimEnd()],
    ['hexadecimal digits that are none', metadata(String.raw`{"a":"\u00g0"}`)],
  ])('leaves %s to the parser', (_what, body) => {
    expect(isScanned(body)).toBe(false)
    expect(byScanner(body)).toEqual(byParser(body))
  })

  it('leaves a body to the parser that is larger than its memory', () => {
    expect(isScanned(big(17))).toBe(true)
    expect(isScanned(big(18))).toBe(false)
    expect(byScanner(big(18))).toEqual(byParser(big(18)))
  })

  it('has room for the largest rows of the largest body', () => {
    const metadataText = `{"a":"${String.raw`\\`.repeat(16_000)}"}`
    const body = `[${Array.from({ length: 32 }, () => metadata(metadataText)).join(',')}]`
    expect(body.length).toBeGreaterThan(1_000_000)
    expect(isScanned(body)).toBe(true)
    expect(byScanner(body)).toEqual(byParser(body))
  })

  it('reads texts of any length right, whose bytes it takes by the sixteen', () => {
    const lengths = [...Array.from({ length: 70 }, (_, i) => i), 511, 512, 513, 529]
    for (const length of lengths) {
      const text = 'x'.repeat(length)
      for (const end of ['', 'é', String.raw`\n`, String.raw`\\x`, String.raw`\"`, String.raw`\u0001xx`]) {
        const members = `,"service":"${text.slice(0, 250)}","metadata":{"${text}":"${text}${end}","${text}y":1}`
        const body = `{"level":"info","message":"${text}${end}"${members}}`
        expect(isScanned(body)).toBe(true)
        expect(byScanner(body)).toEqual(byParser(body))
      }
    }
  })

  it('tells names apart that differ in any byte, or in length alone', () => {
    for (let length = 1; length < 40; length += 1) {
      const name = 'n'.repeat(length)
      for (let at = 0; at < length; at += 1) {
        const other = `${name.slice(0, at)}m${name.slice(at + 1)}`
        expect(isScanned(metadata(`{"${name}":1,"${other}":2,"${name}n":3}`))).toBe(true)
      }
      expect(isScanned(metadata(`{"${name}":1,"a":2,"${name}":3}`))).toBe(false)
    }
  })

  it('keeps nothing of one body for the next', () => {
    expect(isScanned(entry(',"url":"u","timestamp":"2026-11-20T22:43:01Z","metadata":{"a":1}'))).toBe(true)
    expect(byScanner(entry(''))).toEqual(byParser(entry('')))
  })

  it('writes what the rows start with anew for each stamp', () => {
    const projects = ['a', 'b', 'a'].map((projectId) => {
      const scanned = scanner.scan(Buffer.from(entry('')), startRows({ ...stamp, projectId }), false)
      return scanned?.text.toString().split('\t')[0]
    })
    expect(projects).toEqual(['a', 'b', 'a'])
  })
})
