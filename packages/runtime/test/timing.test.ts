import { expect, it, onTestFinished, vi } from 'vitest'
import { backoffMs, describeSkew, PeriodicTask } from '../src/timing.ts'

const backoff = { baseMs: 100, maxMs: 5_000 }

it('backoffMs doubles from the base up to the longest wait, and subtracts at most half', () => {
  const attempts = [1, 2, 6, 7, 100, Number.MAX_SAFE_INTEGER]
  const longest = attempts.map((attempt) => backoffMs(attempt, backoff, 0))
  expect(longest).toEqual([100, 200, 3_200, 5_000, 5_000, 5_000])
  const shortest = attempts.map((attempt) => backoffMs(attempt, backoff, 0.9999))
  expect(shortest).toEqual(longest.map((ms) => ms / 2))
  expect(backoffMs(1, { baseMs: 1_000, maxMs: 50 }, 0)).toBe(50)
})

it.each([
  [1 - 40 * 86_400_000, '40 days behind'],
  [-61_000, '1 minute behind'],
])('a skew of %i ms is %s', (skewMs, text) => {
  expect(describeSkew(skewMs)).toBe(text)
})

it('a periodic task runs once per interval until it is stopped, and not before the last run has ended', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const ends: (() => void)[] = []
  const run = vi.fn<() => Promise<void>>(() => new Promise((resolve) => ends.push(resolve)))
  const task = new PeriodicTask(100, run)
  await vi.advanceTimersByTimeAsync(99)
  expect(run).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(500)
  expect(run).toHaveBeenCalledTimes(1)
  ends[0]?.()
  await vi.advanceTimersByTimeAsync(100)
  expect(run).toHaveBeenCalledTimes(2)
  ends[1]?.()
  task.stop()
  await vi.advanceTimersByTimeAsync(200)
  expect(run).toHaveBeenCalledTimes(2)
})
