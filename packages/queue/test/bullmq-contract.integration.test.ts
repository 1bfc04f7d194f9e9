import { createLogger } from '@sluice/runtime'
import { isNotConnectionError, Job } from 'bullmq'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { addScript, addScriptArguments } from '../src/bullmq-internals.ts'
import { ChunkQueue, QueueFullError } from '../src/chunk-queue.ts'
import { chunkJobName, shardNames } from '../src/queue-names.ts'
import { BullmqFixture, type ChunkJob, STALLED_COUNT_MAX, TOKEN } from './support/bullmq-fixture.ts'
import { chunkOf, startTestRedis, WAIT_MS } from './support/consumer-fixture.ts'

// What Sluice relies on beyond the types of BullMQ. Every version of BullMQ that Sluice uses must pass these tests.

let server: Awaited<ReturnType<typeof startTestRedis>>
let bullmq: BullmqFixture

beforeAll(async () => {
  server = await startTestRedis()
})

afterAll(() => server.stop())

beforeEach(() => {
  bullmq = new BullmqFixture(server.url)
})

const inAMinute = (): number => Date.now() + 60_000

function openChunkQueue(): ChunkQueue {
  const chunkQueue = new ChunkQueue(bullmq.redis, bullmq.names, createLogger('test', 'silent'))
  onTestFinished(() => chunkQueue.close())
  return chunkQueue
}

/** Adds a chunk with one record by `ChunkQueue.addRecorded`. */
const addRecorded = (chunkQueue: ChunkQueue, id: string): Promise<unknown> =>
  chunkQueue.addRecorded(
    id,
    bullmq.chunk,
    { records: [{ name: bullmq.names.idempotencyKey(id), text: 'a-record' }], windowMs: 60_000 },
    performance.now() + WAIT_MS,
  )

/** Adds another chunk with the id of an existing job. @returns whether the job and the counts are the same as before */
async function isUnchangedByAdd(id: string): Promise<boolean> {
  const before = [await bullmq.storedJob(id), await bullmq.counts()]
  await bullmq.queue.add(chunkJobName, chunkOf('another row\n'), { jobId: id })
  return isDeepStrictEqual([await bullmq.storedJob(id), await bullmq.counts()], before)
}

describe('the keys', () => {
  it.each(shardNames('test', 2))('of jobs and of the wait list are those of $queuePrefix', (shard) => {
    const queue = bullmq.openQueue(shard)
    expect(queue.toKey('wait')).toBe(shard.waitKey)
    expect(queue.toKey('an-id')).toBe(shard.jobKey('an-id'))
  })

  it('include a job while it is waiting, active, failed or delayed, but not after its completion', async () => {
    const worker = bullmq.openWorker()
    await bullmq.add('first')
    expect(await bullmq.exists('first')).toBe(true)
    const first = await bullmq.fetch(worker)
    expect(await bullmq.exists('first')).toBe(true)
    await first?.moveToCompleted(undefined, TOKEN, false)
    expect(await bullmq.exists('first')).toBe(false)
    const second = await bullmq.addAndFetch('second', worker)
    await second.moveToFailed(new Error('a bug'), TOKEN, false)
    expect(await bullmq.exists('second')).toBe(true)
    const third = await bullmq.addAndFetch('third', worker)
    await third.moveToDelayed(inAMinute(), TOKEN)
    expect(await bullmq.exists('third')).toBe(true)
  })
})

it('the wait list has the ids of the waiting jobs, and the last one is the oldest', async () => {
  const { redis, names } = bullmq
  await bullmq.add('first', 'second', 'third')
  expect(await redis.llen(names.waitKey)).toBe(3)
  expect(await redis.lindex(names.waitKey, -1)).toBe('first')
  await bullmq.fetch(bullmq.openWorker())
  expect(await redis.llen(names.waitKey)).toBe(2)
  expect(await redis.lindex(names.waitKey, -1)).toBe('second')
})

