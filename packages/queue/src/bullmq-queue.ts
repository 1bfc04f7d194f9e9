import type { RedisConnection } from '@sluice/runtime'
import { Queue } from 'bullmq'
import type { Chunk } from './chunk.ts'
import type { QueueNames } from './queue-names.ts'

/** BullMQ keeps a stream of events per queue. Nothing reads it here, so it is kept as short as possible. */
const EVENTS_MAX = 1

/** A shard's queue as an object of BullMQ. Closing it leaves the connection open. */
export function bullmqQueue(
  redis: RedisConnection,
  { queue: name, queuePrefix: prefix }: QueueNames,
): Queue<Chunk> {
  const queue = new Queue<Chunk>(name, {
    connection: redis,
    prefix,
    streams: { events: { maxLen: EVENTS_MAX } },
    defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: false },
  })
  // BullMQ emits the errors of the connection again. The owner of the connection handles them.
  queue.on('error', () => undefined)
  return queue
}
