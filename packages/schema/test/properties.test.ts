import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { entryErrorCodes, EntryValidator } from '../src/entry.ts'
import { parseJson, parseJsonExactly } from '../src/json.ts'
import { InexactNumberError, rowAsJson, rowColumns, shapeRow, startRows } from '../src/rows.ts'
import { parseTimestamp } from '../src/timestamps.ts'
import { anyText, anyTimestamp, foldedMetadata, validEntry } from './support/arbitrary-entry.ts'
import { invalidEntry, pointsInto } from './support/arbitrary-invalid.ts'
import { ID, stamp } from './support/shape.ts'

/** Some two seconds for all of them; each finds what it is for within the first few hundred. */
const runs = { numRuns: 1_000 }

const validator = new EntryValidator()
const start = startRows(stamp)

/** What the API makes of an entry that was sent as a text. */
function shapeText(text: string): ReturnType<typeof shapeRow> | 'no entry' {
  try {
    return shapeParsed(parseJson(text))
  } catch (error) {
    if (!(error instanceof InexactNumberError)) throw error
    return shapeParsed(parseJsonExactly(text))
  }
}

function shapeParsed(entry: unknown): ReturnType<typeof shapeRow> | 'no entry' {
  return validator.isEntry(entry) ? shapeRow(entry, ID, start, true) : 'no entry'
}

describe('a row', () => {
  it('gives back each field of any valid entry as it was sent, and the metadata with what is folded in', () => {
    fc.assert(
      fc.property(validEntry, (entry) => {
        const shaped = shapeText(JSON.stringify(entry))
        if (typeof shaped === 'string' || 'error' in shaped) throw new Error(JSON.stringify(shaped))
        const row = JSON.parse(rowAsJson(shaped.row) ?? '') as Record<string, unknown>
        for (const name of [
          'level',
          'message',
          'environment',
          'source',
          'service',
          'url',
          'pathname',
          'stack',
        ]) {
          expect(row[name]).toBe(entry[name] ?? '')
        }
        expect(row['metadata_text']).toBe(JSON.stringify(foldedMetadata(entry)))
        expect(row['id']).toBe(ID)
      }),
      runs,
    )
  })

  it('is one line of as many fields as there are columns, whatever the entry holds', () => {
    fc.assert(
      fc.property(validEntry, (entry) => {
        const shaped = shapeText(JSON.stringify(entry))
        if (typeof shaped === 'string' || 'error' in shaped) throw new Error(JSON.stringify(shaped))
        expect(shaped.row.indexOf('\n')).toBe(shaped.row.length - 1)
        expect(shaped.row.split('\t')).toHaveLength(rowColumns.length)
      }),
      runs,
    )
  })
})

describe('what is wrong with an entry', () => {
  it('is found, for the reason it was made for, at a place that is in the entry', () => {
    fc.assert(
      fc.property(invalidEntry, ({ entry, path, code }) => {
        const text = JSON.stringify(entry)
        const shaped = shapeText(text)
        if (typeof shaped === 'object' && 'row' in shaped) throw new Error('the entry was taken')
        const errors = shaped === 'no entry' ? validator.explain(parseJson(text)) : [shaped.error]
        expect(errors).toContainEqual(expect.objectContaining({ path, code }))
        for (const error of errors) {
          expect(Object.keys(entryErrorCodes)).toContain(error.code)
          expect(pointsInto(JSON.parse(text), error.path)).toBe(true)
        }
      }),
      runs,
    )
  })
})

describe('parseTimestamp', () => {
  it('means the same microsecond as the text, in any of the allowed forms', () => {
    fc.assert(
      fc.property(anyTimestamp, ({ text, epochUs }) => {
        const [, date, time, fraction = ''] =
          /^(\S{10})[T ](\S{8}?)(?:\.(\d+))?Z?$/.exec(parseTimestamp(text) ?? '') ?? []
        const readUs = BigInt(Date.parse(`${date}T${time}Z`)) * 1_000n
        expect(readUs + BigInt(fraction.padEnd(6, '0').slice(0, 6))).toBe(epochUs)
      }),
      runs,
    )
  })

  it('agrees with Date on what is a date and what is none, and with its value', () => {
    const two = fc.integer({ min: 0, max: 70 }).map((number) => String(number).padStart(2, '0'))
    const text = fc
      .tuple(fc.integer({ min: 1960, max: 2270 }), two, two, two, two, two)
      .map(([year, ...rest]) => `${year}-${rest[0]}-${rest[1]}T${rest[2]}:${rest[3]}:${rest[4]}Z`)
      .filter((each) => !/T24:00:00|:60Z/.test(each))
    fc.assert(
      fc.property(text, (each) => {
        const date = new Date(each)
        // Date takes the 31st of February for a day of March; it is none.
        const isDate = !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === each.slice(0, 10)
        const isWithin = Number(each.slice(0, 4)) >= 1970 && Number(each.slice(0, 4)) <= 2261
        expect(parseTimestamp(each) !== undefined).toBe(isDate && isWithin)
      }),
      runs,
    )
  })

  it('gives nothing but what ClickHouse reads, or undefined, for any text', () => {
    fc.assert(
      fc.property(fc.oneof(anyText(40), fc.stringMatching(/^[-0-9TZ:.+]{0,40}$/)), (text) => {
        expect(parseTimestamp(text) ?? '1970-01-01 00:00:00').toMatch(
          /^(19[7-9]\d|2[01]\d\d|22[0-5]\d|226[01])-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,10})?Z?$/,
        )
      }),
      runs,
    )
  })
})

describe('parseJsonExactly', () => {
  it('gives any JSON back digit by digit', () => {
    const digits = fc.stringMatching(/^-?[1-9]\d{16,40}$/)
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), digits, (value, number) => {
        const text = `[${JSON.stringify(value)},${number},{"a":${number}e5}]`
        expect(JSON.stringify(parseJsonExactly(text))).toBe(text)
      }),
      runs,
    )
  })

  it('agrees with JSON.parse on what is JSON', () => {
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
