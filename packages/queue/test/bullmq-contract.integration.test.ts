import { createRedisBackend, isNotConnectionError, type Job, Worker } from 'bullmq'
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { addScript, addScriptArguments } from '../src/bullmq-internals.ts'
import { type ChunkData, FRAME_FIELD } from '../src/chunk.ts'
import type { ChunkConsumer } from '../src/chunk-consumer.ts'
import type { ChunkQueue } from '../src/chunk-queue.ts'
import { FailedChunks } from '../src/failed-chunks.ts'
import { QueueFullError } from '../src/recorded-add.ts'
import { chunkJobName, shardNames } from '../src/queue-names.ts'
import { chunkOf, ConsumerFixture, fetchMine, useTestRedis, WAIT_MS } from './support/consumer-fixture.ts'

// What Sluice relies on beyond the types of BullMQ. Every version of BullMQ that Sluice uses must pass these tests.

type ChunkJob = Job<ChunkData, void>
type ChunkWorker = Worker<ChunkData, void>

/** The value of held-jobs.ts. */
const STALLED_COUNT_MAX = 1_000_000_000
/** The token of our locks. */
const TOKEN = 'our-token'
const chunk = chunkOf('row')
/** What BullMQ gets of it. */
const { frame: _frame, receivedMs: _receivedMs, ...chunkData } = chunk

const server = useTestRedis()
let bullmq: ConsumerFixture

beforeEach(() => {
  bullmq = new ConsumerFixture(server.url)
})

/** A worker of BullMQ that fetches on request, and never blocks. */
function openWorker(options: { lockDuration?: number; stalledInterval?: number } = {}): ChunkWorker {
  const { redis: connection, names } = bullmq
  const worker: ChunkWorker = new Worker<ChunkData, void>(
    names.queue,
    null,
    { connection, prefix: names.queuePrefix, autorun: false, maxStalledCount: STALLED_COUNT_MAX, ...options },
    (name, queueOptions) => createRedisBackend(name, queueOptions),
  )
  onTestFinished(() => worker.close())
  return worker
}

const fetchJob = (worker: ChunkWorker): Promise<ChunkJob | undefined> =>
  worker.getNextJob(TOKEN, { block: false })

/** A job as Redis stores it. Its options are parsed, and fields that differ between jobs are left out. */
async function storedJob(id: string, { redis, names } = bullmq): Promise<Record<string, unknown>> {
  const { timestamp, opts = '{}', [FRAME_FIELD]: _text, ...fields } = await redis.hgetall(names.jobKey(id))
  const { jobId, ...options } = JSON.parse(opts) as { jobId?: string }
  const frame = await storedFrame(id, { redis, names })
  return { ...fields, frame, options, hasTimestamp: Number(timestamp) > 0, hasItsId: jobId === id }
}

/** The field of a job that BullMQ does not know. Null if the job does not exist, or has no such field. */
function storedFrame(
  id: string,
  { redis, names }: Pick<ConsumerFixture, 'redis' | 'names'> = bullmq,
): Promise<Buffer | null> {
  return redis.hgetBuffer(names.jobKey(id), FRAME_FIELD)
}

async function openChunkQueue(): Promise<ChunkQueue> {
  const chunkQueue = bullmq.openChunkQueue()
  await vi.waitUntil(() => chunkQueue.isConnected)
  return chunkQueue
}

/** Adds a chunk with one record by `ChunkQueue.add`. */
function addRecorded(chunkQueue: ChunkQueue, id: string): Promise<unknown> {
  const [name, quota] = [bullmq.names.idempotencyKey(id), bullmq.names.idempotencyQuotaKey('demo')]
  const records = [{ name, text: 'a-record', quota }]
  const recordLimits = { windowMs: 60_000, recordsMax: 1_000 }
  return chunkQueue.add(id, chunk, performance.now() + WAIT_MS, { records, recordLimits })
}

/** Whether a job exists, and an add of another chunk with its id changes nothing, by BullMQ and by `ChunkQueue`. */
async function expectKept(id: string, chunkQueue: ChunkQueue): Promise<void> {
  const [before, counts] = [await storedJob(id), await bullmq.counts()]
  expect(before).toMatchObject({ data: JSON.stringify(chunkData), frame: chunk.frame })
  const another = { ...chunkOf('another row'), rows: 2 }
  await bullmq.add(id, another)
  await chunkQueue.add(id, another, performance.now() + WAIT_MS)
  expect([await storedJob(id), await bullmq.counts()]).toEqual([before, counts])
}

it.each(shardNames('test', 2))(
  'the keys of jobs and of the wait list match the shard $queuePrefix',
  (shard) => {
    const queue = bullmq.openQueue(shard)
    expect(queue.toKey('wait')).toBe(shard.waitKey)
    expect(queue.toKey('an-id')).toBe(shard.jobKey('an-id'))
  },
)

