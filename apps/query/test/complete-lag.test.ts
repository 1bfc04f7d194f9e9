import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { CompleteLag } from '../src/complete-lag.ts'

it('measures how far what is complete is behind at each answer, and says so if it is not known', async () => {
  let answer: Promise<number | null>
  const lag = new CompleteLag({ until: () => answer }, () => 61_500)
  const measure = async (next: Promise<number | null>, seconds: number): Promise<void> => {
    answer = next
    lag.runNow()
    await setImmediate()
    expect(lag.seconds).toBe(seconds)
  }
  try {
    expect(lag.seconds).toBeUndefined()
    await measure(Promise.resolve(1_000), 60.5)
    await measure(Promise.resolve(null), Infinity)
    await measure(Promise.resolve(61_600), 0)
    await measure(Promise.reject(new Error('Redis does not reply')), Infinity)
  } finally {
    lag.stop()
  }
})
