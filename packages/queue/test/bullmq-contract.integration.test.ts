import { isNotConnectionError } from 'bullmq'
import { isDeepStrictEqual } from 'node:util'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { addScript, addScriptArguments } from '../src/bullmq-internals.ts'
import type { ChunkConsumer } from '../src/chunk-consumer.ts'
import type { ChunkQueue } from '../src/chunk-queue.ts'
import { QueueFullError } from '../src/recorded-add.ts'
import { chunkJobName, shardNames } from '../src/queue-names.ts'
import {
  BullmqFixture,
  type ChunkJob,
  type ChunkWorker,
  STALLED_COUNT_MAX,
  TOKEN,
} from './support/bullmq-fixture.ts'
import { chunkOf, fetchMine, useTestRedis, WAIT_MS } from './support/consumer-fixture.ts'

// What Sluice relies on beyond the types of BullMQ. Every version of BullMQ that Sluice uses must pass these tests.

const server = useTestRedis()
let bullmq: BullmqFixture

beforeEach(() => {
  bullmq = new BullmqFixture(server.url)
})

const inAMinute = (): number => Date.now() + 60_000

/** Adds a chunk with one record by `ChunkQueue.addRecorded`. */
const addRecorded = (chunkQueue: ChunkQueue, id: string): Promise<unknown> =>
  chunkQueue.addRecorded(
    id,
    bullmq.chunk,
    {
      records: [
        {
          name: bullmq.names.idempotencyKey(id),
          text: 'a-record',
          quota: bullmq.names.idempotencyQuotaKey('demo'),
        },
      ],
      recordLimits: { windowMs: 60_000, recordsMax: 1_000 },
    },
    performance.now() + WAIT_MS,
  )

/** Adds another chunk with the id of an existing job. @returns whether the job and the counts are the same as before */
async function isUnchangedByAdd(id: string): Promise<boolean> {
  const before = [await bullmq.storedJob(id), await bullmq.counts()]
  await bullmq.queue.add(chunkJobName, chunkOf('another row\n'), { jobId: id })
  return isDeepStrictEqual([await bullmq.storedJob(id), await bullmq.counts()], before)
}

