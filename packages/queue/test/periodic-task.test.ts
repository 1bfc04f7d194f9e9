import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { PeriodicTask } from '../src/periodic-task.ts'

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
