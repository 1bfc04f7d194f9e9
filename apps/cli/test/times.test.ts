import { InvalidArgumentError } from 'commander'
import { expect, test } from 'vitest'
import { parseDuration, parseExpiry, parseTime, toPreciseTime } from '../src/times.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const expiry = (value: string): string => parseExpiry(value, NOW_MS).toISOString()
const time = (value: string): string => toPreciseTime(parseTime(value, NOW_MS))
const berlin = (value: string): string => parseTime(value, NOW_MS, 'Europe/Berlin').toString()

test.each<[(value: string) => unknown, value: string, result: unknown]>([
  [parseDuration, '90s', 90_000],
  [parseDuration, '15m', 900_000],
  [parseDuration, '2h', 7_200_000],
  [parseDuration, '3d', 259_200_000],
  [parseDuration, '1w', 604_800_000],
  [time, '15m', '2026-11-20 11:45:00.000000'],
  [time, '-15m', '2026-11-20 11:45:00.000000'],
  [time, '+15m', '2026-11-20 12:15:00.000000'],
  [time, 'now', '2026-11-20 12:00:00.000000'],
  [time, '2026-11-20T10:00:00+02:00', '2026-11-20 08:00:00.000000'],
  [time, '2026-11-20T10:00:00.125', '2026-11-20 10:00:00.125000'],
  [time, '2026-11-20T10:00:00.123456789Z', '2026-11-20 10:00:00.123456'],
  [time, '2026-11-30T10:00', '2026-11-30 10:00:00.000000'],
  [time, '2026-11-19', '2026-11-19 00:00:00.000000'],
  [time, '36500d', '1970-01-01 00:00:00.000000'],
  [time, '+36500d', '2126-10-27 12:00:00.000000'],
  [berlin, '10:30', '2026-11-20T09:30:00Z'],
  [berlin, '14:05:06.5', '2026-11-20T13:05:06.5Z'],
  [berlin, 'today', '2026-11-19T23:00:00Z'],
  [berlin, 'yesterday', '2026-11-18T23:00:00Z'],
  [berlin, 'yesterday 10:30', '2026-11-19T09:30:00Z'],
  [berlin, '2026-11-24 10:30', '2026-11-24T09:30:00Z'],
  [berlin, '2026-07-01T10:30', '2026-07-01T08:30:00Z'],
  [berlin, '2026-07-01T10:30Z', '2026-07-01T10:30:00Z'],
  // The second one of those that occur twice, as in lines that are sent.
  [berlin, '2026-10-25 02:30', '2026-10-25T01:30:00Z'],
  [berlin, '2026-11-24T10:00:00.1234567890123Z', '2026-11-24T10:00:00.123456789Z'],
  [expiry, '90d', '2027-02-18T12:00:00.000Z'],
  [expiry, '2027-01-01', '2027-01-01T00:00:00.000Z'],
  [expiry, '2026-11-30T10:00:00.123+02:00', '2026-11-30T08:00:00.123Z'],
])('%o parses "%s"', (parse, value, result) => {
  expect(parse(value)).toBe(result)
})

test.each([
  [parseDuration, ['', '15', 'm', '1.5h', '-1h', '15 m', '15M', '1h30m', '36501d', '9999999999s']],
  [
    time,
    [
      'tomorrow',
      '2026-02-30',
      '1',
      '',
      '+',
      '++1h',
      '+2026-11-19',
      '2262-01-01',
      '1969-12-31',
      '25:00',
      ' ',
      'today10:30',
      '10:30 today',
    ],
  ],
  [expiry, ['0s', 'never', '2026-11-20T12:00:00Z', '2020-01-01', '-1h']],
])('%o rejects anything else', (parse, values) => {
  for (const value of values) expect(() => parse(value)).toThrow(InvalidArgumentError)
})
