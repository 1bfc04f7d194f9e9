import type { QueuedEntry } from '../entry.ts'
import { Batch } from './batch.ts'

export interface QueueLimits {
  readonly batchEntriesMax: number
  readonly batchBytesMax: number
  readonly flushIntervalMs: number
}

/** Batches in the order of their entries. Only the last one is open. */
export class BatchQueue {
  readonly #limits: QueueLimits
  readonly #uuid: () => string
  readonly #batches: Batch[] = []

  constructor(limits: QueueLimits, uuid: () => string) {
    this.#limits = limits
    this.#uuid = uuid
  }

  get batches(): readonly Batch[] {
    return this.#batches
  }

  /** @returns whether a batch can be sent now that could not be sent before, or must be sent at another time */
  add(entry: QueuedEntry, nowMs: number): boolean {
    const last = this.#batches.at(-1)
    if (last !== undefined && this.#hasRoom(last, entry.bytes)) {
      last.add(entry)
      return this.#isFull(last)
    }
    const batch = new Batch(this.#uuid(), nowMs)
    batch.add(entry)
    this.#batches.push(batch)
    return true
  }

  /** Puts a batch back that was taken. */
  putBack(batch: Batch): void {
    this.#batches.unshift(batch)
  }

  /** Takes the oldest batch if it can be sent. */
  take(nowMs: number): Batch | undefined {
    const first = this.#batches[0]
    return first === undefined || this.dueAtMs(nowMs) > nowMs ? undefined : this.#batches.shift()
  }

  /** Takes the oldest batch, due or not. */
  takeOldest(): Batch | undefined {
    return this.#batches.shift()
  }

  /** When the oldest batch is due: `nowMs` if it can be sent. Infinity if there is none. */
  dueAtMs(nowMs: number): number {
    const first = this.#batches[0]
    if (first === undefined) return Infinity
    if (this.#batches.length > 1 || first.isUrgent || this.#isFull(first)) return nowMs
    return first.openedAtMs + this.#limits.flushIntervalMs
  }

  #hasRoom(batch: Batch, bytes: number): boolean {
    const { batchEntriesMax, batchBytesMax } = this.#limits
    // A comma for each entry, and the object around them.
    return (
      batch.failedAttempts === 0 &&
      batch.entries.length < batchEntriesMax &&
      batch.bytes + bytes + batch.entries.length + ENVELOPE_BYTES <= batchBytesMax
    )
  }

  #isFull(batch: Batch): boolean {
    return !this.#hasRoom(batch, 0)
  }
}

/** `{"logs":[` and `]}`. */
export const ENVELOPE_BYTES = 11
