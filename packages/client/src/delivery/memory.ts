import type { Batch } from './batch.ts'

export interface MemoryLimits {
  readonly queueEntriesMax: number
  readonly queueBytesMax: number
  readonly batchEntriesMax: number
  readonly batchBytesMax: number
}

/** Counts the entries in memory. */
export class Memory {
  readonly #limits: MemoryLimits
  #entries = 0
  #bytes = 0

  constructor(limits: MemoryLimits) {
    this.#limits = limits
  }

  get entries(): number {
    return this.#entries
  }

  get bytes(): number {
    return this.#bytes
  }

  hasRoomFor(bytes: number, entries = 1): boolean {
    const { queueEntriesMax, queueBytesMax } = this.#limits
    return this.#entries + entries <= queueEntriesMax && this.#bytes + bytes <= queueBytesMax
  }

  /** Whether there is room for a full batch, or for an entry that is larger. */
  hasRoomForBatch(entryBytes = 0): boolean {
    const { queueEntriesMax, queueBytesMax, batchEntriesMax, batchBytesMax } = this.#limits
    const bytes = Math.max(batchBytesMax, entryBytes)
    return this.#entries + batchEntriesMax <= queueEntriesMax && this.#bytes + bytes <= queueBytesMax
  }

  addEntry(bytes: number): void {
    this.#entries += 1
    this.#bytes += bytes
  }

  /** Counts a batch that was loaded. */
  add(batch: Batch): void {
    this.#entries += batch.count
    this.#bytes += batch.bytes
  }

  /** No longer counts a batch. Must be called before it is unloaded. */
  release(batch: Batch): void {
    if (!batch.isLoaded) return
    this.#entries -= batch.count
    this.#bytes -= batch.bytes
  }
}
