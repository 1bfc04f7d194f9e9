import { beforeEach, expect, it } from 'vitest'
import { Turns } from '../src/turns.ts'

let nowMs: number
let scheduled: (() => void)[]
let turns: Turns
let slices: string[]

const makeTurns = (sharedMs?: number): Turns =>
  new Turns(
    (turn) => void scheduled.push(turn),
    () => nowMs,
    sharedMs,
  )

beforeEach(() => {
  nowMs = 0
  scheduled = []
  slices = []
  turns = makeTurns()
})

/** Runs one turn of the event loop. */
async function runTurn(): Promise<void> {
  for (const call of scheduled.splice(0)) call()
  await new Promise(setImmediate)
}

/** Work of two slices. */
async function work(name: string, group: string, sliceMs = 5): Promise<void> {
  for (let slice = 1; slice <= 2; slice += 1) {
    await turns.next(group)
    slices.push(`${name}${slice}`)
    nowMs += sliceMs
  }
}

/** Runs all works, one slice in a turn. */
async function runAll(works: readonly Promise<void>[]): Promise<void> {
  const all = Promise.all(works)
  for (let turn = 1; turn <= works.length * 2; turn += 1) {
    await runTurn()
    expect(slices).toHaveLength(turn)
  }
  await all
  expect(scheduled).toEqual([])
}

it('works that begin in one turn have five milliseconds together, and others wait for a turn', async () => {
  expect(turns.begin('a')).toBeUndefined()
  nowMs += 4.9
  expect(turns.begin('b')).toBeUndefined()
  nowMs += 0.1
  const pauses = [turns.begin('a'), turns.begin('c')]
  expect(pauses).toEqual([expect.any(Promise), expect.any(Promise)])
  await runTurn()
  for (const pause of pauses) await pause
  expect(turns.begin('d')).toBeUndefined()
})

it('works of a group take one turn after the other, in their order', async () => {
  await runAll(['a', 'b', 'c'].map((name) => work(name, 'group')))
  expect(slices).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'c2'])
})

it('groups take turns: much work of one does not delay the others', async () => {
  await runAll(['a', 'b', 'c', 'd'].map((name) => work(name, name === 'd' ? 'small' : 'large')))
  expect(slices).toEqual(['a1', 'd1', 'b1', 'd2', 'c1', 'a2', 'b2', 'c2'])
})

it('short works share a turn', async () => {
  const all = Promise.all(['a', 'b', 'c', 'd'].map((name) => work(name, 'group', 2)))
  await runTurn()
  expect(slices).toEqual(['a1', 'b1', 'c1'])
  await runTurn()
  expect(slices.slice(3)).toEqual(['d1', 'a2', 'b2'])
  await runTurn()
  await all
})

it('works that continue after their turns do not share them', async () => {
  turns = makeTurns(0)
  await runAll(['a', 'b'].map((name) => work(name, 'group', 0)))
  expect(slices).toEqual(['a1', 'b1', 'a2', 'b2'])
})

it('a work that begins does not overtake those that wait', async () => {
  const first = work('a', 'group')
  expect(turns.begin('other')).toBeInstanceOf(Promise)
  await runTurn()
  await runTurn()
  await first
})
