import { workerLimits } from './limits.ts'

/**
 * Chunks whose completion is expected. Another worker may complete chunks of a recovered batch, and this one never learns of it.
 * Above this number the oldest are dropped, and their batch keeps the long TTL of a batch whose worker crashed.
 */
const OPEN_MAX = 16 * workerLimits.chunksMax

/** Counts the completed jobs of each confirmed batch, to release the batch after the last one. */
export class CompletionTracker {
  readonly #open = new Map<
    string,
    { readonly batchId: string; readonly members: readonly string[]; left: Set<string> }
  >()
  readonly #onAllCompleted: (batchId: string, members: readonly string[]) => void

  constructor(onAllCompleted: (batchId: string, members: readonly string[]) => void) {
    this.#onAllCompleted = onAllCompleted
  }

  expect(batchId: string, members: readonly string[]): void {
    const batch = { batchId, members, left: new Set(members) }
    for (const id of members) this.#open.set(id, batch)
    for (const oldest of this.#open.keys()) {
      if (this.#open.size <= OPEN_MAX) break
      this.#open.delete(oldest)
    }
  }

  /** The number of chunks whose completion is expected. */
  get size(): number {
    return this.#open.size
  }

  completed(chunkId: string): void {
    const batch = this.#open.get(chunkId)
    if (batch === undefined) return
    this.#open.delete(chunkId)
    batch.left.delete(chunkId)
    if (batch.left.size === 0) this.#onAllCompleted(batch.batchId, batch.members)
  }
}
