import { beforeEach, describe, expect, it } from 'vitest'
import { Turns } from '../src/turns.ts'

let nowMs: number
let scheduled: (() => void)[]
let turns: Turns

beforeEach(() => {
  nowMs = 0
  scheduled = []
  turns = new Turns(
    (turn) => void scheduled.push(turn),
    () => nowMs,
  )
})

/** Runs one turn of the event loop. */
async function runTurn(): Promise<void> {
  for (const call of scheduled.splice(0)) call()
  await new Promise(setImmediate)
}

describe('long work', () => {
  it('continues without a pause for five milliseconds, and then waits for a turn', async () => {
    const pace = turns.begin('a')
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

  it('that begins in one turn has five milliseconds together', async () => {
    const first = turns.begin('a')
    nowMs += 4
    const second = turns.begin('b')
    expect(second.pause()).toBeUndefined()
    nowMs += 1
    expect([first, second, turns.begin('c')].map((pace) => pace.pause())).toEqual([
      expect.any(Promise),
      expect.any(Promise),
      expect.any(Promise),
    ])
    await runTurn()
    expect(turns.begin('d').pause()).toBeUndefined()
  })

  describe('of several requests', () => {
    let slices: string[]
    let sliceMs: number

    beforeEach(() => {
      slices = []
      sliceMs = 5
    })

    /** Work of two slices. */
    async function work(name: string, group: string): Promise<void> {
      const pace = turns.begin(group)
      for (let slice = 1; slice <= 2; slice += 1) {
        await pace.nextSlice()
        slices.push(`${name}${slice}`)
        nowMs += sliceMs
      }
    }

    async function runAll(works: readonly Promise<void>[]): Promise<void> {
      const all = Promise.all(works)
      for (let turn = 1; turn <= works.length * 2; turn += 1) {
        await runTurn()
        expect(slices).toHaveLength(turn)
      }
      await all
      expect(scheduled).toEqual([])
    }

    it('takes one turn after the other, in their order', async () => {
      await runAll(['a', 'b', 'c'].map((name) => work(name, 'group')))
      expect(slices).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'c2'])
    })

    it('takes turns by their groups: much work of one does not delay the others', async () => {
      await runAll(['a', 'b', 'c', 'd'].map((name) => work(name, name === 'd' ? 'small' : 'large')))
      expect(slices).toEqual(['a1', 'd1', 'b1', 'd2', 'c1', 'a2', 'b2', 'c2'])
    })

    it('shares a turn if it is short', async () => {
      sliceMs = 2
      const all = Promise.all(['a', 'b', 'c', 'd'].map((name) => work(name, 'group')))
      await runTurn()
      expect(slices).toEqual(['a1', 'b1', 'c1'])
      await runTurn()
      expect(slices.slice(3)).toEqual(['d1', 'a2', 'b2'])
      await runTurn()
      await all
    })

    it('has a turn for each if it continues after it', async () => {
      turns = new Turns(
        (turn) => void scheduled.push(turn),
        () => nowMs,
        0,
      )
      sliceMs = 0
      await runAll(['a', 'b'].map((name) => work(name, 'group')))
      expect(slices).toEqual(['a1', 'b1', 'a2', 'b2'])
    })

    it('is not overtaken by work that begins', async () => {
      const first = work('a', 'group')
      expect(turns.begin('other').pause()).toBeInstanceOf(Promise)
      await runTurn()
      await runTurn()
      await first
    })
  })
})
