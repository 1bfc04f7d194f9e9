import { beforeEach, expect, it } from 'vitest'
import { observeQueue } from '../src/observed-queue.ts'
import { ShardProgress } from '../src/shard-progress.ts'
import type { ShardQueue } from '../src/shard-queue.ts'
import { TestClock } from './support/test-clock.ts'

const stuck = new Promise<never>(() => undefined)

let clock: TestClock
let progress: ShardProgress
let queue: ShardQueue

beforeEach(() => {
  clock = new TestClock()
  progress = new ShardProgress(clock, () => 1)
  queue = observeQueue(
    {
      ledger: {
        claim: () => stuck,
        read: () => Promise.resolve(undefined),
        recordSplit: () => Promise.resolve(true),
        beginRepair: () => Promise.resolve(undefined),
        renewLease: () => Promise.resolve(),
        endLease: () => Promise.resolve(),
      },
      consumer: {
        fetch: () => Promise.reject(new Error('OOM')),
        load: () => Promise.resolve([]),
        finish: () => Promise.resolve(true),
        requeue: () => stuck,
        fail: () => stuck,
        forget: () => undefined,
        heldChunks: 7,
        close: () => Promise.resolve(),
      },
    },
    progress,
  )
})

it('tells the progress of the shard which requests have not ended', () => {
  void queue.ledger.claim('B', ['a'])
  void queue.consumer.requeue(['a'], 'front')
  void queue.consumer.fail('a', new Error('no'))
  expect(progress.snapshot.steps).toEqual({ claim: 1, requeue: 1, fail: 1 })
})

it('counts a recorded split as progress, since an insert by parts has many', async () => {
  await clock.pass(5_000)
  expect(await queue.ledger.recordSplit('B', 'all', 1)).toBe(true)
  expect(progress.silentMs).toBe(0)
})

it('counts a rejected fetch as an end, and not as progress', async () => {
  await clock.pass(5_000)
  await expect(queue.consumer.fetch(1, { isBusy: false })).rejects.toThrow('OOM')
  expect(progress.blockedMs).toBe(0)
  expect(progress.silentMs).toBe(5_000)
})

it('changes no answer', async () => {
  expect(await queue.ledger.read('B')).toBeUndefined()
  expect(await queue.consumer.finish({ id: 'B', members: [] }, 0)).toBe(true)
  expect(await queue.consumer.load([])).toEqual([])
  expect(queue.consumer.heldChunks).toBe(7)
})
