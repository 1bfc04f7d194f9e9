import { expect, it, beforeEach, vi } from 'vitest'
import { Pace } from '../src/pace.ts'
import { type WhenFull } from '../src/options.ts'

/** A queue whose room the test controls. */
class Queue {
  calls = 0
  hasRoom = true
  readonly #room = Promise.withResolvers<void>()
  async waitForRoom(): Promise<void> {
    this.calls += 1
    if (!this.hasRoom) await this.#room.promise
  }
  makeRoom(): void {
    this.hasRoom = true
    this.#room.resolve()
  }
}

const BUFFER = 4 * 1024 * 1024
/** A large piece is then too much. */
const isStalled = (pace: Pace): boolean => pace.isBehind(BUFFER)
/** Lets the continuations of promises run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Waits without room while the clock advances. @returns whether the wait has ended */
async function waitFor(pace: Pace, clock: { ms: number }, ms: number): Promise<boolean> {
  let isOver = false
  void pace.wait(1).then(() => (isOver = true))
  await settle()
  clock.ms += ms
  vi.advanceTimersByTime(ms)
  await settle()
  return isOver
}

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))

function setup(whenFull: WhenFull): { queue: Queue; clock: { ms: number }; pace: Pace } {
  const queue = new Queue()
  const clock = { ms: 0 }
  return { queue, clock, pace: new Pace(queue, whenFull, () => clock.ms) }
}

it('with `drop`, is behind after 16 MiB in large pieces, until a small piece', () => {
  const { pace } = setup('drop')
  const large = (count: number): number[] => Array.from({ length: count }, () => BUFFER)
  const pieces = [...large(6), 1, ...large(4), 1, BUFFER]
  const behind = pieces.flatMap((characters, i) => (pace.isBehind(characters) ? i : []))
  expect(behind).toEqual([4, 5])
})

it('with `wait`, is never behind', () => {
  const { pace } = setup('wait')
  for (let i = 0; i < 10; i += 1) expect(pace.isBehind(BUFFER)).toBe(false)
})

it('with `drop`, does not wait again after its budget, until there is room', async () => {
  const { queue, clock, pace } = setup('drop')
  queue.hasRoom = false
  pace.begin(BUFFER)
  expect(await waitFor(pace, clock, 999)).toBe(false)
  clock.ms += 1
  vi.advanceTimersByTime(1)
  await settle()
  expect(isStalled(pace)).toBe(true)
  pace.begin(BUFFER)
  await pace.wait(1)
  expect(queue.calls).toBe(1)
  queue.makeRoom()
  await settle()
  expect(isStalled(pace)).toBe(false)
  await pace.wait(1)
  expect(queue.calls).toBe(2)
})

it.each([1, 3, 64])('with `wait`, reads 4 MiB within 5 s without room, in %d pieces', async (pieces) => {
  const { queue, clock, pace } = setup('wait')
  queue.hasRoom = false
  const stepMs = 10
  for (let i = 0; i < pieces; i += 1) {
    pace.begin(BUFFER / pieces)
    const wait = { isOver: false }
    void pace.wait(1).then(() => (wait.isOver = true))
    while (!wait.isOver && clock.ms < 20_000) {
      clock.ms += stepMs
      vi.advanceTimersByTime(stepMs)
      await settle()
    }
    // The work of the thread is part of the budget.
    clock.ms += stepMs
    pace.end()
  }
  expect(clock.ms).toBeGreaterThanOrEqual(4_000)
  expect(clock.ms).toBeLessThanOrEqual(5_000 + 2 * stepMs * pieces)
  expect(isStalled(pace)).toBe(false)
})

it('with `wait`, asks the client once for room, however many waits end without it', async () => {
  const { queue, clock, pace } = setup('wait')
  queue.hasRoom = false
  pace.begin(0)
  for (let i = 0; i < 10; i += 1) expect(await waitFor(pace, clock, 1_000)).toBe(true)
  expect(queue.calls).toBe(1)
  queue.makeRoom()
  await settle()
  await pace.wait(1)
  expect(queue.calls).toBe(2)
})

it('with `drop`, does not stall if there is room at the moment when the budget ends', async () => {
  const { queue, pace } = setup('drop')
  queue.hasRoom = false
  pace.begin(0)
  const waiting = pace.wait(1)
  queue.makeRoom()
  vi.advanceTimersByTime(1_000)
  await waiting
  expect(isStalled(pace)).toBe(false)
})

it('saves up only a little', async () => {
  const { queue, clock, pace } = setup('drop')
  for (let i = 0; i < 100; i += 1) {
    pace.begin(BUFFER)
    pace.end()
  }
  pace.begin(BUFFER)
  queue.hasRoom = false
  expect(await waitFor(pace, clock, 1_000)).toBe(true)
  expect(isStalled(pace)).toBe(true)
})
