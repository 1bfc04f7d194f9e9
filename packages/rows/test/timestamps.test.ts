import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseTimestamp } from '../src/timestamps.ts'
import { anyText, anyTimestamp } from './support/arbitrary-entry.ts'
import { invalidTimestamps as invalid, validTimestamps as valid } from './support/timestamps.ts'

it.each(valid)('reads %s', (_why, text, stored) => {
  expect(parseTimestamp(text)).toBe(stored)
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

it('returns the same microsecond as the input, in all allowed forms', () => {
  fc.assert(
    fc.property(anyTimestamp, ({ text, epochUs }) => {
      const time = new Date(Number(epochUs / 1_000n)).toISOString().slice(0, 19).replace('T', ' ')
      expect(parseTimestamp(text)).toBe(`${time}.${String(epochUs % 1_000_000n).padStart(6, '0')}`)
    }),
    runsOf(500),
  )
})

it('returns undefined or a time with microseconds, for any string', () => {
  fc.assert(
    fc.property(fc.oneof(anyText(40), fc.stringMatching(/^[-0-9TZ:.+]{0,40}$/)), (text) => {
      expect(parseTimestamp(text) ?? '1970-01-01 00:00:00.000000').toMatch(
        /^(19[7-9]\d|2[01]\d\d|22[0-5]\d|226[01])-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}$/,
      )
    }),
    runsOf(500),
  )
})
