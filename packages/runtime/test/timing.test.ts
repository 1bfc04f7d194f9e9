import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { backoffMs, describeSkew, PeriodicTask } from '../src/timing.ts'

const backoff = { baseMs: 100, maxMs: 5_000 }

describe('backoffMs', () => {
  it('doubles from the base up to the longest wait', () => {
    const waits = [1, 2, 3, 4, 5, 6, 7, 8, 100].map((attempt) => backoffMs(attempt, backoff, 0))
    expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000])
  })

  it.each([1, 31, 1e9, Number.MAX_SAFE_INTEGER])('subtracts at most half after %d attempts', (attempt) => {
    const [longest, shortest] = [backoffMs(attempt, backoff, 0), backoffMs(attempt, backoff, 0.9999)]
    expect(shortest).toBe(longest / 2)
  })

  it('never exceeds the longest wait, even if the base does', () => {
    expect(backoffMs(1, { baseMs: 1_000, maxMs: 50 }, 0)).toBe(50)
  })
})

it.each([
  [1 - 40 * 86_400_000, '40 days behind'],
  [2 * 86_400_000 + 20_000_000, '2 days ahead of'],
  [3_600_000, '1 hour ahead of'],
  [-61_000, '1 minute behind'],
  [-2_000, '2 seconds behind'],
  [400, '0 seconds ahead of'],
])('a skew of %i ms is %s', (skewMs, text) => {
  expect(describeSkew(skewMs)).toBe(text)
})

describe('a periodic task', () => {
  const INTERVAL_MS = 100

  beforeEach(() => {
    vi.useFakeTimers()
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  function start(run: () => Promise<void>): PeriodicTask {
    const task = new PeriodicTask(INTERVAL_MS, run)
    onTestFinished(() => task.stop())
    return task
  }

  it('runs once per interval, until it is stopped', async () => {
    const run = vi.fn<() => Promise<void>>(async () => undefined)
    const task = start(run)
    await vi.advanceTimersByTimeAsync(INTERVAL_MS - 1)
    expect(run).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(run).toHaveBeenCalledTimes(1)
    await vi.advanceTimersByTimeAsync(2 * INTERVAL_MS)
    expect(run).toHaveBeenCalledTimes(3)
    task.stop()
    await vi.advanceTimersByTimeAsync(2 * INTERVAL_MS)
    expect(run).toHaveBeenCalledTimes(3)
  })

  it('does not run again before the last run has ended', async () => {
    const ends: (() => void)[] = []
    const run = vi.fn<() => Promise<void>>(() => new Promise((resolve) => ends.push(resolve)))
    start(run)
    await vi.advanceTimersByTimeAsync(5 * INTERVAL_MS)
    expect(run).toHaveBeenCalledTimes(1)
    ends[0]?.()
    await vi.advanceTimersByTimeAsync(INTERVAL_MS)
    expect(run).toHaveBeenCalledTimes(2)
    ends[1]?.()
  })
})