it('a job exists, and is not added again, while it is waiting, active, failed or delayed, but not after its completion', async () => {
  const { redis, names } = bullmq
  const [worker, chunkQueue] = [openWorker(), await openChunkQueue()]
  for (const id of ['first', 'second', 'third']) await bullmq.add(id)
  // The last one is the oldest.
  expect(await redis.lindex(names.waitKey, -1)).toBe('first')
  await expectKept('first', chunkQueue)
  const jobs = [await fetchJob(worker), await fetchJob(worker), await fetchJob(worker)]
  expect(await redis.llen(names.waitKey)).toBe(0)
  await expectKept('first', chunkQueue)
  await jobs[0]?.moveToFailed(new Error('a bug'), TOKEN, false)
  await jobs[1]?.moveToDelayed(Date.now() + 60_000, TOKEN)
  await jobs[2]?.moveToCompleted(undefined, TOKEN, false)
  for (const id of ['first', 'second']) await expectKept(id, chunkQueue)
  expect(await redis.exists(names.jobKey('first'), names.jobKey('second'))).toBe(2)
  expect(await redis.exists(names.jobKey('third'))).toBe(0)
  await bullmq.add('third')
  expect(await bullmq.waiting()).toEqual(['third'])
})

it('an add by its script makes the same job as Queue.add, and within the script of ChunkQueue the same with a frame', async () => {
  const { queue, redis } = bullmq
  await queue.add(chunkJobName, chunkData, { jobId: 'by-queue' })
  const values = await addScriptArguments(queue, 'by-script', chunkData)
  expect(addScript).toMatchObject({ keys: 9, args: 3 })
  expect(values).toHaveLength(addScript.keys + addScript.args)
  expect(await redis.eval(addScript.lua, addScript.keys, ...values)).toBe('by-script')
  const chunkQueue = await openChunkQueue()
  await chunkQueue.add('by-chunk-queue', chunk, performance.now() + WAIT_MS)
  await addRecorded(chunkQueue, 'recorded')
  const byQueue = await storedJob('by-queue')
  const data = JSON.stringify(chunkData)
  expect(byQueue).toMatchObject({ name: chunkJobName, data, frame: null, hasItsId: true })
  expect(await storedJob('by-script')).toEqual(byQueue)
  for (const id of ['by-chunk-queue', 'recorded'])
    expect(await storedJob(id)).toEqual({ ...byQueue, frame: chunk.frame })
  expect(await bullmq.waiting()).toEqual(['by-queue', 'by-script', 'by-chunk-queue', 'recorded'])
  // Nothing reads the stream of events.
  expect(await redis.xlen(bullmq.names.jobKey('events'))).toBeLessThan(200)
})

it('both adds of ChunkQueue reject with QueueFullError and store nothing while Redis is out of memory', async () => {
  const chunkQueue = await openChunkQueue()
  await addRecorded(chunkQueue, 'before')
  const before = await bullmq.content()
  await bullmq.whileFull(async () => {
    const adding = chunkQueue.add('a-chunk', chunk, performance.now() + WAIT_MS)
    await expect(adding).rejects.toThrow(QueueFullError)
    await expect(addRecorded(chunkQueue, 'a-chunk')).rejects.toThrow(QueueFullError)
  })
  expect(await bullmq.content()).toEqual(before)
})

/** One step of a job, by BullMQ and by the consumer. A worker of an earlier version takes BullMQ's step. */
interface Step {
  /** How the job is prepared: only added, or fetched as well. */
  readonly from: 'waiting' | 'active'
  readonly data?: typeof chunk
  /** Whether it deletes the job, with its frame. */
  readonly deletes?: true
  readonly byBullmq: (worker: ChunkWorker, job: ChunkJob | undefined) => Promise<unknown>
  readonly byConsumer: (consumer: ChunkConsumer) => Promise<unknown>
}

