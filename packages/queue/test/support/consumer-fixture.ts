import { startRedis, Supervisor } from '@sluice/local'
import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { Queue } from 'bullmq'
import { randomUUID } from 'node:crypto'
import { type MockInstance, onTestFinished, vi } from 'vitest'
import { type Chunk, encodeChunk } from '../../src/chunk.ts'
import { ChunkConsumer, type ChunkConsumerOptions } from '../../src/chunk-consumer.ts'
import { chunkJobName, type QueueNames, queueNames } from '../../src/queue-names.ts'

/** A limit for waiting on something that happens within milliseconds on an idle machine. */
export const WAIT_MS = 10_000

/** Starts a Redis for one test file, because its tests change the configuration of Redis or read its statistics. */
export async function startTestRedis(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const supervisor = await Supervisor.open()
  const { url } = await startRedis(supervisor)
  return { url, stop: () => supervisor.stop({ force: true }) }
}

/** A queue that no other test uses, and what the test observes of its consumers. */
export interface ConsumerFixture {
  readonly redis: RedisConnection
  readonly names: QueueNames
  /** Reads the queue. */
  readonly queue: Queue<Chunk>
  /** The ids of the delivered chunks, in order. */
  readonly delivered: string[]
  /** The ids of the completed chunks, in order. */
  readonly completed: string[]
  /** The warnings that a consumer logged. */
  readonly warnings: MockInstance
  readonly errors: MockInstance
  readonly add: (chunkId: string, chunk?: Chunk) => Promise<void>
  /** Starts a consumer. It is closed at the end of the test. */
  readonly startConsumer: (options?: Partial<ChunkConsumerOptions>) => ChunkConsumer
}

/** @param url a Redis. The test adds and reads through a separate connection, so a consumer may use one that fails. */
export function openConsumerFixture(url: string): ConsumerFixture {
  const names = queueNames(`test-${randomUUID()}`)
  const redis = connectRedis(url, { failFast: false })
  redis.on('error', () => undefined)
  onTestFinished(() => redis.disconnect())
  const queue = new Queue<Chunk>(names.queue, { connection: redis, prefix: names.queuePrefix })
  queue.on('error', () => undefined)
  onTestFinished(() => queue.close())
  const logger = createLogger('test', 'silent')
  const delivered: string[] = []
  const completed: string[] = []
  return {
    redis,
    names,
    queue,
    delivered,
    completed,
    warnings: vi.spyOn(logger, 'warn'),
    errors: vi.spyOn(logger, 'error'),
    add: async (jobId, chunk = chunkOf('row\n')) => {
      await queue.add(chunkJobName, chunk, { jobId, removeOnComplete: true })
    },
    startConsumer: (options) => {
      const consumer = new ChunkConsumer({
        redis,
        names,
        chunksMax: 1_000,
        heldBytesMax: 1_000_000,
        lockDurationMs: 30_000,
        logger,
        deliver: async ({ id }) => void delivered.push(id),
        onCompleted: (id) => void completed.push(id),
        ...options,
      })
      onTestFinished(() => consumer.close())
      return consumer
    },
  }
}

/** A chunk of one row. */
export function chunkOf(row: string): Chunk {
  return encodeChunk(1, Buffer.from(row))
}
