import type { DropReason } from '../hooks.ts'
import type { Batch } from './batch.ts'
import type { Changes } from './changes.ts'
import type { Memory } from './memory.ts'
import type { LastAttempt, Settlements } from './settlements.ts'
import type { Spooling } from './spooling.ts'

export interface EndingParts {
  readonly memory: Memory
  readonly settlements: Settlements
  readonly spooling: Spooling | undefined
  readonly changes: Changes
  /** Resolves when the disk is not waited for any longer. */
  readonly diskEnd: Promise<void>
}

/** Ends batches: frees what they occupy, and tells what became of them. */
export class Endings {
  readonly #parts: EndingParts

  constructor(parts: EndingParts) {
    this.#parts = parts
  }

  /** @param settle counts the entries and calls the hooks */
  settle(batch: Batch, settle: (settlements: Settlements) => void): void {
    const { memory, spooling, settlements, changes } = this.#parts
    memory.release(batch)
    void spooling?.remove(batch)
    settle(settlements)
    changes.happen()
  }

  /** Ends a batch whose room is free already, when its entries are loaded for the hooks. */
  async dropLoaded(batch: Batch, loading: Promise<unknown> | undefined, outcome: DropReason): Promise<void> {
    if (loading !== undefined) await loading
    this.#parts.settlements.dropped(batch, outcome)
    this.#parts.changes.happen()
  }

  /** Ends a batch because the client is closing. What is in the spool stays there. */
  giveUp(batch: Batch, last?: LastAttempt): void {
    const { record } = batch
    this.#parts.memory.release(batch)
    if (record === undefined || record.isWritten) this.#leave(batch, last)
    else void Promise.race([record.written(), this.#parts.diskEnd]).then(() => this.#leave(batch, last))
  }

  #leave(batch: Batch, last: LastAttempt | undefined): void {
    const { settlements, changes } = this.#parts
    if (batch.record?.isWritten === true) settlements.kept(batch, last)
    else settlements.dropped(batch, 'closed', last)
    changes.happen()
  }
}
