import { deferred } from '../deferred.ts'
import type { QueuedEntry } from '../entry.ts'
import type { Settlement } from '../hooks.ts'
import type { SpoolRecord } from '../spool.ts'

/** What became of the entries of a batch. */
export interface BatchResult {
  readonly accepted: number
  readonly rejected: number
  readonly dropped: number
  /** Left in the spool for the next process. */
  readonly kept: number
}

/** A time, by both clocks: the monotonic one may stop while a computer sleeps, and the time of day may be changed. */
export interface ClockTimes {
  readonly monotonicMs: number
  readonly wallMs: number
}

/**
 * The entries of one request, and the state of its attempts.
 *
 * open (entries are added) → closed (full) → in flight ⇄ delayed (waits for its next attempt) → settled. An open batch that is due is sent
 * as it is. A batch that is split is settled when its halves are.
 *
 * The entries of a batch with a record may be unloaded, until the next attempt.
 */
export class Batch {
  readonly idempotencyKey: string
  readonly openedAtMs: number
  /** Gets the end of a request that the caller made, with its own key. Such a batch is never split: its parts would have other keys. */
  readonly onSettlement: ((settlement: Settlement) => void) | undefined
  /** Undefined if the batch is not in the spool. */
  record: SpoolRecord | undefined
  /** Whether to send it before it is full or due. */
  isUrgent = false
  /** How many attempts have failed. */
  failedAttempts = 0
  firstAttemptAtMs: number | undefined
  /** When the first attempt began that may have succeeded without an answer. */
  uncertainSince: ClockTimes | undefined
  /** The time of the next attempt. */
  retryAtMs = 0
  readonly settled: Promise<BatchResult>
  readonly settle: (result: BatchResult) => void
  #entries: readonly QueuedEntry[] | undefined
  #open: QueuedEntry[] = []
  #count = 0
  #bytes = 0

  constructor(
    idempotencyKey: string,
    openedAtMs: number,
    { record, onSettlement }: Partial<Pick<Batch, 'record' | 'onSettlement'>> = {},
  ) {
    this.idempotencyKey = idempotencyKey
    this.openedAtMs = openedAtMs
    this.record = record
    this.onSettlement = onSettlement
    this.#entries = this.#open
    const { promise, resolve } = deferred<BatchResult>()
    this.settled = promise
    this.settle = resolve
  }

  /** A batch with entries that are only in the spool. */
  static unloaded(
    idempotencyKey: string,
    openedAtMs: number,
    { record, entries, bytes }: { record: SpoolRecord; entries: number; bytes: number },
  ): Batch {
    const batch = new Batch(idempotencyKey, openedAtMs, { record })
    batch.#entries = undefined
    batch.#count = entries
    batch.#bytes = bytes
    return batch
  }

  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Empty if they are not loaded. */
  get entries(): readonly QueuedEntry[] {
    return this.#entries ?? []
  }

  get isLoaded(): boolean {
    return this.#entries !== undefined
  }

  add(entry: QueuedEntry): void {
    this.#open.push(entry)
    this.#count += 1
    this.#bytes += entry.bytes
    this.record?.add(entry.json, entry.bytes)
  }

  load(entries: readonly QueuedEntry[]): void {
    this.#entries = entries
  }

  unload(): void {
    this.#entries = undefined
    this.#open = []
  }
}
