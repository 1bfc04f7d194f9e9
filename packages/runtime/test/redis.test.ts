import { describe, expect, it } from 'vitest'
import { oncePerInterval } from '../src/redis.ts'

describe('oncePerInterval', () => {
  it('is due once per name and interval, however often it is called', () => {
    let nowMs = 0
    const isDue = oncePerInterval(1_000, () => nowMs)
    const times: string[] = []
    for (; nowMs < 2_500; nowMs += 10) {
      for (const name of ['a', 'b']) if (isDue(name)) times.push(`${name} ${nowMs}`)
    }
    expect(times).toEqual(['a 0', 'b 0', 'a 1000', 'b 1000', 'a 2000', 'b 2000'])
  })

  it('is due at once for a new name', () => {
    const isDue = oncePerInterval(1_000, () => 0)
    expect([isDue('a'), isDue('b'), isDue('a')]).toEqual([true, true, false])
  })
})
