export { BatchLedger, type BatchRecord, type BatchRepair, CONFIRMED_TTL_S } from './batch-ledger.ts'
export { type Chunk, decodeChunk, encodeChunk, type HeldChunk } from './chunk.ts'
export { ChunkConsumer, type ChunkConsumerOptions, type Fetch } from './chunk-consumer.ts'
export type { StoredBatch, StoredBatchRows } from './batch-finish.ts'
export type { QueueEnd } from './job-moves.ts'
export { type AddObserver, ChunkQueue, QueueFullError, QueueUnavailableError } from './chunk-queue.ts'
export { type FailedChunk, FailedChunks, type PurgeOutcome, type RetryOutcome } from './failed-chunks.ts'
export { FetchMonitor } from './fetch-monitor.ts'
export {
  Heartbeat,
  heartbeatLimits,
  type ProcessReport,
  type ProcessWork,
  readProcesses,
  type RecentLag,
} from './heartbeat.ts'
export { MemoryTrend } from './memory-trend.ts'
export {
  QueueGauge,
  type QueueReading,
  type RedisInfoServer,
  type ServerMemory,
  type ShardReading,
} from './queue-gauge.ts'
export { chunkJobName, type QueueNames, queueNames, shardNames } from './queue-names.ts'
export type { FoundRecord, QueueRecord, RecordLimits } from './recorded-add.ts'
export { Reporting } from './reporting.ts'
export { queuedRows, readRowTotals, type RowTotals } from './row-totals.ts'
export { ShardCount } from './shard-count.ts'
export { ShardedQueue } from './sharded-queue.ts'
