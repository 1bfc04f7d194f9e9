import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseTimestamp, toClickHouseTime } from '../src/timestamps.ts'
import { anyText, anyTimestamp, runs } from './support/arbitrary-entry.ts'
import { invalidTimestamps as invalid, validTimestamps as valid } from './support/timestamps.ts'

/**
 * What ClickHouse stores for a timestamp: it reads a `T` as a space, ignores a `Z`, and truncates the fraction to the six digits of
 * the column.
 */
function asStored(text: string | undefined): string | undefined {
  const [, date, time, fraction = ''] =
    /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,10}))?Z?$/.exec(text ?? '') ?? []
  if (date === undefined || time === undefined) return text
  return `${date} ${time}.${fraction.padEnd(6, '0').slice(0, 6)}`
}

describe('parseTimestamp', () => {
  it.each(valid)('reads %s', (_why, text, stored) => {
    expect(asStored(parseTimestamp(text))).toBe(stored)
  })

  it.each(invalid)('rejects %s', (_why, text) => {
    expect(parseTimestamp(text)).toBeUndefined()
  })

  it('agrees with the calendar on each day of common years, leap years and century years', () => {
    const wrong: string[] = []
    for (const year of [2026, 2028, 2000, 2100]) {
      for (let month = 1; month <= 12; month += 1) {
        for (let day = 1; day <= 31; day += 1) {
          const date = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`
          const exists = new Date(Date.UTC(year, month - 1, day)).getUTCMonth() === month - 1
          if ((parseTimestamp(`${date}T12:00:00Z`) !== undefined) !== exists) wrong.push(date)
        }
      }
    }
    expect(wrong).toEqual([])
  })

  it('returns the same microsecond as the text, in all allowed forms', () => {
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

  it('agrees with Date on whether a date-time exists', () => {
    const two = fc.integer({ min: 0, max: 70 }).map((number) => String(number).padStart(2, '0'))
    const text = fc
      .tuple(fc.integer({ min: 1960, max: 2270 }), two, two, two, two, two)
      .map(([year, ...rest]) => `${year}-${rest[0]}-${rest[1]}T${rest[2]}:${rest[3]}:${rest[4]}Z`)
      .filter((each) => !/T24:00:00|:60Z/.test(each))
    fc.assert(
      fc.property(text, (each) => {
        const date = new Date(each)
        // Date reads the 31st of February as a day in March.
        const isDate = !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === each.slice(0, 10)
        const isWithin = Number(each.slice(0, 4)) >= 1970 && Number(each.slice(0, 4)) <= 2261
        expect(parseTimestamp(each) !== undefined).toBe(isDate && isWithin)
      }),
      runs,
    )
  })

  it('returns undefined or a form that ClickHouse reads, for any text', () => {
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

describe('toClickHouseTime', () => {
  it('keeps the milliseconds, without the T and the Z', () => {
    expect(toClickHouseTime(Date.UTC(2026, 10, 20, 22, 43, 1, 7))).toBe('2026-11-20 22:43:01.007')
  })
})
