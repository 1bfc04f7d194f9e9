import type { QueuedEntry } from '../entry.ts'
import type { Batch } from './batch.ts'

export interface BatchLimits {
  readonly batchEntriesMax: number
  readonly batchBytesMax: number
  readonly flushIntervalMs: number
}

/** `{"logs":[` and `]}`. */
const ENVELOPE_BYTES = 11

/** Batches in the order of their entries. Only the last one is open. */
export class BatchQueue {
  readonly #limits: BatchLimits
  readonly #create: (nowMs: number) => Batch
  #batches: Batch[] = []

  /** @param create makes an empty batch */
  constructor(limits: BatchLimits, create: (nowMs: number) => Batch) {
    this.#limits = limits
    this.#create = create
  }

  /** Oldest first. */
  get batches(): readonly Batch[] {
    return this.#batches
  }

  /** @returns whether another batch can be sent than before, or at another time */
  add(entry: QueuedEntry, nowMs: number): boolean {
    const last = this.#batches.at(-1)
    if (last !== undefined && this.#hasRoom(last, entry.bytes)) {
      last.add(entry)
      return this.#isFull(last)
    }
    const batch = this.#create(nowMs)
    batch.add(entry)
    this.#batches.push(batch)
    return true
  }

  /** Adds batches that are older than all others. */
  addOldest(batches: readonly Batch[]): void {
    this.#batches = [...batches, ...this.#batches]
  }

  /** Takes the oldest batch if it can be sent. */
  take(nowMs: number): Batch | undefined {
    return this.dueAtMs(nowMs) <= nowMs ? this.#batches.shift() : undefined
  }

  /** Takes the oldest batch with a property. */
  takeFirst(matches: (batch: Batch) => boolean): Batch | undefined {
    const index = this.#batches.findIndex(matches)
    return index === -1 ? undefined : this.#batches.splice(index, 1)[0]
  }

  /** When the oldest batch is due: not after `nowMs` if it can be sent. Infinity if there is none. */
  dueAtMs(nowMs: number): number {
    const first = this.#batches[0]
    if (first === undefined) return Infinity
    if (this.#batches.length > 1 || first.isUrgent || this.#isFull(first)) return nowMs
    return first.openedAtMs + this.#limits.flushIntervalMs
  }

  /** Makes all batches due. */
  hurry(): void {
    const last = this.#batches.at(-1)
    if (last !== undefined) last.isUrgent = true
  }

  #hasRoom(batch: Batch, bytes: number): boolean {
    const { batchEntriesMax, batchBytesMax } = this.#limits
    if (!batch.isLoaded || batch.count >= batchEntriesMax) return false
    // With a comma between two entries.
    return ENVELOPE_BYTES + batch.bytes + batch.count + bytes <= batchBytesMax
  }

  #isFull(batch: Batch): boolean {
    return !this.#hasRoom(batch, 0)
  }
}
