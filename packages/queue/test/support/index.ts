import type { RedisConnection } from '@sluice/runtime'
import { Queue } from 'bullmq'
import type { ChunkData } from '../../src/chunk.ts'
import type { QueueNames } from '../../src/queue-names.ts'

/** A shard's queue as BullMQ shows it, for tests that add jobs or count them. The caller closes it. */
export function openQueue(redis: RedisConnection, names: QueueNames): Queue<ChunkData> {
  const queue = new Queue<ChunkData>(names.queue, { connection: redis, prefix: names.queuePrefix })
  // The owner of the connection handles its errors.
  queue.on('error', () => undefined)
  return queue
}

export type ChunkJobs = Queue<ChunkData>
