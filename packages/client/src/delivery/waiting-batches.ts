import type { QueuedEntry } from '../entry.ts'
import type { OverflowPolicy } from '../options.ts'
import type { Batch } from './batch.ts'
import { type BatchLimits, BatchQueue } from './batch-queue.ts'
import { Memory, type MemoryLimits } from './memory.ts'

export interface WaitingLimits extends BatchLimits, MemoryLimits {
  readonly overflow: OverflowPolicy
}

export interface WaitingEvents {
  /** Makes an empty batch. */
  readonly create: (nowMs: number) => Batch
  /** A batch is taken from the queue, which is full. */
  readonly onOverflow: (batch: Batch) => unknown
}

/**
 * Which batches are sent first: those that wait for another attempt, those that were not tried yet, or those that may have been stored. Of the
 * last ones, the newest is taken only if there is nothing else.
 */
export type Preference = 'failed' | 'untried' | 'uncertain'

/** The batches that are not in flight: within the limits of memory and of the spool. */
export class WaitingBatches {
  readonly #limits: WaitingLimits
  readonly #events: WaitingEvents
  /** Batches that were not tried yet. */
  readonly #queue: BatchQueue
  /** Batches that wait for another attempt, and requests of the caller. */
  readonly #delayed = new Set<Batch>()
  /** Counts the entries in flight too. */
  readonly memory: Memory

  constructor(limits: WaitingLimits, events: WaitingEvents) {
    this.#limits = limits
    this.#events = events
    this.#queue = new BatchQueue(limits, events.create)
    this.memory = new Memory(limits)
  }

  get batches(): readonly Batch[] {
    return [...this.#delayed, ...this.#queue.batches]
  }

  /** Entries that are only in the spool. */
  get unloadedEntries(): number {
    return this.batches.reduce((sum, { isLoaded, count }) => (isLoaded ? sum : sum + count), 0)
  }

  /**
   * Adds an entry that fits.
   *
   * @returns whether another batch can be sent than before, or at another time
   */
  add(entry: QueuedEntry, nowMs: number): boolean {
    this.memory.addEntry(entry.bytes)
    return this.#queue.add(entry, nowMs)
  }

  /**
   * Adds a request that is sent as it is.
   *
   * @returns whether it fits
   */
  addRequest(batch: Batch): boolean {
    const { count, bytes } = batch
    if (!this.#makeRoomInMemory(bytes, count)) return false
    this.memory.add(batch)
    this.#delayed.add(batch)
    return true
  }

  /** Adds batches that are older than all others. */
  addOldest(batches: readonly Batch[]): void {
    this.#queue.addOldest(batches)
  }

  /** Adds a batch that waits until its `retryAtMs`. */
  delay(batch: Batch): void {
    if (canUnload(batch) && !this.memory.hasRoomForBatch()) this.#unload(batch)
    this.#delayed.add(batch)
  }

  /** Makes all batches due that were not tried yet. */
  hurry(): void {
    this.#queue.hurry()
  }

  /** Takes a batch that can be sent now. */
  takeDue(nowMs: number, preference: Preference): Batch | undefined {
    const takeDelayed = (matches: (batch: Batch) => boolean): Batch | undefined =>
      this.#takeDelayed((batch) => batch.retryAtMs <= nowMs && matches(batch))
    const takeAny = (): Batch | undefined => takeDelayed(() => true)
    // A batch that has failed comes after the requests of the caller that waited then.
    if (preference === 'untried') return this.#queue.take(nowMs) ?? takeAny()
    if (preference === 'failed') return takeAny() ?? this.#queue.take(nowMs)
    const last = [...this.#delayed].at(-1)
    return (
      takeDelayed((batch) => batch !== last && batch.uncertainSince !== undefined) ??
      takeDelayed((batch) => batch !== last) ??
      this.#queue.take(nowMs) ??
      takeAny()
    )
  }

  /** Takes the oldest batch with a property. */
  takeFirst(matches: (batch: Batch) => boolean): Batch | undefined {
    return this.#takeDelayed(matches) ?? this.#queue.takeFirst(matches)
  }

  /** When a batch can be sent. Infinity if there is none. */
  nextAtMs(nowMs: number): number {
    let atMs = this.#queue.dueAtMs(nowMs)
    for (const { retryAtMs } of this.#delayed) atMs = Math.min(atMs, retryAtMs)
    return atMs
  }

  /**
   * Makes room for an entry: first in memory, by leaving batches to the spool or by dropping them, then in the spool.
   *
   * @returns whether there is room
   */
  makeRoom(bytes: number, hasSpoolRoom: (bytes: number) => boolean): boolean {
    if (!this.#makeRoomInMemory(bytes, 1)) return false
    while (!hasSpoolRoom(bytes)) {
      if (!this.#dropOldest(({ record }) => record !== undefined)) return false
    }
    return true
  }

  #makeRoomInMemory(bytes: number, entries: number): boolean {
    if (bytes > this.#limits.queueBytesMax || entries > this.#limits.queueEntriesMax) return false
    while (!this.memory.hasRoomFor(bytes, entries)) {
      if (!this.#unloadNewest() && !this.#dropOldest((batch) => batch.isLoaded)) return false
    }
    return true
  }

  #takeDelayed(matches: (batch: Batch) => boolean): Batch | undefined {
    for (const batch of this.#delayed) {
      if (matches(batch) && this.#delayed.delete(batch)) return batch
    }
    return undefined
  }

  /** Leaves a batch to the spool: of the closed ones the newest, since the others are sent earlier, else the open one. */
  #unloadNewest(): boolean {
    const { batches } = this.#queue
    const newest =
      batches.findLast((batch, index) => index < batches.length - 1 && canUnload(batch)) ??
      [...this.#delayed].find(canUnload) ??
      batches.findLast(canUnload)
    if (newest !== undefined) this.#unload(newest)
    return newest !== undefined
  }

  #unload(batch: Batch): void {
    this.memory.release(batch)
    batch.unload()
  }

  #dropOldest(matches: (batch: Batch) => boolean): boolean {
    if (this.#limits.overflow === 'drop-newest') return false
    const oldest = this.takeFirst(matches)
    if (oldest === undefined) return false
    this.memory.release(oldest)
    this.#events.onOverflow(oldest)
    return true
  }
}

function canUnload({ isLoaded, record }: Batch): boolean {
  return isLoaded && record?.isWritten === true
}