describe('an add', () => {
  it('with the id of an existing job changes nothing, whatever the state of the job', async () => {
    const worker = bullmq.openWorker()
    await bullmq.add('first')
    expect(await isUnchangedByAdd('first')).toBe(true)
    const first = await bullmq.fetch(worker)
    expect(await isUnchangedByAdd('first')).toBe(true)
    await first?.moveToFailed(new Error('a bug'), TOKEN, false)
    expect(await isUnchangedByAdd('first')).toBe(true)
    const second = await bullmq.addAndFetch('second', worker)
    await second.moveToDelayed(inAMinute(), TOKEN)
    expect(await isUnchangedByAdd('second')).toBe(true)
    expect(await bullmq.counts()).toEqual({ failed: 1, delayed: 1 })
  })

  it('with the id of a completed job makes a new job', async () => {
    const job = await bullmq.addAndFetch('a-chunk', bullmq.openWorker())
    await job.moveToCompleted(undefined, TOKEN, false)
    await bullmq.add('a-chunk')
    expect(await bullmq.waiting()).toEqual(['a-chunk'])
  })

  it('by its script, alone or within that of ChunkQueue, makes the same job as Queue.add', async () => {
    const { queue, chunk, redis } = bullmq
    await bullmq.add('by-queue')
    const values = await addScriptArguments(queue, 'by-script', chunk)
    expect(addScript).toMatchObject({ keys: 9, args: 3 })
    expect(values).toHaveLength(addScript.keys + addScript.args)
    expect(await redis.eval(addScript.lua, addScript.keys, ...values)).toBe('by-script')
    const chunkQueue = openChunkQueue()
    await vi.waitUntil(() => chunkQueue.isConnected)
    await chunkQueue.add('by-chunk-queue', chunk, performance.now() + WAIT_MS)
    await addRecorded(chunkQueue, 'recorded')
    const byQueue = await bullmq.storedJob('by-queue')
    expect(byQueue).toMatchObject({ name: chunkJobName, data: JSON.stringify(chunk), hasItsId: true })
    expect(await bullmq.storedJob('by-script')).toEqual(byQueue)
    expect(await bullmq.storedJob('by-chunk-queue')).toEqual(byQueue)
    expect(await bullmq.storedJob('recorded')).toEqual(byQueue)
    expect(await bullmq.waiting()).toEqual(['recorded', 'by-chunk-queue', 'by-script', 'by-queue'])
  })

  it('increases the counter by one, and nothing decreases it', async () => {
    const { queue, chunk, redis } = bullmq
    const values = await addScriptArguments(queue, 'by-script', chunk)
    const counter = values[addScript.counterKey - 1]
    if (typeof counter !== 'string') throw new TypeError('the counter has no name')
    expect(await redis.get(counter)).toBe(null)
    await bullmq.add('by-queue')
    expect(await redis.get(counter)).toBe('1')
    await redis.eval(addScript.lua, addScript.keys, ...values)
    expect(await redis.get(counter)).toBe('2')
    const worker = bullmq.openWorker()
    for (const token of [TOKEN, 'token-2']) {
      const job = await bullmq.fetch(worker, token)
      await job?.moveToCompleted(undefined, token, false)
    }
    expect(await bullmq.counts()).toEqual({})
    expect(await redis.get(counter)).toBe('2')
  })

  it('by its script makes a job that is fetched and completed like any other', async () => {
    const { queue, chunk, redis } = bullmq
    const values = await addScriptArguments(queue, 'by-script', chunk)
    await redis.eval(addScript.lua, addScript.keys, ...values)
    const job = await bullmq.fetch(bullmq.openWorker())
    expect(job).toMatchObject({ id: 'by-script', name: chunkJobName, data: chunk })
    await job?.moveToCompleted(undefined, TOKEN, false)
    expect(await bullmq.counts()).toEqual({})
  })
})

describe('getNextJob without blocking', () => {
  it('returns undefined at once while the queue is empty, before and after a job', async () => {
    const worker = bullmq.openWorker()
    const startedMs = performance.now()
    expect(await bullmq.fetch(worker)).toBeUndefined()
    expect(await bullmq.fetch(worker)).toBeUndefined()
    const job = await bullmq.addAndFetch('a-chunk', worker)
    await job.moveToCompleted(undefined, TOKEN, false)
    expect(await bullmq.fetch(worker)).toBeUndefined()
    expect(await bullmq.fetch(worker)).toBeUndefined()
    // BullMQ would block for 5 s.
    expect(performance.now() - startedMs).toBeLessThan(2_000)
  })

  it('locks the oldest job with our token, for the duration of a lock', async () => {
    const { redis, chunk } = bullmq
    await bullmq.add('first', 'second')
    const job = await bullmq.fetch(bullmq.openWorker({ lockDuration: 5_000 }))
    expect(job).toMatchObject({ id: 'first', name: chunkJobName, data: chunk })
    expect(await redis.get(bullmq.lockKey('first'))).toBe(TOKEN)
    expect(await redis.pttl(bullmq.lockKey('first'))).toBeGreaterThan(3_000)
    expect(await redis.pttl(bullmq.lockKey('first'))).toBeLessThanOrEqual(5_000)
    expect(await bullmq.counts()).toEqual({ active: 1, waiting: 1 })
  })

  it('returns different jobs in order if it is called several times at once', async () => {
    const worker = bullmq.openWorker()
    await bullmq.add('first', 'second', 'third')
    const jobs = await Promise.all(Array.from({ length: 5 }, (_, n) => bullmq.fetch(worker, `token-${n}`)))
    expect(jobs.map((job) => job?.id)).toEqual(['first', 'second', 'third', undefined, undefined])
    expect(await bullmq.redis.get(bullmq.lockKey('second'))).toBe('token-1')
  })

  it('writes nothing while the queue is empty', async () => {
    const worker = bullmq.openWorker()
    const job = await bullmq.addAndFetch('a-chunk', worker)
    await job.moveToCompleted(undefined, TOKEN, false)
    const before = await bullmq.content()
    expect(await bullmq.fetch(worker)).toBeUndefined()
    expect(await bullmq.content()).toEqual(before)
  })
})

