import type { DeadLetters, RowInserter } from '@sluice/clickhouse'
import type { Logger, MonotonicClock } from '@sluice/runtime'
import { BatchDelivery } from './batch-delivery.ts'
import type { ShardSpans } from './batch-spans.ts'
import { BatchSplitter } from './batch-splitter.ts'
import { BatchStages } from './batch-stages.ts'
import type { Stage } from './batch.ts'
import { Collector } from './collector.ts'
import type { WorkerConfig } from './config.ts'
import type { HeldBudget } from './held-budget.ts'
import type { InsertHealth } from './insert-health.ts'
import { workerLimits } from './limits.ts'
import { observeQueue } from './observed-queue.ts'
import type { Retrier } from './retrier.ts'
import { Semaphore } from './semaphore.ts'
import { ShardProgress } from './shard-progress.ts'
import type { ShardQueue } from './shard-queue.ts'
import { type FetchLimits, Shard } from './shard.ts'
import type { WorkerCounts } from './worker-counts.ts'

export interface ShardDependencies {
  readonly config: Pick<WorkerConfig, 'BATCH_ROWS_MAX' | 'BATCH_WAIT_MS' | 'LOCK_DURATION_MS'>
  readonly rowInserter: Pick<RowInserter, 'prepare' | 'prepareSingle' | 'consumeToken' | 'findStored'>
  readonly deadLetters: Pick<DeadLetters, 'prepare'>
  readonly health: InsertHealth
  readonly insertNothing: () => Promise<unknown>
  readonly insertSlots: Semaphore
  readonly repairPermits: Semaphore
  readonly chunkBudget: HeldBudget
  readonly byteBudget: HeldBudget
  readonly heldInAllShards: () => number
  /** Aborted when chunks that are not delivered must be requeued. */
  readonly signal: AbortSignal
  readonly retrier: Retrier
  readonly counts: WorkerCounts
  readonly makeId: () => string
  readonly workerId: string
  readonly clock: MonotonicClock
  readonly fetchLimits: FetchLimits
  readonly logger: Logger
  /** Undefined if traces are off. */
  readonly spans?: ShardSpans | undefined
}

export interface RunningShard {
  readonly heldChunks: number
  readonly progress: ShardProgress
  /** Resolves when everything that was fetched is delivered or returned. */
  stop(): Promise<void>
}

/**
 * Starts the delivery of one shard's queue. Its batches only have chunks of this queue, and their records are next to it. It shares
 * nothing with other shards but the limits, so that a shard whose Redis is unavailable does not block the others.
 */
export function startShard(queue: ShardQueue, dependencies: ShardDependencies): RunningShard {
  const { config, signal, clock, spans } = dependencies
  const { consumer } = queue
  const progress = new ShardProgress(clock, () => consumer.heldChunks)
  const shared = {
    ...dependencies,
    ...observeQueue(queue, progress),
    retrier: progress.observeRetrier(dependencies.retrier),
    insertLingerMaxMs: workerLimits.insertLingerMaxMs,
  }
  const stages = new BatchStages({
    ...shared,
    splitter: new BatchSplitter(shared),
    // The consumer renews each lock before half of it has passed, so a frozen worker still owns its jobs for the other half.
    ownershipTrustedMs: config.LOCK_DURATION_MS / 2,
  })
  const step = (stage: Exclude<Stage, { readonly at: 'done' }>): Promise<Stage> =>
    spans === undefined ? stages.step(stage) : spans.step(stage, () => stages.step(stage))
  const shard = new Shard({
    ...shared,
    collector: new Collector({
      chunksMax: workerLimits.batchChunksMax,
      rowsMax: config.BATCH_ROWS_MAX,
      bytesMax: workerLimits.batchBytesMax,
      waitMs: config.BATCH_WAIT_MS,
    }),
    delivery: new BatchDelivery({
      ...shared,
      stages: {
        step: (stage) => progress.track(stage.at, step(stage)),
        recoveryOf: (batchId, chunkIds) => stages.recoveryOf(batchId, chunkIds),
      },
      shardRepairs: new Semaphore(1, signal),
    }),
    chunkShare: dependencies.chunkBudget.share(),
    byteShare: dependencies.byteBudget.share(),
  })
  return {
    get heldChunks() {
      return consumer.heldChunks
    },
    progress,
    stop: async () => {
      await shard.stop()
      await consumer.close()
    },
  }
}
