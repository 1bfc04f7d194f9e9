import { createLogger } from '@sluice/runtime'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { KeyUsage, usageLimits } from '../../src/authentication/key-usage.ts'

let written: [string, number][][]
/** What the registry does with a write. */
let answer: () => Promise<void>
let usage: KeyUsage

beforeEach(() => {
  vi.useFakeTimers()
  written = []
  answer = () => Promise.resolve()
  const noteKeysUsed = (uses: ReadonlyMap<string, number>): Promise<void> => {
    written.push([...uses])
    return answer()
  }
  usage = new KeyUsage({ noteKeysUsed }, createLogger('test', 'silent'))
})

afterEach(async () => {
  answer = () => Promise.resolve()
  await usage.close()
  vi.useRealTimers()
})

describe('uses of keys', () => {
  it('are written down once a minute, the last of each key', async () => {
    usage.start()
    for (let i = 0; i < 1_000; i += 1) usage.note(i % 2 === 0 ? 'a' : 'b', i)
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

  it('are not written when there are none', async () => {
    usage.start()
    await vi.advanceTimersByTimeAsync(10 * usageLimits.writeIntervalMs)
    expect(written).toEqual([])
  })

  it('are written down at the end, and no more after it', async () => {
    usage.start()
    usage.note('a', 1)
    await usage.close()
    expect(written).toEqual([[['a', 1]]])
    usage.note('a', 2)
    await vi.advanceTimersByTimeAsync(usageLimits.writeIntervalMs)
    expect(written).toHaveLength(1)
  })

  it('that cannot be written wait for the next time, unless there was a later one', async () => {
    usage.note('a', 1)
    usage.note('b', 1)
    answer = () => {
      usage.note('b', 2)
      return Promise.reject(new Error('down'))
    }
    await usage.write()
    answer = () => Promise.resolve()
    await usage.write()
    expect(new Map(written[1])).toEqual(new Map(Object.entries({ a: 1, b: 2 })))
  })

  it('are written by one write at a time', async () => {
    const gate = Promise.withResolvers<void>()
    answer = () => gate.promise
    usage.note('a', 1)
    const first = usage.write()
    await vi.advanceTimersByTimeAsync(0)
    usage.note('a', 2)
    const second = usage.write()
    await vi.advanceTimersByTimeAsync(0)
    expect(written).toHaveLength(1)
    gate.resolve()
    await Promise.all([first, second])
    expect(written).toEqual([[['a', 1]], [['a', 2]]])
  })

  it('are remembered of so many keys, and of those to the end', async () => {
    for (let i = 0; i < usageLimits.keysMax + 10; i += 1) usage.note(String(i), 1)
    usage.note('0', 2)
    await usage.write()
    expect(written[0]).toHaveLength(usageLimits.keysMax)
    expect(written[0]?.[0]).toEqual(['0', 2])
  })
})
