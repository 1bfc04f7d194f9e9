import { describe, expect, it } from 'vitest'
import { within } from '../src/within.ts'
import { TestClock } from './support/test-clock.ts'

describe('within', () => {
  it('settles like the promise if it settles in time', async () => {
    const clock = new TestClock()
    const inTime = clock.sleep(99).then(() => 'value')
    expect(await clock.settle(within(100, inTime, clock))).toBe('value')
    const failure = new Error('connection lost')
    await expect(clock.settle(within(100, Promise.reject(failure), clock))).rejects.toBe(failure)
    expect(clock.nowMs()).toBe(99)
  })

  it('is late after the time, whatever the promise does later', async () => {
    const clock = new TestClock()
    const slow = Promise.withResolvers<string>()
    expect(await clock.settle(within(100, slow.promise, clock))).toBe('late')
    expect(clock.nowMs()).toBe(100)
    // An unhandled rejection would fail the test.
    slow.reject(new Error('connection lost'))
    await clock.pass(0)
  })

  it('leaves no timer', async () => {
    const signals: (AbortSignal | undefined)[] = []
    const sleep = (_ms: number, signal?: AbortSignal): Promise<void> => {
      signals.push(signal)
      return new Promise(() => undefined)
    }
    await within(100, Promise.resolve('value'), { sleep })
    await within(100, Promise.reject(new Error('no')), { sleep }).catch(() => undefined)
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, true])
  })
})
