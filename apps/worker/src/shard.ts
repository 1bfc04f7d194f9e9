import type { Logger, RedisConnection } from '@sluice/runtime'
import type { RedisNames } from '@sluice/schema'
import { BatchLedger } from './batch-ledger.ts'
import { BatchSplitter } from './batch-splitter.ts'
import { ChunkConsumer } from './chunk-consumer.ts'
import { Collector } from './collector.ts'
import type { WorkerConfig } from './config.ts'
import type { DeadLetters } from './dead-letters.ts'
import { Delivery } from './delivery.ts'
import type { Sender } from './sender.ts'
import { workerLimits } from './limits.ts'
import type { Persistence } from './persistence.ts'
import { Pump } from './pump.ts'
import { Slots } from './slots.ts'

export interface ShardDependencies {
  readonly config: Pick<
    WorkerConfig,
    'BATCH_ROWS_MAX' | 'BATCH_WAIT_MS' | 'LOCK_DURATION_MS' | 'QUEUE_SHARDS'
  >
  readonly redis: RedisConnection
  readonly sender: Sender
  readonly slots: Slots
  readonly unpacking: Slots
  readonly deadLetters: DeadLetters
  /** Aborted when what is not done goes back to the queue. */
  readonly signal: AbortSignal
  readonly persistence: Persistence
  readonly makeId: () => string
  readonly logger: Logger
}

/**
 * One queue's way into ClickHouse. Its batches are of its own chunks only, and written down beside them. It shares nothing
 * with the other shards but the inserts, so that one whose Redis is away holds up none of them.
 */
export function startShard(
  names: RedisNames,
  dependencies: ShardDependencies,
): Pick<Pump, 'flush'> & Pick<ChunkConsumer, 'close'> {
  const { config, redis, sender, slots, unpacking, deadLetters, signal, persistence, makeId, logger } =
    dependencies
  const ledger = new BatchLedger(redis, names)
  const delivery = new Delivery({
    ledger,
    sender,
    slots,
    recovering: new Slots(1, signal),
    splitter: new BatchSplitter({ ledger, sender, slots, unpacking, deadLetters, persistence }),
    persistence,
    loadChunk: (id) => consumer.load(id),
    makeId,
    now: () => performance.now(),
    // BullMQ renews each lock before half of it is over, so of a worker that froze they hold for the other half.
    takeOverMs: config.LOCK_DURATION_MS / 2,
  })
  const collector = new Collector({
    rowsMax: config.BATCH_ROWS_MAX,
    bytesMax: workerLimits.batchBytesMax,
    waitMs: config.BATCH_WAIT_MS,
  })
  const pump = new Pump(collector, delivery)
  const consumer = new ChunkConsumer({
    redis,
    names,
    shards: config.QUEUE_SHARDS,
    lockDurationMs: config.LOCK_DURATION_MS,
    logger,
    deliver: (chunk) => pump.deliver(chunk),
    onCompleted: (chunkId) => delivery.completed(chunkId),
  })
  return { flush: () => pump.flush(), close: () => consumer.close() }
}
