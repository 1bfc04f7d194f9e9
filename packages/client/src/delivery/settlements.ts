import type { EntryError, QueuedEntry } from '../entry.ts'
import type { HookCaller } from '../hook-caller.ts'
import type { DropReason, EntryRejection, Settlement } from '../hooks.ts'
import type { Batch, BatchResult } from './batch.ts'

/** Counts of entries since the client was created. */
export interface EntryCounts {
  /** Stored, or queued by the API. */
  accepted: number
  rejected: number
  dropped: number
  /** Left in the spool by `close`. */
  kept: number
}

/** Why an attempt failed. */
export interface LastAttempt {
  readonly reason: string
  readonly cause: unknown
}

/** Ends batches: counts their entries, and tells the hooks. */
export class Settlements {
  readonly counts: EntryCounts = { accepted: 0, rejected: 0, dropped: 0, kept: 0 }
  readonly #hooks: HookCaller

  constructor(hooks: HookCaller) {
    this.#hooks = hooks
  }

  processed(batch: Batch, accepted: number, rejections: readonly EntryRejection[]): void {
    const { entries } = batch
    this.#settle(batch, { outcome: 'answered', accepted, rejected: batch.count - accepted, rejections })
    // The API lists several errors of one entry.
    const reported = new Set<number>()
    for (const { index, error } of rejections) {
      const entry = entries[index]
      if (entry === undefined || reported.has(index)) continue
      reported.add(index)
      this.#hooks.onRejected({ entry: entry.json, error, tag: entry.tag })
    }
  }

  rejected(batch: Batch, error: EntryError): void {
    const { entries } = batch
    const rejections = entries.map((_, index) => ({ index, error }))
    this.#settle(batch, { outcome: 'rejected', rejected: batch.count, rejections, reason: error.message })
    for (const { json, tag } of entries) this.#hooks.onRejected({ entry: json, error, tag })
  }

  /** @param last the attempt that failed last, if there was one */
  dropped(batch: Batch, outcome: DropReason, last?: LastAttempt): void {
    const { entries } = batch
    this.#settle(batch, { outcome, dropped: batch.count, reason: last?.reason, cause: last?.cause })
    this.#hooks.onDropped(entries, outcome)
  }

  /** Leaves a batch in the spool. */
  kept(batch: Batch, last?: LastAttempt): void {
    this.#settle(batch, { outcome: 'kept', kept: batch.count, reason: last?.reason, cause: last?.cause })
  }

  /** Entries that never were in a batch. */
  droppedEntry(entry: QueuedEntry, reason: DropReason): void {
    this.counts.dropped += 1
    this.#hooks.onDropped([entry], reason)
  }

  rejectedEntry(entry: unknown, error: EntryError, tag: unknown): void {
    this.counts.rejected += 1
    this.#hooks.onRejected({ entry, error, tag })
  }

  #settle(batch: Batch, { outcome, rejections = [], reason, cause, ...some }: Ending): void {
    const result = { accepted: 0, rejected: 0, dropped: 0, kept: 0, ...some }
    this.counts.accepted += result.accepted
    this.counts.rejected += result.rejected
    this.counts.dropped += result.dropped
    this.counts.kept += result.kept
    const { accepted, rejected } = result
    const settlement = { entries: batch.entries, outcome, accepted, rejected, rejections, reason, cause }
    this.#hooks.onSettled(settlement)
    batch.settle(result)
    batch.onSettlement?.(settlement)
  }
}

/** How a batch ended. Counts that are absent are 0. */
type Ending = Partial<BatchResult> &
  Pick<Settlement, 'outcome'> &
  Partial<Pick<Settlement, 'rejections' | 'reason' | 'cause'>>
