import { Batch } from './batch.ts'
import { ENVELOPE_BYTES } from './encode.ts'
import type { QueuedEntry } from './entry.ts'
import type { Settings } from './options.ts'
import type { Platform } from './platform.ts'

/**
 * Which batches are sent first: those that failed, those that were not tried yet, or those that may have been stored. Of the last ones, the
 * newest is taken only if there is nothing else.
 */
export type Preference = 'failed' | 'untried' | 'uncertain'

/** The batches that are not in flight, within the limits of memory and of the spool. Counts all entries in memory. */
export class Queue {
  readonly #settings: Settings
  readonly #platform: Platform
  /** Batches that were not tried yet, oldest first. Only the last one takes further entries. */
  #untried: Batch[] = []
  /** Batches that wait for another attempt, and requests of the caller. */
  readonly #delayed = new Set<Batch>()
  /** In memory, including batches in flight. */
  entries = 0
  bytes = 0
  /** Batches that were dropped while room was made, until someone takes them. */
  readonly overflowed: Batch[] = []

  constructor(settings: Settings, platform: Platform) {
    this.#settings = settings
    this.#platform = platform
  }

  get batches(): readonly Batch[] {
    return [...this.#delayed, ...this.#untried]
  }

  /** Whether there is room in memory for a full batch, or for an entry that is larger. */
  hasRoomForBatch(entryBytes = 0): boolean {
    const { batchEntriesMax, batchBytesMax, queueBytesMax } = this.#settings
    // An entry that never fits is dropped.
    return this.#hasRoomFor(batchEntriesMax, Math.min(Math.max(batchBytesMax, entryBytes), queueBytesMax))
  }

  /**
   * Makes room for an entry: first in memory, by leaving batches to the spool or by dropping them, then in the spool.
   *
   * @returns whether there is room
   */
  makeRoom(bytes: number): boolean {
    const { queueBytesMax, spool } = this.#settings
    if (bytes > queueBytesMax) return false
    while (!this.#hasRoomFor(1, bytes)) {
      if (!this.#unloadNewest() && !this.#dropOldest(({ isLoaded }) => isLoaded)) return false
    }
    while (spool?.hasRoomFor(bytes) === false) {
      if (!this.#dropOldest(({ record }) => record !== undefined)) return false
    }
    return true
  }

  /**
   * Adds an entry that fits.
   *
   * @returns whether another batch can be sent than before, or at another time
   */
  add(entry: QueuedEntry): boolean {
    this.entries += 1
    this.bytes += entry.bytes
    const open = this.#untried.at(-1)
    const isOpen = open !== undefined && this.#takes(open, entry.bytes)
    const batch = isOpen ? open : this.#create()
    if (!isOpen) this.#untried.push(batch)
    batch.add(entry)
    return !isOpen || !this.#takes(batch, 0)
  }

  /** Adds batches of other processes, which are older than all others. */
  addOldest(batches: readonly Batch[]): void {
    this.#untried = [...batches, ...this.#untried]
  }

  delay(batch: Batch): void {
    if (batch.canUnload && !this.hasRoomForBatch()) this.#unload(batch)
    this.#delayed.add(batch)
  }

  /** Makes all batches due that were not tried yet. */
  hurry(): void {
    const last = this.#untried.at(-1)
    if (last !== undefined) last.isUrgent = true
  }

  /** Brings the entries of a batch back into memory. */
  load(batch: Batch, entries: QueuedEntry[]): void {
    batch.entries = entries
    batch.bytes = entries.reduce((sum, { bytes }) => sum + bytes, 0)
    this.entries += batch.count
    this.bytes += batch.bytes
  }

  release({ isLoaded, count, bytes }: Batch): void {
    if (!isLoaded) return
    this.entries -= count
    this.bytes -= bytes
  }

  takeDue(nowMs: number, preference: Preference): Batch | undefined {
    const takeDelayed = (matches = (_batch: Batch): boolean => true): Batch | undefined =>
      this.#takeDelayed((batch) => batch.retryAtMs <= nowMs && matches(batch))
    const takeUntried = (): Batch | undefined =>
      this.#untriedDueAtMs(nowMs) <= nowMs ? this.#untried.shift() : undefined
    // A batch that has failed comes after the requests of the caller that waited then.
    if (preference === 'untried') return takeUntried() ?? takeDelayed()
    if (preference === 'failed') return takeDelayed() ?? takeUntried()
    const last = [...this.#delayed].at(-1)
    return (
      takeDelayed((batch) => batch !== last && batch.uncertainSince !== undefined) ??
      takeDelayed((batch) => batch !== last) ??
      takeUntried() ??
      takeDelayed()
    )
  }

  takeOldest(matches: (batch: Batch) => boolean = () => true): Batch | undefined {
    const index = this.#untried.findIndex(matches)
    return this.#takeDelayed(matches) ?? (index === -1 ? undefined : this.#untried.splice(index, 1)[0])
  }

  /** When a batch can be sent. Infinity if there is none. */
  nextAtMs(nowMs: number): number {
    let atMs = this.#untriedDueAtMs(nowMs)
    for (const { retryAtMs } of this.#delayed) atMs = Math.min(atMs, retryAtMs)
    return atMs
  }

  /** When the oldest untried batch is due: not after `nowMs` if it can be sent. Infinity if there is none. */
  #untriedDueAtMs(nowMs: number): number {
    const [first] = this.#untried
    if (first === undefined) return Infinity
    if (this.#untried.length > 1 || first.isUrgent || !this.#takes(first, 0)) return nowMs
    return first.openedAtMs + this.#settings.flushIntervalMs
  }

  #create(): Batch {
    const key = this.#platform.randomKey()
    return new Batch(key, this.#platform.monotonicMs(), this.#settings.spool?.create(key))
  }

  #takeDelayed(matches: (batch: Batch) => boolean): Batch | undefined {
    for (const batch of this.#delayed) {
      if (matches(batch) && this.#delayed.delete(batch)) return batch
    }
    return undefined
  }

  /** Whether a batch takes a further entry of this size. */
  #takes({ isLoaded, count, bytes }: Batch, entryBytes: number): boolean {
    const { batchEntriesMax, batchBytesMax } = this.#settings
    if (!isLoaded || count >= batchEntriesMax) return false
    // With a comma between two entries.
    return ENVELOPE_BYTES + bytes + count + entryBytes <= batchBytesMax
  }

  #hasRoomFor(entries: number, bytes: number): boolean {
    const { queueEntriesMax, queueBytesMax } = this.#settings
    return this.entries + entries <= queueEntriesMax && this.bytes + bytes <= queueBytesMax
  }

  /** Leaves a batch to the spool: of the full ones the newest, since the others are sent earlier, else the open one. */
  #unloadNewest(): boolean {
    const newest =
      this.#untried.findLast((batch, index) => index < this.#untried.length - 1 && batch.canUnload) ??
      [...this.#delayed].find(({ canUnload }) => canUnload) ??
      this.#untried.findLast(({ canUnload }) => canUnload)
    if (newest !== undefined) this.#unload(newest)
    return newest !== undefined
  }

  #unload(batch: Batch): void {
    this.release(batch)
    batch.entries = []
  }

  #dropOldest(matches: (batch: Batch) => boolean): boolean {
    if (this.#settings.overflow === 'drop-newest') return false
    const oldest = this.takeOldest(matches)
    if (oldest === undefined) return false
    this.release(oldest)
    // Makes room at once. The spool loads a record before it removes it.
    if (!oldest.isLoaded) oldest.loading = oldest.record?.load()
    void oldest.record?.remove()
    this.overflowed.push(oldest)
    return true
  }
}
