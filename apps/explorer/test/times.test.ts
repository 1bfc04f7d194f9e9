import { describe, expect, it } from 'vitest'
import {
  atWallTime,
  duration,
  isoOf,
  offsetLabel,
  offsetMs,
  parseRange,
  parseTime,
  rangeEnds,
  rangeLabel,
  wallTime,
} from '../src/times.ts'

const now = Date.parse('2026-11-24T14:03:07.000Z')
const at = (text: string, zone = 'UTC') => {
  const ms = parseTime(text, now, zone)
  return ms === undefined ? undefined : isoOf(ms)
}

describe('a time', () => {
  it.each([
    ['now', '2026-11-24T14:03:07.000Z'],
    ['-15m', '2026-11-24T13:48:07.000Z'],
    ['-90s', '2026-11-24T14:01:37.000Z'],
    ['-7d', '2026-11-17T14:03:07.000Z'],
    ['2026-11-24T10:00:00Z', '2026-11-24T10:00:00.000Z'],
    ['2026-11-24T10:00:00.250+05:45', '2026-11-24T04:15:00.250Z'],
    ['2026-11-24 10:00', '2026-11-24T10:00:00.000Z'],
    ['2026-11-24', '2026-11-24T00:00:00.000Z'],
    ['9:30', '2026-11-24T09:30:00.000Z'],
  ])('is read: %s', (text, expected) => {
    expect(at(text)).toBe(expected)
  })

  it.each(['', 'yesterday', '-15', '15m', '10', '25:00', '2026-13-01', '10:61', 'Z'])(
    'is refused: "%s"',
    (text) => {
      expect(at(text)).toBeUndefined()
    },
  )

  it('without an offset is on the clocks of the zone', () => {
    expect(at('2026-11-24 10:00', 'Asia/Kathmandu')).toBe('2026-11-24T04:15:00.000Z')
    expect(at('2026-07-01 10:00', 'Europe/Berlin')).toBe('2026-07-01T08:00:00.000Z')
    // It is already the 25th there.
    expect(at('0:30', 'Pacific/Auckland')).toBe('2026-11-24T11:30:00.000Z')
  })

  it('is right on both sides of a change of the clocks', () => {
    const change = Date.parse('2026-10-25T01:00:00Z')
    expect(offsetMs(change - 1, 'Europe/Berlin')).toBe(7_200_000)
    expect(offsetMs(change, 'Europe/Berlin')).toBe(3_600_000)
    for (const ms of [change - 7_200_000, change + 7_200_000])
      expect(atWallTime(ms + offsetMs(ms, 'Europe/Berlin'), 'Europe/Berlin')).toBe(ms)
  })

  it('is shown with the digits that it has', () => {
    expect(wallTime('2026-11-24T23:30:01.123456Z', 'Europe/Berlin')).toEqual({
      date: '2026-11-25',
      time: '00:30:01',
      fraction: '123456',
    })
    expect(wallTime(0, 'UTC')).toEqual({ date: '1970-01-01', time: '00:00:00', fraction: '000' })
    expect(offsetLabel(now, 'America/St_Johns')).toBe('UTC−3:30')
    expect(offsetLabel(now, 'UTC')).toBe('UTC')
  })

  it('is UTC in a zone that does not exist', () => {
    expect(wallTime(0, 'Mars/Olympus').time).toBe('00:00:00')
  })
})

describe('a range', () => {
  it('has an end after its start', () => {
    expect(parseRange('-1h', 'now', now, 'UTC')).toEqual({ fromMs: now - 3_600_000, untilMs: now })
    expect(parseRange('now', '-1h', now, 'UTC')).toContain('ends before')
    expect(parseRange('then', 'now', now, 'UTC')).toContain('“then”')
  })

  it('has a name, or its ends with the dates that are needed', () => {
    expect(rangeLabel('-15m', 'now', { fromMs: now - 900_000, untilMs: now }, 'UTC')).toBe('Last 15 minutes')
    expect(rangeLabel('-90m', 'now', { fromMs: now - 5_400_000, untilMs: now }, 'UTC')).toBe('Last 90m')
    expect(rangeEnds({ fromMs: now - 900_000, untilMs: now }, 'UTC')).toBe('13:48:07 – 14:03:07')
    expect(rangeEnds({ fromMs: now - 86_400_000, untilMs: now }, 'UTC')).toBe('11-23 14:03 – 11-24 14:03')
  })
})

it('shows durations in the unit that a person would use', () => {
  expect([90, 4_240, 42_000, 240_000, 14_400_000, 604_800_000].map(duration)).toEqual([
    '90 ms',
    '4.2 s',
    '42 s',
    '4 min',
    '4 h',
    '7 d',
  ])
})
