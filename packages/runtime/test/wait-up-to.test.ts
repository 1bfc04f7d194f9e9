import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { waitUpTo } from '../src/wait-up-to.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('a wait for a promise', () => {
  it.each([
    ['resolved', async () => undefined],
    ['rejected', () => Promise.reject(new Error('x'))],
  ])('ends when it is %s, and leaves no timer', async (_how, run) => {
    expect(await waitUpTo(1_000, run())).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('ends after the time, and ignores a later rejection', async () => {
    const { promise, reject } = Promise.withResolvers<void>()
    let hasEnded = false
    const waiting = waitUpTo(1_000, promise).then(() => (hasEnded = true))
    await vi.advanceTimersByTimeAsync(999)
    expect(hasEnded).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await waiting
    reject(new Error('too late'))
  })
})
