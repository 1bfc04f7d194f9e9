import { startRedis, Supervisor } from '@sluice/local'
import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { chunkJobName, encodeChunk, redisNames, type Chunk } from '@sluice/schema'
import { Job, Queue } from 'bullmq'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ChunkConsumer, type ConsumerOptions } from '../src/chunk-consumer.ts'
import { HandBackError } from '../src/persistence.ts'

const WATCHED_MS = 1_500

interface Started {
  readonly redis: RedisConnection
  readonly queue: Queue<Chunk>
  /** The chunks that were delivered. */
  readonly delivered: string[]
  /** The warnings of the consumer. */
  readonly warnings: ReturnType<typeof vi.spyOn>
  readonly add: (chunkId: string) => Promise<unknown>
  readonly startConsumer: (options?: Partial<ConsumerOptions>) => ChunkConsumer
}

/** A Redis of the test's own, and a consumer of its queue. */
async function start(): Promise<Started> {
  const supervisor = await Supervisor.open()
  onTestFinished(() => supervisor.stop({ force: true }))
  const { url } = await startRedis(supervisor)
  const names = redisNames('test')
  const redis = connectRedis(url, { failFast: false })
  onTestFinished(() => redis.disconnect())
  const queue = new Queue<Chunk>(names.queue, { connection: redis, prefix: names.queuePrefix })
  onTestFinished(() => queue.close())
  queue.on('error', () => undefined)
  redis.on('error', () => undefined)
  const logger = createLogger('test', 'silent')
  const delivered: string[] = []
  return {
    redis,
    queue,
    delivered,
    warnings: vi.spyOn(logger, 'warn'),
    add: (jobId) =>
      queue.add(chunkJobName, encodeChunk(1, Buffer.from('row\n')), { jobId, removeOnComplete: true }),
    startConsumer: (options) =>
      new ChunkConsumer({
        redis,
        names,
        shards: 1,
        lockDurationMs: 30_000,
        logger,
        deliver: async ({ id }) => void delivered.push(id),
        onCompleted: () => undefined,
        ...options,
      }),
  }
}

it('rests while Redis is full, and goes on once it is not', async () => {
  const { redis, delivered, warnings, add, startConsumer } = await start()
  await add('a-chunk')
  await redis.config('SET', 'maxmemory', '1')
  const consumer = startConsumer()
  await sleep(WATCHED_MS)
  await redis.config('SET', 'maxmemory', '0')
  expect(delivered).toEqual([])
  expect(warnings).toHaveBeenCalled()
  expect(warnings.mock.calls.length).toBeLessThan(20)
  await vi.waitFor(() => expect(delivered).toEqual(['a-chunk']), 10_000)
  await consumer.close()
})

it('does not say again what the connection tells of a node that is away', async () => {
  const { redis, delivered, warnings, add, startConsumer } = await start()
  const consumer = startConsumer()
  redis.emit('error', Object.assign(new Error('LOADING Redis is loading'), { name: 'ReplyError' }))
  await add('a-chunk')
  await vi.waitFor(() => expect(delivered).toEqual(['a-chunk']), 10_000)
  expect(warnings).not.toHaveBeenCalled()
  await consumer.close()
  expect(redis.listenerCount('error')).toBe(2)
})

it('opens no connection', async () => {
  const { redis, startConsumer } = await start()
  const connections = async (): Promise<string | undefined> =>
    /connected_clients:(\d+)/.exec(await redis.info('clients'))?.[1]
  const before = await connections()
  const consumer = startConsumer()
  await sleep(WATCHED_MS)
  expect(await connections()).toBe(before)
  await consumer.close()
})

it('hands a chunk back that cannot be delivered now', async () => {
  const { queue, add, startConsumer } = await start()
  await add('a-chunk')
  const deliver = vi.fn<ConsumerOptions['deliver']>().mockRejectedValueOnce(new HandBackError('stopping'))
  const consumer = startConsumer({ deliver })
  await vi.waitFor(() => expect(deliver).toHaveBeenCalledTimes(2), 10_000)
  await consumer.close()
  expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 0, failed: 0 })
})

it('leaves a chunk that Redis does not take back to be found when its lock has run out', async () => {
  const { queue, add, startConsumer } = await start()
  await add('a-chunk')
  const deliver = vi.fn<ConsumerOptions['deliver']>().mockRejectedValueOnce(new HandBackError('stopping'))
  const moveToWait = vi.spyOn(Job.prototype, 'moveToWait').mockRejectedValueOnce(new Error('NOREPLICAS'))
  onTestFinished(() => moveToWait.mockRestore())
  const consumer = startConsumer({ deliver, lockDurationMs: 1_000 })
  await vi.waitFor(() => expect(deliver).toHaveBeenCalledTimes(1), 10_000)
  expect(await queue.getJobCounts()).toMatchObject({ active: 1, failed: 0 })
  await vi.waitFor(() => expect(deliver).toHaveBeenCalledTimes(2), 10_000)
  await consumer.close()
  expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 0, failed: 0 })
})

it('keeps a chunk of a version that it does not know for a newer worker', async () => {
  const { queue, delivered, startConsumer } = await start()
  await queue.add(chunkJobName, { ...encodeChunk(1, Buffer.from('row\n')), v: 2 as 1 }, { jobId: 'new' })
  const consumer = startConsumer()
  await vi.waitFor(async () => expect(await queue.getJobCounts()).toMatchObject({ delayed: 1 }), 10_000)
  await consumer.close()
  expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 0, failed: 0 })
  expect(delivered).toEqual([])
})
