import { startRedis, Supervisor } from '@sluice/local'
import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { chunkJobName, encodeChunk, redisNames, type Chunk } from '@sluice/schema'
import { Queue } from 'bullmq'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ChunkConsumer } from '../src/chunk-consumer.ts'

const WATCHED_MS = 1_500

interface Started {
  readonly redis: RedisConnection
  /** The chunks that were delivered. */
  readonly delivered: string[]
  /** The warnings of the consumer. */
  readonly warnings: ReturnType<typeof vi.spyOn>
  readonly add: (chunkId: string) => Promise<unknown>
  readonly startConsumer: () => ChunkConsumer
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
    delivered,
    warnings: vi.spyOn(logger, 'warn'),
    add: (jobId) =>
      queue.add(chunkJobName, encodeChunk(1, Buffer.from('row\n')), { jobId, removeOnComplete: true }),
    startConsumer: () =>
      new ChunkConsumer({
        redis,
        names,
        shards: 1,
        lockDurationMs: 30_000,
        logger,
        deliver: async ({ id }) => void delivered.push(id),
        onCompleted: () => undefined,
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
