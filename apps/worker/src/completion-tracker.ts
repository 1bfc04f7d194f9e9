import { workerLimits } from './limits.ts'

/**
 * Chunks whose completion is waited for. Those of a recovered batch may be completed by another worker, and never be heard
 * of here: past this many the oldest are let go of, and their batch is remembered for as long as one whose worker died.
 */
const OPEN_MAX = 16 * workerLimits.chunksMax

/** Counts down the jobs of each inserted batch, to know when the batch may be forgotten. */
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

  /** How many chunks' completion is waited for. */
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
