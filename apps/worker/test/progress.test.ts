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

/** Lets time pass. @returns whether the worker is alive all the time, and does not exit */
async function isAliveFor(ms = LONG_MS): Promise<boolean> {
  let isAlive = worker.progress.isAlive
  for (let passedMs = 0; passedMs < ms; passedMs += 30_000) {
    await worker.clock.pass(30_000)
    isAlive &&= worker.progress.isAlive
  }
  return isAlive && ended === undefined
}

const owned = (): unknown => worker.owners.set('a', 'B')
const reject = (message: string) => () => Promise.reject(new Error(message))

describe('A27: a worker exits', () => {
  it.each<[what: string, goWrong: () => unknown]>([
    ['its claim never settles although Redis replies', () => (worker.redis.claim = () => stuck)],
    ['its finish never settles although Redis replies', () => (worker.redis.finish = () => stuck)],
    ['its fetch never settles although Redis answers', () => (worker.redis.fetch = () => stuck)],
    ['its insert never settles', () => (worker.insert = () => stuck)],
    ['the read of a record never settles', () => [owned(), (worker.redis.read = () => stuck)]],
    ['permits of insert slots are lost', () => [0, 1].map(() => void worker.insertSlots.run(() => stuck))],
    ['a held chunk is in no batch', () => (worker.keepsChunks = true)],
  ])('if %s', async (_what, goWrong) => {
    await worker.clock.pass(60_000)
    goWrong()
    worker.add('a')
    await worker.clock.pass(stalledMs - checkIntervalMs)
    expect([worker.progress.isAlive, ended]).toEqual([true, undefined])
    await worker.clock.pass(3 * checkIntervalMs)
    expect(worker.progress.isAlive).toBe(false)
    expect(ended).toBeInstanceOf(NoProgressError)
  })

  it('if one of its shards does not fetch, while another one works', async () => {
    start(2)
    await worker.clock.pass(1_000)
    worker.redis.fetch = (shard) => (shard === 0 ? stuck : Promise.resolve())
    for (let passedMs = 0; passedMs < stalledMs + suspectMs; passedMs += 10_000) {
      worker.add(`at ${passedMs}`, 1)
      await worker.clock.pass(10_000)
    }
    expect(String(ended)).toMatch(
      /NoProgressError: .* holds [01] chunks, \d+ s since .* 6\d\d s in shard 0, 0 s in shard 1 ago/,
    )
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
  it.each<[when: string, prepare: () => unknown]>([
    ['ClickHouse rejects all inserts', () => (worker.insert = () => Promise.reject(insertErrors.transient))],
    ['Redis does not reply', () => (worker.redis.finish = worker.redis.ask = () => stuck)],
    ['Redis rejects each claim', () => (worker.redis.claim = reject('OOM'))],
    ['Redis rejects each finish', () => (worker.redis.finish = reject('OOM'))],
    ['Redis rejects each fetch', () => (worker.redis.fetch = reject('OOM'))],
    ['another worker repairs the batch of its chunks', () => [owned(), (worker.isLeased = true)]],
    ['all waiting chunks are of another version', () => (worker.canRead = false)],
  ])('while %s', async (_when, prepare) => {
    prepare()
    worker.add('a')
    expect(await isAliveFor()).toBe(true)
  })

  it.each([
    ['every insert takes nearly its timeout', workerLimits.insertTimeoutMs - 1, undefined, 40],
    ['ClickHouse is silent at each attempt', workerLimits.insertTimeoutMs, insertErrors.transient, 0],
  ])('while %s, and chunks wait in several shards', async (_what, silentMs, error, stored) => {
    start(4)
    worker.insert = async () => {
      await worker.clock.sleep(silentMs)
      if (error !== undefined) throw error
    }
    for (let chunk = 0; chunk < 40; chunk += 1) worker.add(`chunk ${chunk}`, chunk % 4)
    expect(await isAliveFor()).toBe(true)
    expect(worker.stored).toBe(stored)
  })

  it('while Redis does not reply, and works afterwards, even without chunks', async () => {
    const back = Promise.withResolvers<void>()
    for (const request of ['claim', 'finish', 'fetch', 'ask'] as const)
      worker.redis[request] = () => back.promise
    worker.add('a')
    expect(await isAliveFor()).toBe(true)
    back.resolve()
    expect(await isAliveFor()).toBe(true)
    expect(worker.stored).toBe(1)
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
