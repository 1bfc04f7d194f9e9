import { describe, expect, it } from 'vitest'
import { gatherIntervalMs, gatherLimits, RowRate } from '../../src/chunks/row-rate.ts'

const { freeRowsPerS, fullRowsPerS, intervalMaxMs, rowsMax } = gatherLimits

/** Sends every 2 ms. */
function sendFor(rate: RowRate, ms: number, rowsPerMs: number, startMs = 0): void {
  for (let at = startMs; at < startMs + ms; at += 2) rate.record(2 * rowsPerMs, at)
}

describe('the interval in which rows are gathered', () => {
  it('is zero up to a rate', () => {
    expect(gatherIntervalMs(0)).toBe(0)
    expect(gatherIntervalMs(freeRowsPerS)).toBe(0)
  })

  it('grows from there', () => {
    const halfway = (freeRowsPerS + fullRowsPerS) / 2
    expect(gatherIntervalMs(halfway)).toBeCloseTo(intervalMaxMs / 2)
    expect(gatherIntervalMs(fullRowsPerS)).toBe(intervalMaxMs)
  })

  it('is no longer than it takes to gather enough rows', () => {
    expect(gatherIntervalMs(500_000)).toBeCloseTo((rowsMax / 500_000) * 1_000)
  })
})

describe('the rate of rows', () => {
  it('is that of a steady load', () => {
    const rate = new RowRate()
    sendFor(rate, 1_000, 150)
    expect(rate.perS / 150_000).toBeCloseTo(1, 1)
  })

  it('follows a change within half a second, up and down', () => {
    const rate = new RowRate()
    sendFor(rate, 500, 250)
    expect(rate.perS).toBeGreaterThan(240_000)
    sendFor(rate, 500, 10, 500)
    expect(rate.perS).toBeLessThan(15_000)
  })

  it('does not count rows from before a pause', () => {
    const rate = new RowRate()
    sendFor(rate, 500, 250)
    rate.record(1, 10_000)
    expect(rate.perS).toBeLessThan(20)
  })

  it('is low after one full chunk', () => {
    const rate = new RowRate()
    rate.record(2_000, 5)
    expect(gatherIntervalMs(rate.perS)).toBe(0)
  })
})
