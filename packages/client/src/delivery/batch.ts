import { deferred } from '../deferred.ts'
import type { QueuedEntry } from '../entry.ts'

/** What became of the entries of a batch. */
export interface BatchResult {
  readonly accepted: number
  readonly rejected: number
  readonly dropped: number
}

/**
 * The entries of one request, and the state of its attempts.
 *
 * open (entries are added) → closed (full) → in flight ⇄ delayed (waits for its next attempt) → settled. An open batch that is due is sent
 * as it is. A batch that is split is settled when its parts are.
 */
export class Batch {
  readonly idempotencyKey: string
  readonly openedAtMs: number
  readonly entries: QueuedEntry[]
  bytes = 0
  /** Whether to send it before it is full or due. */
  isUrgent = false
  /** How many attempts have failed. */
  failedAttempts = 0
  firstAttemptAtMs: number | undefined
  /** When the first attempt began that the API may have accepted, although there was no answer. */
  uncertainSinceMs: number | undefined
  /** The time of the next attempt. */
  retryAtMs = 0
  readonly settled: Promise<BatchResult>
  readonly settle: (result: BatchResult) => void

  constructor(idempotencyKey: string, openedAtMs: number, entries: readonly QueuedEntry[] = []) {
    this.idempotencyKey = idempotencyKey
    this.openedAtMs = openedAtMs
    this.entries = [...entries]
    for (const entry of entries) this.bytes += entry.bytes
    const { promise, resolve } = deferred<BatchResult>()
    this.settled = promise
    this.settle = resolve
  }

  add(entry: QueuedEntry): void {
    this.entries.push(entry)
    this.bytes += entry.bytes
  }
}
