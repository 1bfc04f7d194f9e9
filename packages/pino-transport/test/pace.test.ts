import { expect, it, beforeEach, vi } from 'vitest'
import { Backlog, RoomWait } from '../src/pace.ts'
import { type WhenFull } from '../src/options.ts'

const large = 'x'.repeat(4 * 1024 * 1024)

it('is too large after 16 MiB in large pieces, until a small piece', () => {
  const backlog = new Backlog()
  for (let i = 0; i < 4; i += 1) expect(backlog.isTooLarge(large, false)).toBe(false)
  expect(backlog.isTooLarge(large, false)).toBe(true)
  expect(backlog.isTooLarge(large, false)).toBe(true)
  expect(backlog.isTooLarge('x', false)).toBe(false)
  expect(backlog.isTooLarge(large, false)).toBe(false)
})

it('is not too large if the thread catches up in between', () => {
  const backlog = new Backlog()
  for (let i = 0; i < 50; i += 1) expect(backlog.isTooLarge(i % 4 === 3 ? 'x' : large, false)).toBe(false)
})

it('is too large with any large piece while the API accepts nothing', () => {
  const backlog = new Backlog()
  expect(backlog.isTooLarge(large, true)).toBe(true)
  expect(backlog.isTooLarge('x', true)).toBe(false)
})

/** A queue whose room the test controls. */
class Queue {
  calls = 0
  #resolves: (() => void)[] = []
  hasRoom = true
  waitForRoom(): Promise<void> {
    this.calls += 1
    if (this.hasRoom) return Promise.resolve()
    return new Promise((resolve) => {
      this.#resolves.push(resolve)
    })
  }
  makeRoom(): void {
    this.hasRoom = true
    for (const resolve of this.#resolves.splice(0)) resolve()
  }
}

const BUFFER = 4 * 1024 * 1024
/** Lets the continuations of promises run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Waits without room while the clock advances. @returns whether the wait has ended */
async function waitFor(room: RoomWait, clock: { ms: number }, ms: number): Promise<boolean> {
  let isOver = false
  void room.wait(1).then(() => (isOver = true))
  await settle()
  clock.ms += ms
  vi.advanceTimersByTime(ms)
  await settle()
  return isOver
}

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))

function setup(whenFull: WhenFull): { queue: Queue; clock: { ms: number }; room: RoomWait } {
  const queue = new Queue()
  const clock = { ms: 0 }
  return { queue, clock, room: new RoomWait(queue, whenFull, () => clock.ms) }
}

it.each(['drop', 'wait'] as const)('with `%s`, waits until there is room', async (whenFull) => {
  const { queue, clock, room } = setup(whenFull)
  queue.hasRoom = false
  room.begin(BUFFER)
  let isOver = false
  const waiting = room.wait(1).then(() => (isOver = true))
  await settle()
  expect(isOver).toBe(false)
  clock.ms = 100
  queue.makeRoom()
  await waiting
  expect(room.isStalled).toBe(false)
})

it('with `drop`, does not wait again after its budget, until there is room', async () => {
  const { queue, clock, room } = setup('drop')
  queue.hasRoom = false
  room.begin(BUFFER)
  expect(await waitFor(room, clock, 999)).toBe(false)
  clock.ms += 1
  vi.advanceTimersByTime(1)
  await settle()
  expect(room.isStalled).toBe(true)
  room.begin(BUFFER)
  await room.wait(1)
  expect(queue.calls).toBe(1)
  queue.makeRoom()
  await settle()
  expect(room.isStalled).toBe(false)
  await room.wait(1)
  expect(queue.calls).toBe(2)
})

it.each([1, 3, 64])('with `wait`, reads 4 MiB within 5 s without room, in %d pieces', async (pieces) => {
  const { queue, clock, room } = setup('wait')
  queue.hasRoom = false
  const stepMs = 10
  for (let i = 0; i < pieces; i += 1) {
    room.begin(BUFFER / pieces)
    const wait = { isOver: false }
    void room.wait(1).then(() => (wait.isOver = true))
    while (!wait.isOver && clock.ms < 20_000) {
      clock.ms += stepMs
      vi.advanceTimersByTime(stepMs)
      await settle()
    }
    // The work of the thread is part of the budget.
    clock.ms += stepMs
    room.end()
  }
  expect(clock.ms).toBeGreaterThanOrEqual(4_000)
  expect(clock.ms).toBeLessThanOrEqual(5_000 + 2 * stepMs * pieces)
  expect(room.isStalled).toBe(false)
})

it('with `wait`, asks the client once for room, however many waits end without it', async () => {
  const { queue, clock, room } = setup('wait')
  queue.hasRoom = false
  room.begin(0)
  for (let i = 0; i < 10; i += 1) expect(await waitFor(room, clock, 1_000)).toBe(true)
  expect(queue.calls).toBe(1)
  queue.makeRoom()
  await settle()
  await room.wait(1)
  expect(queue.calls).toBe(2)
})

it('with `drop`, does not stall if there is room at the moment when the budget ends', async () => {
  const { queue, room } = setup('drop')
  queue.hasRoom = false
  room.begin(0)
  const waiting = room.wait(1)
  queue.makeRoom()
  vi.advanceTimersByTime(1_000)
  await waiting
  expect(room.isStalled).toBe(false)
})

it('does not stall without a budget if there is room', async () => {
  const { queue, room } = setup('drop')
  room.begin(0)
  await room.wait(1)
  await room.wait(1)
  expect(queue.calls).toBe(2)
})

it('saves up only a little', async () => {
  const { queue, clock, room } = setup('drop')
  for (let i = 0; i < 100; i += 1) {
    room.begin(BUFFER)
    room.end()
  }
  room.begin(BUFFER)
  queue.hasRoom = false
  expect(await waitFor(room, clock, 1_000)).toBe(true)
  expect(room.isStalled).toBe(true)
})
