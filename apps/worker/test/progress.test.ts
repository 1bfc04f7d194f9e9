import { beforeEach, describe, expect, it } from 'vitest'
import { workerLimits } from '../src/limits.ts'
import { NoProgressError, progressLimits } from '../src/progress.ts'
import { insertErrors } from './support/chunks.ts'
import { WorkerFixture } from './support/worker-fixture.ts'

const { stalledMs, suspectMs, checkIntervalMs } = progressLimits
/** A promise that is never settled by anything. */
const stuck = new Promise<never>(() => undefined)
const LONG_MS = 4 * stalledMs

let worker: WorkerFixture
let watching: AbortController
/** How the watch has ended. */
let ended: unknown

function start(shards = 1): void {
  worker = new WorkerFixture(shards)
  watching = new AbortController()
  ended = undefined
  worker.progress.watch(watching.signal).then(
    () => (ended = 'stopped'),
    (error: unknown) => (ended = error),
  )
}

beforeEach(() => start())

/** Lets the worker work, makes something go wrong, and lets time pass until the worker must exit. @returns how the watch has ended */
async function endAfter(goWrong: () => void): Promise<unknown> {
  await worker.clock.pass(60_000)
  goWrong()
  worker.add('a')
  await worker.clock.pass(stalledMs - checkIntervalMs)
  expect([worker.progress.isAlive, ended]).toEqual([true, undefined])
  await worker.clock.pass(3 * checkIntervalMs)
  expect(worker.progress.isAlive).toBe(false)
  return ended
}

/** Lets time pass. @returns whether the worker is alive all the time, and does not exit */
async function isAliveFor(ms = LONG_MS): Promise<boolean> {
  let isAlive = worker.progress.isAlive
  for (let passedMs = 0; passedMs < ms; passedMs += 30_000) {
    await worker.clock.pass(30_000)
    isAlive &&= worker.progress.isAlive
  }
  return isAlive && ended === undefined
}

describe('A27: a worker exits', () => {
  it.each(['claim', 'finish', 'fetch'] as const)(
    'if its %s never settles although Redis answers',
    async (request) => {
      const end = await endAfter(() => (worker.redis[request] = () => stuck))
      expect(end).toBeInstanceOf(NoProgressError)
    },
  )

  it('if its insert never settles', async () => {
    expect(String(await endAfter(() => (worker.insert = () => stuck)))).toContain('1 chunks in hand, 60')
  })

  it('if the read of the record of a batch never settles', async () => {
    const end = await endAfter(() => {
      worker.owners.set('a', 'B')
      worker.redis.read = () => stuck
    })
    expect(end).toBeInstanceOf(NoProgressError)
  })

  it('if permits of insert slots are lost', async () => {
    const end = await endAfter(() => {
      for (let slot = 0; slot < 2; slot += 1) void worker.insertSlots.run(() => stuck)
    })
    expect(end).toBeInstanceOf(NoProgressError)
  })

  it('if a chunk stays in hand and is in no batch', async () => {
    expect(await endAfter(() => (worker.keepsChunks = true))).toBeInstanceOf(NoProgressError)
    expect(worker.stored).toBe(1)
  })

  it('if one of its shards does not fetch, while another one works', async () => {
    start(2)
    await worker.clock.pass(1_000)
    worker.redis.fetch = (shard) => (shard === 0 ? stuck : Promise.resolve())
    await worker.feed(stalledMs + suspectMs, 1)
    expect(ended).toBeInstanceOf(NoProgressError)
    expect(String(ended)).toMatch(/6\d\d s in shard 0, 0 s in shard 1/)
  })

  it('if it has stopped to attempt inserts after they had failed', async () => {
    let attempts = 0
    worker.insert = () => ((attempts += 1) > 20 ? stuck : Promise.reject(insertErrors.transient))
    worker.add('a')
    await worker.clock.pass(stalledMs + 300_000)
    expect(ended).toBeInstanceOf(NoProgressError)
  })
})

describe('A27: a worker does not exit', () => {
  it('while nothing is waiting', async () => {
    expect(await isAliveFor()).toBe(true)
  })

  it('while it works', async () => {
    await worker.feed(LONG_MS / 4)
    expect(worker.stored).toBe(LONG_MS / 4 / 10_000)
    expect(await isAliveFor(0)).toBe(true)
  })

  it('while every insert takes nearly its timeout, and shards wait for slots', async () => {
    start(4)
    worker.insert = () => worker.clock.sleep(workerLimits.insertTimeoutMs - 1)
    for (let batch = 0; batch < 40; batch += 1) worker.add(`chunk ${batch}`, batch % 4)
    expect(await isAliveFor()).toBe(true)
    expect(worker.stored).toBe(40)
  })

  it('while ClickHouse rejects all inserts, and stores everything afterwards', async () => {
    worker.insert = () => Promise.reject(insertErrors.transient)
    for (const id of ['a', 'b', 'c']) worker.add(id)
    expect(await isAliveFor()).toBe(true)
    worker.insert = () => Promise.resolve()
    expect(await isAliveFor(60_000)).toBe(true)
    expect(worker.stored).toBe(3)
  })

  it.each([13_000, workerLimits.insertTimeoutMs])(
    'while ClickHouse is silent for %d ms at each attempt, and chunks wait in several shards',
    async (silentMs) => {
      start(4)
      worker.insert = async () => {
        await worker.clock.sleep(silentMs)
        throw insertErrors.transient
      }
      for (let chunk = 0; chunk < 12; chunk += 1) worker.add(`chunk ${chunk}`, chunk % 4)
      expect(await isAliveFor()).toBe(true)
    },
  )

  it('while Redis does not answer, and works afterwards', async () => {
    const back = Promise.withResolvers<void>()
    for (const request of ['claim', 'finish', 'fetch', 'ask'] as const)
      worker.redis[request] = () => back.promise
    worker.add('a')
    expect(await isAliveFor()).toBe(true)
    back.resolve()
    expect(await isAliveFor(60_000)).toBe(true)
    expect(worker.stored).toBe(1)
  })

  it('while Redis does not answer after a batch was stored', async () => {
    const back = Promise.withResolvers<void>()
    worker.redis.finish = worker.redis.ask = () => back.promise
    worker.add('a')
    expect(await isAliveFor()).toBe(true)
  })

  it.each(['claim', 'finish', 'fetch'] as const)('while Redis rejects each %s', async (request) => {
    worker.redis[request] = () => Promise.reject(new Error('OOM'))
    worker.add('a')
    expect(await isAliveFor()).toBe(true)
  })

  it('while another worker repairs the batch of its chunks', async () => {
    worker.owners.set('a', 'B')
    worker.isLeased = true
    worker.add('a')
    expect(await isAliveFor()).toBe(true)
  })

  it('while all waiting chunks are of another version', async () => {
    worker.canRead = false
    worker.add('a')
    expect(await isAliveFor()).toBe(true)
  })

  it('after it was suspended', async () => {
    worker.insert = () => worker.clock.sleep(20_000)
    worker.add('a')
    await worker.clock.pass(1_000)
    worker.clock.jump(2 * stalledMs)
    await worker.clock.pass(checkIntervalMs)
    expect(await isAliveFor(60_000)).toBe(true)
    expect(worker.stored).toBe(1)
  })

  it('when the watch is stopped', async () => {
    worker.insert = () => stuck
    worker.add('a')
    watching.abort()
    await worker.clock.pass(LONG_MS)
    expect(ended).toBe('stopped')
  })
})
