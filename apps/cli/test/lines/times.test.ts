import { expect, test } from 'vitest'
import { TimeReader } from '../../src/lines/times.ts'
import { nowMs } from './support.ts'

const inBerlin = new TimeReader('Europe/Berlin', () => nowMs)

test.each([
  ['2026-07-20 10:00:00', '2026-07-20T10:00:00+02:00'],
  ['2026-11-20 10:00:00,123456789', '2026-11-20T10:00:00.123456789+01:00'],
  ['2026/11/20 10:00:00 UTC', '2026-11-20T10:00:00Z'],
  ['2026-11-20T10:00:00-03', '2026-11-20T10:00:00-03'],
  ['Nov  2 10:00:00', '2026-11-02T10:00:00+01:00'],
  ['20/Nov/2026:10:00:00 -0700', '2026-11-20T10:00:00-0700'],
  ['1120 10:00:00.5', '2026-11-20T10:00:00.5+01:00'],
  // A local time that occurs twice is the second of the two.
  ['2026-10-25 02:30:00', '2026-10-25T02:30:00+01:00'],
  ['2026-10-25 01:59:59', '2026-10-25T01:59:59+02:00'],
  // A time without a year is the newest that is at most a day in the future.
  ['Nov 24 16:59:59', '2026-11-24T16:59:59+01:00'],
  ['Nov 24 17:00:01', '2025-11-24T17:00:01+01:00'],
  ['Feb 29 10:00:00', '2024-02-29T10:00:00+01:00'],
  ['Dec 31 23:59:59', '2025-12-31T23:59:59+01:00'],
  ['1969-12-31 10:00:00', undefined],
  ['2262-01-02 10:00:00', undefined],
])('a time without an offset has the offset of the zone: %s', (text, time) => {
  expect(inBerlin.read(text)).toBe(time)
})

test('a local time that does not exist has one of the offsets around the gap', () => {
  expect(inBerlin.read('2026-03-29 02:30:00')).toMatch(/^2026-03-29T02:30:00\+0[12]:00$/)
})