const steps: Readonly<Record<string, Step>> = {
  fetched: {
    from: 'waiting',
    byBullmq: (worker) => fetchJob(worker),
    byConsumer: (consumer) => fetchMine(consumer, 1),
  },
  delayed: {
    from: 'waiting',
    data: { ...chunk, v: 3 as 2 },
    byBullmq: async (worker) => (await fetchJob(worker))?.moveToDelayed(Date.now() + 5_000, TOKEN),
    byConsumer: (consumer) => fetchMine(consumer, 1),
  },
  completed: {
    from: 'active',
    deletes: true,
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
async function stateOf(fixture: ConsumerFixture): Promise<unknown> {
  const { processedOn, finishedOn, stacktrace, delay, ...job } = await storedJob('a-chunk', fixture)
  const { queuePrefix } = fixture.names
  const keys = (await fixture.redis.keys(`${queuePrefix}:*`)).map((key) => key.slice(queuePrefix.length))
  const events = await fixture.redis.xrevrange(fixture.queue.toKey('events'), '+', '-', 'COUNT', 1)
  const event = events[0]?.[1] ?? []
  return {
    keys: keys.filter((key) => key !== ':turn').toSorted(),
    counts: await fixture.counts(),
    waiting: await fixture.waiting(),
    job,
    hasTimes: [Number(processedOn) > 0, Number(finishedOn) > 0],
    stacktraces: (JSON.parse((stacktrace ?? '[]') as string) as string[]).length,
    // To the second. The last part of the event of a delay is its time.
    delayS: Math.round(Number(delay ?? 0) / 1_000),
    event: event.includes('delayed') ? event.slice(0, -1) : event,
  }
}

it.each(Object.entries(steps))(
  'a job that is %s by the consumer is stored in Redis as if BullMQ had done it, and has its frame as long as it exists',
  async (_name, { from, data = chunk, deletes, byBullmq, byConsumer }) => {
    const other = new ConsumerFixture(server.url)
    const [worker, consumer] = [openWorker(), other.openConsumer()]
    for (const fixture of [bullmq, other]) {
      await fixture.add('a-chunk', data)
      await fixture.add('newer')
    }
    const job = from === 'active' ? await fetchJob(worker) : undefined
    if (from === 'active') await fetchMine(consumer, 1)
    expect(await stateOf(other)).toEqual(await stateOf(bullmq))
    await byBullmq(worker, job)
    await byConsumer(consumer)
    expect(await stateOf(other)).toEqual(await stateOf(bullmq))
    for (const fixture of [bullmq, other]) {
      expect(await storedFrame('a-chunk', fixture)).toEqual(deletes === true ? null : chunk.frame)
      expect(await fixture.redis.exists(fixture.names.jobKey('a-chunk'))).toBe(deletes === true ? 0 : 1)
      expect(await storedFrame('newer', fixture)).toEqual(chunk.frame)
    }
  },
)

interface Operator {
  readonly retry: () => Promise<unknown>
  readonly remove: () => Promise<unknown>
}

const operators: Readonly<Record<string, () => Operator>> = {
  BullMQ: () => ({
    retry: async () => (await bullmq.queue.getJob('a-chunk'))?.retry('failed'),
    remove: () => bullmq.queue.remove('a-chunk'),
  }),
  FailedChunks: () => {
    const { redis, names } = bullmq
    const failed = new FailedChunks(redis, [names])
    onTestFinished(() => failed.close())
    return { retry: () => failed.retry('all'), remove: () => failed.purge('all') }
  },
}

it.each(Object.entries(operators))(
  'a failed job that %s retries is fetched with its frame, and one that it removes leaves none',
  async (_name, open) => {
    const { redis, names } = bullmq
    const [operator, consumer, chunkQueue] = [open(), bullmq.openConsumer(), await openChunkQueue()]
    await chunkQueue.add('a-chunk', chunk, performance.now() + WAIT_MS)
    await fetchMine(consumer, 1)
    await consumer.fail('a-chunk', new Error('a bug'))
    await operator.retry()
    expect(await bullmq.counts()).toEqual({ waiting: 1 })
    expect(await storedFrame('a-chunk')).toEqual(chunk.frame)
    expect((await fetchMine(consumer, 1)).chunks).toMatchObject([{ id: 'a-chunk', frame: chunk.frame }])
    await consumer.fail('a-chunk', new Error('a bug'))
    expect(await storedFrame('a-chunk')).toEqual(chunk.frame)
    await operator.remove()
    expect(await redis.keys(`${names.jobKey('a-chunk')}*`)).toEqual([])
  },
)

it.each([
  ['earlier versions', true],
  ['this version', false],
])(
  'the jobs of a dead worker of %s are requeued by the others, as the next ones, however often they stalled',
  async (_what, isEarlier) => {
    const lockDurationMs = 500
    const { names, redis } = bullmq
    for (const id of ['a-chunk', 'newer']) await bullmq.add(id)
    await redis.hset(names.jobKey('a-chunk'), 'stc', STALLED_COUNT_MAX - 2)
    const dead = bullmq.openConsumer({ lockDurationMs })
    const worker = openWorker({ lockDuration: lockDurationMs, stalledInterval: 100 })
    if (isEarlier) await fetchJob(worker)
    else await fetchMine(dead, 1)
    await dead.close()
    if (isEarlier) bullmq.openConsumer({ lockDurationMs })
    else await worker.startStalledCheckTimer()
    await vi.waitFor(async () => expect(await bullmq.waiting()).toEqual(['a-chunk', 'newer']), WAIT_MS)
    expect(await redis.hget(names.jobKey('a-chunk'), 'stc')).toBe(String(STALLED_COUNT_MAX - 1))
    // BullMQ fails a job that has this field when it is fetched.
    expect(await redis.hexists(names.jobKey('a-chunk'), 'defa')).toBe(0)
    expect(await storedFrame('a-chunk')).toEqual(chunk.frame)
  },
)

it.each([
  ['Connection is closed.', false],
  ['connect ECONNREFUSED 127.0.0.1:6379', false],
  ['NOREPLICAS Not enough good replicas to write.', true],
])('a connection is lost or not: isNotConnectionError(%j) is %s', (message, isOtherError) => {
  expect(isNotConnectionError(new Error(message))).toBe(isOtherError)
})
