import { expect, it } from 'vitest'
import { CompleteLag } from '../src/complete-lag.ts'

it('measures how far what is complete is behind at each answer, and says so if it is not known', async () => {
  let answer: Promise<number | null> = Promise.resolve(1_000)
  const lag = new CompleteLag({ until: () => answer }, () => 61_500)
  try {
    expect(lag.seconds).toBeUndefined()
    await lag.check()
    expect(lag.seconds).toBe(60.5)
    answer = Promise.resolve(null)
    await lag.check()
    expect(lag.seconds).toBe(Infinity)
    answer = Promise.resolve(61_600)
    await lag.check()
    expect(lag.seconds).toBe(0)
    answer = Promise.reject(new Error('Redis does not reply'))
    await lag.check()
    expect(lag.seconds).toBe(Infinity)
  } finally {
    lag.stop()
  }
})
