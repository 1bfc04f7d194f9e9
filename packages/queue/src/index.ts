export { BatchLedger, type BatchRecord, type BatchRepair, CONFIRMED_TTL_S } from './batch-ledger.ts'
export { type Chunk, decodeChunk, encodeChunk, type HeldChunk } from './chunk.ts'
export { ChunkConsumer, type ChunkConsumerOptions, type Fetch } from './chunk-consumer.ts'
export type { StoredBatch, StoredBatchRows } from './batch-finish.ts'
export type { QueueEnd } from './job-moves.ts'
export { type AddObserver, ChunkQueue } from './chunk-queue.ts'
export { type FailedChunk, FailedChunks, type PurgeOutcome, type RetryOutcome } from './failed-chunks.ts'
export { FetchMonitor } from './fetch-monitor.ts'
export {
  chunkJobName,
  queuedRows,
  type QueueNames,
  queueNames,
  readRowTotals,
  type RowTotals,
  shardNames,
} from './queue-names.ts'
export {
  type FoundRecord,
  QueueFullError,
  type QueueRecord,
  QueueUnavailableError,
  type RecordLimits,
} from './recorded-add.ts'
export { ShardCount, ShardedQueue } from './shards.ts'
