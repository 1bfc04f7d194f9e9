import { describe, expect, test } from 'vitest'
import { UsageError } from '../src/errors.ts'
import { parseDurationMs, parseExpiry, parseTime, requireDurationMs } from '../src/times.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)

describe('parseDurationMs', () => {
  test.each([
    ['90s', 90_000],
    ['15m', 900_000],
    ['2h', 7_200_000],
    ['3d', 259_200_000],
    ['1w', 604_800_000],
    ['0s', 0],
  ])('parses %s', (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms)
  })

  test.each(['', '15', 'm', '1.5h', '-1h', '15 m', '15M', '1h30m', '36501d', '9999999999s'])(
    'rejects "%s"',
    (text) => {
      expect(parseDurationMs(text)).toBeUndefined()
    },
  )
})

describe('parseTime', () => {
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
  ])('parses %s', (text, time) => {
    expect(parseTime('--from', text, NOW_MS)).toBe(time)
  })

  test.each(['yesterday', '2026-02-30', '1', '', '+', '-1h', '++1h', '+2026-11-19', '2262-01-01'])(
    'rejects "%s", and names the option',
    (text) => {
      expect(() => parseTime('--until', text, NOW_MS)).toThrow(UsageError)
      expect(() => parseTime('--until', text, NOW_MS)).toThrow('--until must be a duration')
    },
  )
})

describe('requireDurationMs', () => {
  test('parses durations, and names the option in errors', () => {
    expect(requireDurationMs('--overlap', '24h')).toBe(86_400_000)
    expect(requireDurationMs('--overlap', '0s')).toBe(0)
    expect(() => requireDurationMs('--overlap', 'soon')).toThrow('--overlap must be a duration')
  })
})

describe('parseExpiry', () => {
  test('parses a duration from now, a time, or nothing', () => {
    expect(parseExpiry({ expiresIn: '90d' }, NOW_MS)).toEqual(new Date('2027-02-18T12:00:00Z'))
    expect(parseExpiry({ expiresAt: '2027-01-01' }, NOW_MS)).toEqual(new Date('2027-01-01T00:00:00Z'))
    expect(parseExpiry({}, NOW_MS)).toBeUndefined()
  })

  test.each([
    { expiresIn: '0s' },
    { expiresIn: 'never' },
    { expiresIn: '2027-01-01' },
    { expiresAt: '90d' },
    { expiresAt: '2026-11-20T12:00:00Z' },
    { expiresAt: '2020-01-01' },
    { expiresIn: '90d', expiresAt: '2027-01-01' },
  ])('rejects %j', (given) => {
    expect(() => parseExpiry(given, NOW_MS)).toThrow(UsageError)
  })
})