const moves: Readonly<Record<string, (job: ChunkJob, token: string) => Promise<unknown>>> = {
  moveToCompleted: (job, token) => job.moveToCompleted(undefined, token, false),
  moveToWait: (job, token) => job.moveToWait(token),
  moveToDelayed: (job, token) => job.moveToDelayed(inAMinute(), token),
  moveToFailed: (job, token) => job.moveToFailed(new Error('a bug'), token, false),
}

describe.each(Object.entries(moves))('%s', (name, move) => {
  /** Whether the move changes nothing and fails, with an error that the consumer does not take for a lost connection. */
  async function isRejected(job: ChunkJob, token: string): Promise<boolean> {
    const { error, isUnchanged } = await bullmq.failure(() => move(job, token))
    return error instanceof Error && isNotConnectionError(error) && isUnchanged
  }

  it('is rejected with a token that is not that of the lock', async () => {
    const job = await bullmq.addAndFetch('a-chunk', bullmq.openWorker())
    expect(await isRejected(job, 'another-token')).toBe(true)
    expect(await bullmq.redis.get(bullmq.lockKey('a-chunk'))).toBe(TOKEN)
    expect(await bullmq.counts()).toEqual({ active: 1 })
  })

  it('is rejected after the lock expired', async () => {
    const job = await bullmq.addAndFetch('a-chunk', bullmq.openWorker())
    await bullmq.redis.del(bullmq.lockKey('a-chunk'))
    expect(await isRejected(job, TOKEN)).toBe(true)
    expect(await bullmq.counts()).toEqual({ active: 1 })
  })

  it('is rejected after the job was completed', async () => {
    const job = await bullmq.addAndFetch('a-chunk', bullmq.openWorker())
    await job.moveToCompleted(undefined, TOKEN, false)
    expect(await isRejected(job, TOKEN)).toBe(true)
  })

  it('with our token releases the lock, does not fetch another job, and does not store changes of `job.data`', async () => {
    const { chunk, redis, names } = bullmq
    const job = await bullmq.addAndFetch('a-chunk', bullmq.openWorker())
    await bullmq.add('another')
    job.data = { ...chunk, frame: '' }
    await move(job, TOKEN)
    expect(await redis.exists(bullmq.lockKey('a-chunk'))).toBe(0)
    expect(await bullmq.counts()).not.toHaveProperty('active')
    expect(await bullmq.waiting()).toContain('another')
    const data = name === 'moveToCompleted' ? null : JSON.stringify(chunk)
    expect(await redis.hget(names.jobKey('a-chunk'), 'data')).toBe(data)
  })
})

