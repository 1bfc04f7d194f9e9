import { describe, expect, it } from 'vitest'
import { Turns } from '../src/turns.ts'

let nowMs = 0
const scheduled: (() => void)[] = []
const turns = new Turns(
  (turn) => void scheduled.push(turn),
  () => nowMs,
)

/** Runs one turn of the event loop. */
async function runTurn(): Promise<void> {
  expect(scheduled).toHaveLength(1)
  scheduled.shift()?.()
  await Promise.resolve()
  await Promise.resolve()
}

describe('long work', () => {
  it('continues without a pause for five milliseconds, and then waits for a turn', async () => {
    const pace = turns.begin()
    nowMs += 4.9
    expect(pace.pause()).toBeUndefined()
    nowMs += 0.1
    const pause = pace.pause()
    expect(pause).toBeInstanceOf(Promise)
    await runTurn()
    await pause
    expect(pace.pause()).toBeUndefined()
    expect(scheduled).toEqual([])
  })

  it('of several requests takes one turn after the other, in their order', async () => {
    const slices: string[] = []
    const work = async (name: string): Promise<void> => {
      const pace = turns.begin()
      for (let slice = 1; slice <= 2; slice += 1) {
        await pace.nextSlice()
        slices.push(`${name}${slice}`)
      }
    }
    const all = Promise.all(['a', 'b', 'c'].map(work))
    for (let turn = 1; turn <= 6; turn += 1) {
      await runTurn()
      expect(slices).toHaveLength(turn)
    }
    await all
    expect(slices).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'c2'])
  })
})