describe('the keys', () => {
  it.each(shardNames('test', 2))('of jobs and of the wait list match the shard $queuePrefix', (shard) => {
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
  for (const id of ['first', 'second', 'third']) await bullmq.add(id)
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

  it('by its script, alone or within the script of ChunkQueue, makes the same job as Queue.add', async () => {
    const { queue, chunk, redis } = bullmq
    await bullmq.add('by-queue')
    const values = await addScriptArguments(queue, 'by-script', chunk)
    expect(addScript).toMatchObject({ keys: 9, args: 3 })
    expect(values).toHaveLength(addScript.keys + addScript.args)
    expect(await redis.eval(addScript.lua, addScript.keys, ...values)).toBe('by-script')
    const chunkQueue = bullmq.openChunkQueue()
    await vi.waitUntil(() => chunkQueue.isConnected)
    await chunkQueue.add('by-chunk-queue', chunk, performance.now() + WAIT_MS)
    await addRecorded(chunkQueue, 'recorded')
    const byQueue = await bullmq.storedJob('by-queue')
    expect(byQueue).toMatchObject({ name: chunkJobName, data: JSON.stringify(chunk), hasItsId: true })
    expect(await bullmq.storedJob('by-script')).toEqual(byQueue)
    expect(await bullmq.storedJob('by-chunk-queue')).toEqual(byQueue)
    expect(await bullmq.storedJob('recorded')).toEqual(byQueue)
    expect(await bullmq.waiting()).toEqual(['by-queue', 'by-script', 'by-chunk-queue', 'recorded'])
  })
})

/** One step of a job, by BullMQ and by the consumer. A worker of an earlier version takes BullMQ's step. */
interface Step {
  /** How the job is prepared: only added, or fetched as well. */
  readonly from: 'waiting' | 'active'
  readonly byBullmq: (worker: ChunkWorker, job: ChunkJob | undefined) => Promise<unknown>
  readonly byConsumer: (consumer: ChunkConsumer) => Promise<unknown>
}

const steps: Readonly<Record<string, Step>> = {
  fetched: {
    from: 'waiting',
    byBullmq: (worker) => bullmq.fetch(worker),
    byConsumer: (consumer) => fetchMine(consumer, 1),
  },
  completed: {
    from: 'active',
    byBullmq: async (_worker, job) => job?.moveToCompleted(undefined, TOKEN, false),
    byConsumer: (consumer) => consumer.finish({ id: 'a-batch', members: ['a-chunk'] }, undefined),
  },
  requeued: {
    from: 'active',
    byBullmq: async (_worker, job) => job?.moveToWait(TOKEN),
    byConsumer: (consumer) => consumer.requeue(['a-chunk'], 'front'),
  },
  failed: {
    from: 'active',
    byBullmq: async (_worker, job) => job?.moveToFailed(new Error('a bug'), TOKEN, false),
    byConsumer: (consumer) => consumer.fail('a-chunk', new Error('a bug')),
  },
}

/** What Redis stores of a queue with the job 'a-chunk'. Times and strings that differ between two runs are replaced. */
async function stateOf(fixture: BullmqFixture): Promise<unknown> {
  const { processedOn, finishedOn, stacktrace, delay, ...job } = (await fixture.storedJob(
    'a-chunk',
  )) as Record<'processedOn' | 'finishedOn' | 'stacktrace' | 'delay', string | undefined>
  const { queuePrefix } = fixture.names
  const keys = (await fixture.redis.keys(`${queuePrefix}:*`)).map((key) => key.slice(queuePrefix.length))
  const [event = []] = (
    await fixture.redis.xrevrange(fixture.queue.toKey('events'), '+', '-', 'COUNT', 1)
  ).map(([, fields]) => fields)
  return {
    keys: keys.filter((key) => key !== ':turn').toSorted((a, b) => a.localeCompare(b)),
    counts: await fixture.counts(),
    waiting: await fixture.waiting(),
    job,
    hasProcessedOn: Number(processedOn) > 0,
    hasFinishedOn: Number(finishedOn) > 0,
    stacktraces: (JSON.parse(stacktrace ?? '[]') as string[]).length,
    // To the second. The last part of the event of a delay is its time.
    delayS: Math.round(Number(delay ?? 0) / 1_000),
    event: event.includes('delayed') ? event.slice(0, -1) : event,
  }
}

describe.each(Object.entries(steps))(
  'a job that is %s by the consumer',
  (_name, { from, byBullmq, byConsumer }) => {
    it('is stored in Redis as if BullMQ had done it', async () => {
      const other = new BullmqFixture(server.url)
      const [worker, consumer] = [bullmq.openWorker(), other.openConsumer()]
      for (const id of ['a-chunk', 'newer']) await Promise.all([bullmq.add(id), other.add(id)])
      const job = from === 'active' ? await bullmq.fetch(worker) : undefined
      if (from === 'active') await fetchMine(consumer, 1)
      expect(await stateOf(other)).toEqual(await stateOf(bullmq))
      await byBullmq(worker, job)
      await byConsumer(consumer)
      expect(await stateOf(other)).toEqual(await stateOf(bullmq))
    })
  },
)

it('a job that is delayed by the consumer is stored as if BullMQ had done it', async () => {
  const other = new BullmqFixture(server.url)
  const newer = { ...bullmq.chunk, v: 2 as 1 }
  for (const { queue } of [bullmq, other]) await queue.add(chunkJobName, newer, { jobId: 'a-chunk' })
  const job = await bullmq.fetch(bullmq.openWorker())
  await job?.moveToDelayed(Date.now() + 5_000, TOKEN)
  await fetchMine(other.openConsumer(), 1)
  expect(await stateOf(other)).toEqual(await stateOf(bullmq))
})

describe('a queue with workers of this version and of earlier ones', () => {
  it.each([
    ['earlier versions', true],
    ['this version', false],
  ])(
    'requeues the jobs of a dead worker of %s, as the next ones, however often they stalled',
    async (_what, isEarlier) => {
      const lockDurationMs = 500
      for (const id of ['a-chunk', 'newer']) await bullmq.add(id)
      await bullmq.redis.hset(bullmq.names.jobKey('a-chunk'), 'stc', STALLED_COUNT_MAX - 2)
      const dead = bullmq.openConsumer({ lockDurationMs })
      const worker = bullmq.openWorker({ lockDuration: lockDurationMs, stalledInterval: 100 })
      if (isEarlier) await bullmq.fetch(worker)
      else await fetchMine(dead, 1)
      await dead.close()
      if (isEarlier) bullmq.openConsumer({ lockDurationMs })
      else await worker.startStalledCheckTimer()
      await vi.waitFor(async () => expect(await bullmq.waiting()).toEqual(['a-chunk', 'newer']), WAIT_MS)
      const { names, redis } = bullmq
      expect(await redis.hget(names.jobKey('a-chunk'), 'stc')).toBe(String(STALLED_COUNT_MAX - 1))
      // BullMQ fails a job that has this field when it is fetched.
      expect(await redis.hexists(names.jobKey('a-chunk'), 'defa')).toBe(0)
    },
  )
})

it.each([
  ['Connection is closed.', false],
  ['connect ECONNREFUSED 127.0.0.1:6379', false],
  ['NOREPLICAS Not enough good replicas to write.', true],
])('a connection is lost or not: isNotConnectionError(%j) is %s', (message, isOtherError) => {
  expect(isNotConnectionError(new Error(message))).toBe(isOtherError)
})

describe('while Redis is out of memory', () => {
  it('both adds of ChunkQueue reject with QueueFullError and store nothing', async () => {
    const chunkQueue = bullmq.openChunkQueue()
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
})