describe('with our token', () => {
  it('moveToCompleted deletes the job', async () => {
    const job = await bullmq.addAndFetch('a-chunk', bullmq.openWorker())
    await job.moveToCompleted(undefined, TOKEN, false)
    expect(await bullmq.counts()).toEqual({})
    expect(Object.keys(await bullmq.content()).filter((key) => key.includes('a-chunk'))).toEqual([])
  })

  it('moveToWait makes the job the next one to be fetched', async () => {
    const worker = bullmq.openWorker()
    const job = await bullmq.addAndFetch('a-chunk', worker)
    await bullmq.add('newer')
    await job.moveToWait(TOKEN)
    expect(await bullmq.waiting()).toEqual(['newer', 'a-chunk'])
    expect((await bullmq.fetch(worker))?.id).toBe('a-chunk')
  })

  it('moveToDelayed keeps the job until it is due. Then a fetch returns it', async () => {
    const worker = bullmq.openWorker()
    const job = await bullmq.addAndFetch('a-chunk', worker)
    await job.moveToDelayed(Date.now() + 1_000, TOKEN)
    expect(await bullmq.fetch(worker)).toBeUndefined()
    expect(await bullmq.counts()).toEqual({ delayed: 1 })
    await sleep(1_100)
    expect(await bullmq.fetch(worker)).toMatchObject({ id: 'a-chunk', data: bullmq.chunk })
  })

  it('moveToFailed keeps the job with the reason, and the job is not retried', async () => {
    const worker = bullmq.openWorker()
    const job = await bullmq.addAndFetch('a-chunk', worker)
    await job.moveToFailed(new Error('a bug'), TOKEN, false)
    expect(await bullmq.counts()).toEqual({ failed: 1 })
    expect(await bullmq.queue.getJob('a-chunk')).toMatchObject({ failedReason: 'a bug', data: bullmq.chunk })
    expect(await bullmq.fetch(worker)).toBeUndefined()
  })
})

describe('extendJobLocks', () => {
  it('extends each lock, and returns no id', async () => {
    const worker = bullmq.openWorker({ lockDuration: 1_000 })
    await bullmq.add('first', 'second')
    await bullmq.fetch(worker, 'token-1')
    await bullmq.fetch(worker, 'token-2')
    expect(await worker.extendJobLocks(['first', 'second'], ['token-1', 'token-2'], 60_000)).toEqual([])
    for (const id of ['first', 'second']) {
      expect(await bullmq.redis.pttl(bullmq.lockKey(id))).toBeGreaterThan(50_000)
    }
  })

  it('returns the ids of lost locks, changes none of them, and extends the others', async () => {
    const { redis } = bullmq
    const worker = bullmq.openWorker({ lockDuration: 30_000 })
    await bullmq.add('kept', 'taken', 'expired')
    for (const token of ['token-1', 'token-2', 'token-3']) await bullmq.fetch(worker, token)
    await redis.del(bullmq.lockKey('expired'))
    const ids = ['kept', 'taken', 'expired', 'deleted']
    const lost = await worker.extendJobLocks(ids, ['token-1', 'another-token', 'token-3', 'token-4'], 60_000)
    expect(lost).toEqual(['taken', 'expired', 'deleted'])
    expect(await redis.pttl(bullmq.lockKey('kept'))).toBeGreaterThan(50_000)
    expect(await redis.get(bullmq.lockKey('taken'))).toBe('token-2')
    expect(await redis.pttl(bullmq.lockKey('taken'))).toBeLessThanOrEqual(30_000)
    expect(await redis.exists(bullmq.lockKey('expired'), bullmq.lockKey('deleted'))).toBe(0)
  })
})

it('Job.fromId reads a waiting or an active job, and returns undefined for an id without a job', async () => {
  const worker = bullmq.openWorker()
  await bullmq.add('a-chunk')
  expect(await Job.fromId(worker, 'a-chunk')).toMatchObject({ id: 'a-chunk', data: bullmq.chunk })
  await bullmq.fetch(worker)
  expect(await Job.fromId(worker, 'a-chunk')).toMatchObject({ id: 'a-chunk', data: bullmq.chunk })
  expect(await Job.fromId(worker, 'another')).toBeUndefined()
})

