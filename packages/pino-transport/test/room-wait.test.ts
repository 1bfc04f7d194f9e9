import { expect, it } from 'vitest'
import { RoomWait } from '../src/room-wait.ts'

/** A queue whose room the test controls. */
class Queue {
  calls = 0
  #resolve: (() => void) | undefined
  hasRoom = true
  waitForRoom(): Promise<void> {
    this.calls += 1
    if (this.hasRoom) return Promise.resolve()
    return new Promise((resolve) => {
      this.#resolve = resolve
    })
  }
  makeRoom(): void {
    this.hasRoom = true
    this.#resolve?.()
  }
}

it('waits until there is room', async () => {
  const queue = new Queue()
  queue.hasRoom = false
  const room = new RoomWait(queue, 'wait')
  room.begin()
  let isOver = false
  const waiting = room.wait().then(() => (isOver = true))
  await Promise.resolve()
  expect(isOver).toBe(false)
  queue.makeRoom()
  await waiting
  expect(isOver).toBe(true)
})

it('gives up at the end of its budget, and does not wait again before there is room', async () => {
  const queue = new Queue()
  queue.hasRoom = false
  const clock = { ms: 0 }
  const room = new RoomWait(queue, 'drop', () => clock.ms)
  room.begin()
  clock.ms = 500
  await room.wait()
  room.begin()
  await room.wait()
  expect(queue.calls).toBe(1)
  queue.makeRoom()
  await Promise.resolve()
  await Promise.resolve()
  await room.wait()
  expect(queue.calls).toBe(2)
})

it('does not stall at the end of its budget if there is room', async () => {
  const queue = new Queue()
  const clock = { ms: 0 }
  const room = new RoomWait(queue, 'drop', () => clock.ms)
  room.begin()
  clock.ms = 10_000
  await room.wait()
  await room.wait()
  expect(queue.calls).toBe(2)
})

it('with `wait`, each piece has a budget of its own', async () => {
  const queue = new Queue()
  queue.hasRoom = false
  const clock = { ms: 0 }
  const room = new RoomWait(queue, 'wait', () => clock.ms)
  room.begin()
  clock.ms = 8_000
  await room.wait()
  room.begin()
  clock.ms = 16_000
  await room.wait()
  expect(queue.calls).toBe(2)
})
