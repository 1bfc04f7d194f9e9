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
  }

  completed(chunkId: string): void {
    const batch = this.#open.get(chunkId)
    if (batch === undefined) return
    this.#open.delete(chunkId)
    batch.left.delete(chunkId)
    if (batch.left.size === 0) this.#onAllCompleted(batch.batchId, batch.members)
  }
}
