import { startRedis, Supervisor } from '@sluice/local'
import { connectRedis, createLogger } from '@sluice/runtime'
import { chunkJobName, encodeChunk, redisNames, type Chunk } from '@sluice/schema'
import { Queue } from 'bullmq'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ChunkConsumer } from '../src/chunk-consumer.ts'

const WATCHED_MS = 1_500

it('rests while Redis is full, and goes on once it is not', async () => {
  const supervisor = await Supervisor.open()
  onTestFinished(() => supervisor.stop({ force: true }))
  const { url } = await startRedis(supervisor)
  const names = redisNames('test')
  const redis = connectRedis(url, { failFast: false })
  onTestFinished(() => redis.disconnect())
  const queue = new Queue<Chunk>(names.queue, { connection: redis, prefix: names.queuePrefix })
  onTestFinished(() => queue.close())
  await queue.add(chunkJobName, encodeChunk(1, Buffer.from('row\n')), {
    jobId: 'a-chunk',
    removeOnComplete: true,
  })

  await redis.config('SET', 'maxmemory', '1')
  const logger = createLogger('test', 'silent')
  const failures = vi.spyOn(logger, 'warn')
  const delivered: string[] = []
  const consumer = new ChunkConsumer({
    redis,
    names,
    shards: 1,
    lockDurationMs: 30_000,
    logger,
    deliver: async ({ id }) => void delivered.push(id),
    onCompleted: () => undefined,
  })
  await sleep(WATCHED_MS)
  await redis.config('SET', 'maxmemory', '0')
  expect(delivered).toEqual([])
  expect(failures).toHaveBeenCalled()
  expect(failures.mock.calls.length).toBeLessThan(20)
  await vi.waitFor(() => expect(delivered).toEqual(['a-chunk']), 10_000)
  await consumer.close()
})
