import { describe, expect, it } from 'vitest'
import { barsOf, niceMax, rangeBetween, ticksOf, timeOf, widen, xOf } from '../src/bars.ts'

const range = { fromMs: 60_000, untilMs: 660_000 }
const iso = (ms: number) => new Date(ms).toISOString()

describe('the bars', () => {
  const histogram = {
    step_ms: 60_000,
    total: 1_100_001,
    buckets: [
      { from: iso(60_000), counts: { info: 100_000 } },
      { from: iso(120_000), counts: { info: 1_000_000, error: 1 } },
      { from: iso(180_000), counts: {} },
    ],
  }
  const { max, bars } = barsOf(histogram, range, { width: 600, height: 100 })

  it('are at their times, and as high as their counts', () => {
    expect(max).toBe(2_000_000)
    expect(bars.map(({ x, width }) => ({ x, width }))).toEqual([
      { x: 0, width: 59 },
      { x: 60, width: 59 },
      { x: 120, width: 59 },
    ])
    expect(bars[0]?.parts).toEqual([{ level: 'info', y: 95, height: 5 }])
  })

  it('show one error among a million entries, at the bottom', () => {
    expect(bars[1]?.parts[0]).toEqual({ level: 'error', y: 99, height: 1 })
    expect(bars[1]?.parts[1]).toEqual({ level: 'info', y: 49, height: 50 })
  })

  it('have levels that nobody knows', () => {
    const odd = { ...histogram, buckets: [{ from: iso(60_000), counts: { fatal: 1 } }] }
    expect(barsOf(odd, range, { width: 600, height: 100 }).bars[0]?.parts[0]?.level).toBe('fatal')
  })

  it('end with the range', () => {
    const {
      bars: [bar],
    } = barsOf(histogram, { fromMs: 90_000, untilMs: 100_000 }, { width: 600, height: 100 })
    expect(bar).toMatchObject({ x: 0, width: 599 })
  })
})

it('rounds the top of the chart up', () => {
  expect([0, 1, 2, 3, 7, 10, 11, 4999].map(niceMax)).toEqual([1, 1, 2, 5, 10, 10, 20, 5000])
})

it('finds the time of a place, and the place of a time', () => {
  expect(timeOf(300, range, 600)).toBe(360_000)
  expect(xOf(360_000, range, 600)).toBe(300)
  expect(timeOf(-5, range, 600)).toBe(range.fromMs)
  expect(timeOf(900, range, 600)).toBe(range.untilMs)
})

it('chooses whole buckets in either direction, within the range', () => {
  expect(rangeBetween(150_000, 250_000, 60_000, range)).toEqual({ fromMs: 120_000, untilMs: 300_000 })
  expect(rangeBetween(250_000, 150_000, 60_000, range)).toEqual({ fromMs: 120_000, untilMs: 300_000 })
  expect(rangeBetween(150_000, 150_000, 60_000, range)).toEqual({ fromMs: 120_000, untilMs: 180_000 })
  expect(rangeBetween(0, 9e9, 60_000, range)).toEqual(range)
})

it('zooms out around the middle, and not into the future', () => {
  expect(widen({ fromMs: 400, untilMs: 500 }, 10_000)).toEqual({ fromMs: 300, untilMs: 600 })
  expect(widen({ fromMs: 400, untilMs: 500 }, 500)).toEqual({ fromMs: 200, untilMs: 500 })
})

it('has ticks at round times of the zone', () => {
  const hours = { fromMs: Date.parse('2026-11-24T10:07:00Z'), untilMs: Date.parse('2026-11-24T13:07:00Z') }
  expect(ticksOf(hours, 600, 'UTC', 90).times.map(iso)).toEqual([
    '2026-11-24T10:30:00.000Z',
    '2026-11-24T11:00:00.000Z',
    '2026-11-24T11:30:00.000Z',
    '2026-11-24T12:00:00.000Z',
    '2026-11-24T12:30:00.000Z',
    '2026-11-24T13:00:00.000Z',
  ])
  const days = { fromMs: Date.parse('2026-11-20T10:00:00Z'), untilMs: Date.parse('2026-11-24T10:00:00Z') }
  expect(ticksOf(days, 600, 'Asia/Kathmandu', 90).times.map(iso)[0]).toBe('2026-11-20T18:15:00.000Z')
})
