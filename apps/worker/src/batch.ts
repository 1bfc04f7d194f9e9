import type { HeldChunk, StoredBatch } from '@sluice/queue'

/** A claimed batch whose chunks this process has in memory. */
export interface Batch {
  readonly id: string
  readonly chunks: readonly HeldChunk[]
  /** Ranges of its rows that must not be sent as a whole, as persisted. The whole batch is one of them. */
  readonly splits: ReadonlySet<string>
}

/** A batch that this worker repairs. */
export interface BatchInRepair extends Batch {
  /** The number of the repair. */
  readonly repair: number
}

/** What is known of a batch before its record is read. Times are on the monotonic clock. */
export interface Recovery {
  readonly batchId: string
  /** The chunks of the batch that this process holds. There may be others. */
  readonly chunkIds: readonly string[]
  /** The error with which ClickHouse has rejected the batch as a whole. */
  readonly rejection?: Error
  /** The number of the last repair that this worker knows to have begun, whichever worker began it. 0 for a batch that was just claimed. */
  readonly lastRepair: number
  /** Until then, an insert of rejected rows that got no response may still commit. */
  readonly unsettledUntilMs: number
  /** When attempts ended with rows rejected with an unknown code: the first one, and the start of the last one. */
  readonly suspension?: { readonly firstMs: number; readonly lastMs: number }
}

/** Where a batch stands, as far as this worker knows. docs/exactly-once.md uses the same words. */
export type Stage =
  /** It is new: to be inserted as a whole. No other worker has sent it. `sinceMs` is a time before its claim. */
  | { readonly at: 'claimed'; readonly batch: Batch; readonly sinceMs: number }
  /** Its record is to be read: another worker claimed it or may have taken it over, or it needs more than one insert. */
  | { readonly at: 'recovering'; readonly recovery: Recovery }
  /** Another worker is repairing it, or an attempt got no response: to be recovered later. */
  | { readonly at: 'waiting'; readonly recovery: Recovery; readonly untilMs?: number }
  /** Its chunks are in memory: what ClickHouse does not have of it is to be inserted as a whole. */
  | { readonly at: 'loaded'; readonly recovery: Recovery; readonly batch: BatchInRepair }
  /** ClickHouse rejected it as a whole: to be inserted in parts. */
  | { readonly at: 'rejected'; readonly recovery: Recovery; readonly batch: BatchInRepair }
  /** Single rows are rejected with an unknown code: to be retried later. */
  | { readonly at: 'suspended'; readonly recovery: Recovery }
  /**
   * ClickHouse has its rows: to be confirmed and completed, unless another repair has begun. `repair` is 0 after the first insert, and
   * undefined if the batch is confirmed already.
   */
  | {
      readonly at: 'stored'
      readonly stored: StoredBatch
      readonly repair: number | undefined
    }
  | { readonly at: 'done' }

/** The ids of its chunks, in order. */
export function idsOf({ chunks }: Batch): string[] {
  return chunks.map(({ id }) => id)
}

export function framesOf({ chunks }: Batch): Buffer[] {
  return chunks.map(({ frame }) => frame)
}

/** The number of its rows. */
export function rowsOf({ chunks }: Batch): number {
  return chunks.reduce((sum, { rows }) => sum + rows, 0)
}

/** The id of the batch in a stage. */
export function batchIdOf(stage: Exclude<Stage, { readonly at: 'done' }>): string {
  if ('recovery' in stage) return stage.recovery.batchId
  return 'batch' in stage ? stage.batch.id : stage.stored.id
}
