import { describe, expect, it } from 'vitest'
import { backoffMs } from '../src/backoff.ts'

const backoff = { baseMs: 100, maxMs: 5_000 }

describe('backoffMs', () => {
  it('doubles from the base up to the longest wait', () => {
    const waits = [1, 2, 3, 4, 5, 6, 7, 8, 100].map((attempt) => backoffMs(attempt, backoff, 0))
    expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000])
  })

  it('subtracts at most half of the wait', () => {
    expect(backoffMs(3, backoff, 0)).toBe(400)
    expect(backoffMs(3, backoff, 0.5)).toBe(300)
    expect(backoffMs(3, backoff, 0.999999)).toBe(200)
  })

  it('spreads callers that failed together', () => {
    const waits = Array.from({ length: 100 }, (_, i) => backoffMs(5, backoff, i / 100))
    expect(new Set(waits).size).toBe(100)
  })

  it.each([1, 2, 31, 32, 1_000, 1e9, Number.MAX_SAFE_INTEGER])(
    'is an integer within its bounds after %d attempts',
    (attempt) => {
      for (const random of [0, 0.1, 0.333, 0.9999]) {
        const wait = backoffMs(attempt, backoff, random)
        expect(wait).toBeGreaterThanOrEqual(backoff.baseMs / 2)
        expect(wait).toBeLessThanOrEqual(backoff.maxMs)
        expect(Number.isInteger(wait)).toBe(true)
      }
    },
  )

  it('never exceeds the longest wait, even if the base does', () => {
    expect(backoffMs(1, { baseMs: 1_000, maxMs: 50 }, 0)).toBe(50)
  })
})
