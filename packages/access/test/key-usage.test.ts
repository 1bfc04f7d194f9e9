import { createLogger } from '@sluice/runtime'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { KeyUsage, usageLimits } from '../src/key-usage.ts'

let written: [string, number][][]
/** The registry's reply to a write. */
let answer: () => Promise<void>
let usage: KeyUsage

beforeEach(() => {
  vi.useFakeTimers()
  written = []
  answer = () => Promise.resolve()
  const recordUses = (uses: ReadonlyMap<string, number>): Promise<void> => {
    written.push([...uses])
    return answer()
  }
  usage = new KeyUsage({ recordUses }, createLogger('test', 'silent'))
})

afterEach(async () => {
  answer = () => Promise.resolve()
  await usage.close()
  vi.useRealTimers()
})

describe('the last uses of keys', () => {
  it('are persisted at each interval, twice a minute, with the last use of each key', async () => {
    expect(2 * usageLimits.writeIntervalMs).toBeLessThan(60_000)
    usage.start()
    for (let i = 0; i < 1_000; i += 1) usage.recordUse(i % 2 === 0 ? 'a' : 'b', i)
    await vi.advanceTimersByTimeAsync(usageLimits.writeIntervalMs - 1)
    expect(written).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(written).toEqual([
      [
        ['a', 998],
        ['b', 999],
      ],
    ])
  })

  it('that cannot be persisted are kept for the next write, unless there is a later use', async () => {
    usage.recordUse('a', 1)
    usage.recordUse('b', 1)
    answer = () => {
      usage.recordUse('b', 2)
      return Promise.reject(new Error('down'))
    }
    await usage.write()
    answer = () => Promise.resolve()
    await usage.write()
    expect(new Map(written[1])).toEqual(new Map(Object.entries({ a: 1, b: 2 })))
  })

  it('are recorded for a limited number of keys, and for these up to the last use', async () => {
    for (let i = 0; i < usageLimits.keysMax + 10; i += 1) usage.recordUse(String(i), 1)
    usage.recordUse('0', 2)
    await usage.write()
    expect(written[0]).toHaveLength(usageLimits.keysMax)
    expect(written[0]?.[0]).toEqual(['0', 2])
  })

  it('are persisted at once when there are as many keys as can be recorded, and then further keys are recorded', async () => {
    for (let i = 0; i < usageLimits.keysMax; i += 1) usage.recordUse(String(i), 1)
    await vi.advanceTimersByTimeAsync(0)
    expect(written.map(({ length }) => length)).toEqual([usageLimits.keysMax])
    usage.recordUse('later', 1)
    await usage.write()
    expect(written[1]).toEqual([['later', 1]])
  })
})
