import type { DeadLetters, RowInserter } from '@sluice/clickhouse'
import { BatchLedger, ChunkConsumer, type FetchMonitor, type QueueNames } from '@sluice/queue'
import type { Logger, RedisConnection } from '@sluice/runtime'
import { BatchDelivery } from './batch-delivery.ts'
import { BatchScheduler } from './batch-scheduler.ts'
import { BatchSplitter } from './batch-splitter.ts'
import { Collector } from './collector.ts'
import type { WorkerConfig } from './config.ts'
import { workerLimits } from './limits.ts'
import type { Retrier } from './retrier.ts'
import { Semaphore } from './semaphore.ts'

export interface ShardDependencies {
  readonly config: Pick<
    WorkerConfig,
    'BATCH_ROWS_MAX' | 'BATCH_WAIT_MS' | 'LOCK_DURATION_MS' | 'QUEUE_SHARDS'
  >
  readonly redis: RedisConnection
  readonly rowInserter: RowInserter
  readonly insertPermits: Semaphore
  readonly splitPermits: Semaphore
  readonly deadLetters: DeadLetters
  /** Aborted when chunks that are not delivered must be requeued. */
  readonly signal: AbortSignal
  readonly retrier: Retrier
  readonly makeId: () => string
  readonly fetchMonitor: FetchMonitor
  readonly logger: Logger
}

/**
 * Starts the delivery of one shard's queue. Its batches only have chunks of this queue, and their records are next to it. It shares
 * nothing with other shards but the insert permits, so that a shard whose Redis is unavailable does not block the others.
 */
export function startShard(
  names: QueueNames,
  dependencies: ShardDependencies,
): Pick<BatchScheduler, 'flush'> & Pick<ChunkConsumer, 'close'> {
  const { config, redis, signal, logger, makeId } = dependencies
  const ledger = new BatchLedger(redis, names)
  const delivery = new BatchDelivery({
    ...dependencies,
    ledger,
    recoveryPermits: new Semaphore(1, signal),
    splitter: new BatchSplitter({
      ...dependencies,
      ledger,
      insertLingerMaxMs: workerLimits.insertLingerMaxMs,
    }),
    loadChunk: (id) => consumer.load(id),
    makeId,
    monotonicMs: () => performance.now(),
    // The consumer renews each lock before half of it has passed, so a frozen worker still owns its jobs for the other half.
    ownershipTrustedMs: config.LOCK_DURATION_MS / 2,
  })
  const collector = new Collector({
    rowsMax: config.BATCH_ROWS_MAX,
    bytesMax: workerLimits.batchBytesMax,
    waitMs: config.BATCH_WAIT_MS,
  })
  const scheduler = new BatchScheduler(collector, delivery)
  const consumer = new ChunkConsumer({
    redis,
    names,
    chunksMax: Math.ceil(workerLimits.chunksMax / config.QUEUE_SHARDS),
    heldBytesMax: Math.ceil(workerLimits.heldBytesMax / config.QUEUE_SHARDS),
    lockDurationMs: config.LOCK_DURATION_MS,
    fetchMonitor: dependencies.fetchMonitor,
    logger,
    deliver: (chunk) => scheduler.deliver(chunk),
    onCompleted: (chunkId) => delivery.completed(chunkId),
  })
  return { flush: () => scheduler.flush(), close: () => consumer.close() }
}
