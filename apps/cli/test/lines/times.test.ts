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
])('a time without an offset has the offset of the zone: %s', (text, time) => {
  expect(inBerlin.read(text)).toBe(time)
})

test('a local time that occurs twice is the second of the two, and the gap has one of the offsets around it', () => {
  expect(inBerlin.read('2026-10-25 02:30:00')).toBe('2026-10-25T02:30:00+01:00')
  expect(inBerlin.read('2026-10-25 01:59:59')).toBe('2026-10-25T01:59:59+02:00')
  expect(inBerlin.read('2026-03-29 02:30:00')).toMatch(/^2026-03-29T02:30:00\+0[12]:00$/)
})

test.each([
  ['Nov 24 16:59:59', 2026],
  ['Nov 24 17:00:01', 2025],
  ['Dec 31 23:59:59', 2025],
])('a time without a year is the newest that is at most a day in the future: %s', (text, year) => {
  expect(inBerlin.read(text)?.slice(0, 4)).toBe(String(year))
})

test('times before 1970 and after 2261 are not read', () => {
  expect(inBerlin.read('1969-12-31 10:00:00')).toBeUndefined()
  expect(inBerlin.read('2262-01-02 10:00:00')).toBeUndefined()
})
