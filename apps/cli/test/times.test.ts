import { InvalidArgumentError } from 'commander'
import { describe, expect, test } from 'vitest'
import { parseDuration, parseExpiry, parseTime } from '../src/times.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)

describe('a duration', () => {
  test.each([
    ['90s', 90_000],
    ['15m', 900_000],
    ['2h', 7_200_000],
    ['3d', 259_200_000],
    ['1w', 604_800_000],
    ['0s', 0],
  ])('%s is parsed', (value, ms) => {
    expect(parseDuration(value)).toBe(ms)
  })

  test.each(['', '15', 'm', '1.5h', '-1h', '15 m', '15M', '1h30m', '36501d', '9999999999s'])(
    '"%s" is rejected',
    (value) => {
      expect(() => parseDuration(value)).toThrow(InvalidArgumentError)
    },
  )
})

describe('a time', () => {
  test.each([
    ['15m', '2026-11-20 11:45:00.000000'],
    ['+15m', '2026-11-20 12:15:00.000000'],
    ['2026-11-20T10:00:00+02:00', '2026-11-20 08:00:00.000000'],
    ['2026-11-20T10:00:00.125', '2026-11-20 10:00:00.125000'],
    ['2026-11-20T10:00:00.125999Z', '2026-11-20 10:00:00.125999'],
    ['2026-11-20T10:00:00.123456789Z', '2026-11-20 10:00:00.123456'],
    ['2026-11-30T10:00', '2026-11-30 10:00:00.000000'],
    ['2026-11-19', '2026-11-19 00:00:00.000000'],
    ['36500d', '1970-01-01 00:00:00.000000'],
    ['+36500d', '2126-10-27 12:00:00.000000'],
    ['2261-12-31T23:59:59Z', '2261-12-31 23:59:59.000000'],
  ])('%s is parsed', (value, time) => {
    expect(parseTime(value, NOW_MS)).toBe(time)
  })

  test.each(['yesterday', '2026-02-30', '1', '', '+', '-1h', '++1h', '+2026-11-19', '2262-01-01'])(
    '"%s" is rejected',
    (value) => {
      expect(() => parseTime(value, NOW_MS)).toThrow(InvalidArgumentError)
    },
  )
})

describe('an expiry', () => {
  test.each([
    ['90d', '2027-02-18T12:00:00.000Z'],
    ['2027-01-01', '2027-01-01T00:00:00.000Z'],
    ['2026-11-30T10:00:00.123+02:00', '2026-11-30T08:00:00.123Z'],
  ])('%s is parsed', (value, time) => {
    expect(parseExpiry(value, NOW_MS).toISOString()).toBe(time)
  })

  test.each(['0s', 'never', '2026-11-20T12:00:00Z', '2020-01-01'])('"%s" is rejected', (value) => {
    expect(() => parseExpiry(value, NOW_MS)).toThrow(InvalidArgumentError)
  })
})
