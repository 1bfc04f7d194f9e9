import type { BatchLedger, ChunkConsumer } from '@sluice/queue'

/** The shard's queue and the records next to it. */
export interface ShardQueue {
  readonly ledger: Pick<
    BatchLedger,
    'claim' | 'read' | 'recordSplit' | 'beginRepair' | 'renewLease' | 'endLease'
  >
  readonly consumer: Pick<
    ChunkConsumer,
    'fetch' | 'load' | 'finish' | 'requeue' | 'fail' | 'forget' | 'heldChunks' | 'close'
  >
}