describe('a stalled job', () => {
  const options = { lockDuration: 500, stalledInterval: 100 }

  it('is the next one to be fetched after its lock expired, however often it stalls, and never fails', async () => {
    const { redis, names, chunk } = bullmq
    const worker = bullmq.openWorker(options)
    await bullmq.add('a-chunk', 'newer')
    // BullMQ counts here how often the job stalled.
    await redis.hset(names.jobKey('a-chunk'), 'stc', STALLED_COUNT_MAX - 3)
    await worker.startStalledCheckTimer()
    for (let stalls = 1; stalls <= 3; stalls += 1) {
      expect((await bullmq.fetch(worker, `token-${stalls}`))?.id).toBe('a-chunk')
      await vi.waitFor(async () => expect(await bullmq.waiting()).toEqual(['newer', 'a-chunk']), WAIT_MS)
      expect(await redis.exists(bullmq.lockKey('a-chunk'))).toBe(0)
    }
    expect(await bullmq.counts()).toEqual({ waiting: 2 })
    expect(await redis.hget(names.jobKey('a-chunk'), 'stc')).toBe(String(STALLED_COUNT_MAX))
    // BullMQ fails a job that has this field when it is fetched.
    expect(await redis.hexists(names.jobKey('a-chunk'), 'defa')).toBe(0)
    expect(await bullmq.fetch(worker)).toMatchObject({ id: 'a-chunk', data: chunk })
  })

  it('is never a job whose lock is renewed', async () => {
    const worker = bullmq.openWorker(options)
    await bullmq.addAndFetch('a-chunk', worker)
    await worker.startStalledCheckTimer()
    for (let renewals = 0; renewals < 10; renewals += 1) {
      expect(await worker.extendJobLocks(['a-chunk'], [TOKEN], options.lockDuration)).toEqual([])
      await sleep(options.lockDuration / 4)
    }
    expect(await bullmq.counts()).toEqual({ active: 1 })
  })

  it('is found by another worker', async () => {
    await bullmq.addAndFetch('a-chunk', bullmq.openWorker(options))
    await bullmq.openWorker(options).startStalledCheckTimer()
    await vi.waitFor(async () => expect(await bullmq.waiting()).toEqual(['a-chunk']), WAIT_MS)
  })
})

describe('the connection', () => {
  it('is shared by queue and worker, which open no other one, and stays open when they close', async () => {
    const { redis } = bullmq
    const connections = async (): Promise<string | undefined> =>
      /connected_clients:(\d+)/.exec(await redis.info('clients'))?.[1]
    const before = await connections()
    const queue = bullmq.openQueue()
    const worker = bullmq.openWorker()
    await worker.waitUntilReady()
    await worker.startStalledCheckTimer()
    const job = await bullmq.addAndFetch('a-chunk', worker)
    await job.moveToCompleted(undefined, TOKEN, false)
    expect(await bullmq.fetch(worker)).toBeUndefined()
    expect(await connections()).toBe(before)
    await worker.close()
    await queue.close()
    expect(await redis.ping()).toBe('PONG')
  })

  it.each([
    ['Connection is closed.', false],
    ['connect ECONNREFUSED 127.0.0.1:6379', false],
    ['NOREPLICAS Not enough good replicas to write.', true],
    ['Missing lock for job a-chunk. moveToFinished', true],
  ])('is lost or not: isNotConnectionError(%j) is %s', (message, isOtherError) => {
    expect(isNotConnectionError(new Error(message))).toBe(isOtherError)
  })
})

describe('while Redis is out of memory', () => {
  it('an add is rejected with OOM and stores nothing. It succeeds later', async () => {
    await bullmq.add('before')
    const { error, isUnchanged } = await bullmq.whileFull(() => bullmq.failure(() => bullmq.add('a-chunk')))
    expect(String(error)).toMatch(/OOM /)
    expect(isUnchanged).toBe(true)
    await bullmq.add('a-chunk')
    expect(await bullmq.waiting()).toEqual(['a-chunk', 'before'])
  })

  it('both adds of ChunkQueue reject with QueueFullError and store nothing', async () => {
    const chunkQueue = openChunkQueue()
    await vi.waitUntil(() => chunkQueue.isConnected)
    await addRecorded(chunkQueue, 'before')
    for (const add of [
      () => chunkQueue.add('a-chunk', bullmq.chunk, performance.now() + WAIT_MS),
      () => addRecorded(chunkQueue, 'a-chunk'),
    ]) {
      const { error, isUnchanged } = await bullmq.whileFull(() => bullmq.failure(add))
      expect(error).toBeInstanceOf(QueueFullError)
      expect(isUnchanged).toBe(true)
    }
  })

  it('a fetch is rejected with OOM and leaves the job in the queue', async () => {
    const worker = bullmq.openWorker()
    await bullmq.add('a-chunk')
    const { error, isUnchanged } = await bullmq.whileFull(() => bullmq.failure(() => bullmq.fetch(worker)))
    expect(String(error)).toMatch(/OOM /)
    expect(isUnchanged).toBe(true)
    expect((await bullmq.fetch(worker))?.id).toBe('a-chunk')
  })

  it('a completion succeeds, and frees memory', async () => {
    const job = await bullmq.addAndFetch('a-chunk', bullmq.openWorker())
    await bullmq.whileFull(() => job.moveToCompleted(undefined, TOKEN, false))
    expect(await bullmq.counts()).toEqual({})
  })
})
