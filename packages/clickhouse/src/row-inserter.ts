import { framesWithout } from '@sluice/rows'
import type { FrameInserter } from './frame-inserter.ts'
import { classifyInsertError, describeError } from './insert-errors.ts'
import { InsertOnce, type InsertOnceOptions, type InsertTarget } from './insert-once.ts'
import type { StoredRows } from './stored-rows.ts'

export interface RowInserterOptions extends InsertOnceOptions {
  readonly frameInserter: Pick<FrameInserter, 'insert'>
  readonly storedRows: Pick<StoredRows, 'find'>
  /** How long after its failure an unacknowledged insert may still commit, ms. */
  readonly lingerMaxMs: number
  readonly monotonicMs: () => number
}

/** What is known about earlier attempts to insert the same rows, by this worker or another one. */
export type InsertHistory =
  | { readonly sent: false }
  /** No earlier attempt can commit after this time, on the clock `monotonicMs`. */
  | { readonly sent: true; readonly mayLandUntilMs: number }

export const neverSent: InsertHistory = { sent: false }

/** ClickHouse rejected the insert while an earlier, unacknowledged attempt may still commit: not yet a final rejection. */
class UnsettledError extends Error {
  override name = 'UnsettledError'
}

/** The lookup of stored rows failed. Always transient: the error says nothing about the rows themselves. */
class LookupError extends Error {
  override name = 'LookupError'
}

/** Inserts frames of rows exactly once. */
export class RowInserter {
  readonly #options: RowInserterOptions

  constructor(options: RowInserterOptions) {
    this.#options = options
  }

  /**
   * Prepares the attempts to insert frames. An attempt throws what `FrameInserter.insert` throws, UnsettledError and
   * LookupError.
   */
  prepare(frames: readonly Buffer[], token: string, history: InsertHistory): InsertOnce<Buffer> {
    const target = new FramesTarget(frames, history, this.#options)
    return new InsertOnce(target, token, history.sent, this.#options)
  }
}

class FramesTarget implements InsertTarget<Buffer> {
  readonly all: readonly Buffer[]
  readonly #options: RowInserterOptions
  #mayLandUntilMs: number

  constructor(frames: readonly Buffer[], history: InsertHistory, options: RowInserterOptions) {
    this.all = frames
    this.#mayLandUntilMs = history.sent ? history.mayLandUntilMs : 0
    this.#options = options
  }

  async findMissing(): Promise<Buffer[]> {
    const stored = await this.#options.storedRows.find(this.all).catch((error: unknown) => {
      throw new LookupError(describeError(error))
    })
    return framesWithout(stored, this.all)
  }

  async insert(frames: readonly Buffer[], token: string): Promise<void> {
    const { frameInserter, monotonicMs, lingerMaxMs } = this.#options
    try {
      await frameInserter.insert(frames, token)
    } catch (error) {
      if (classifyInsertError(error).failure === 'transient') {
        this.#mayLandUntilMs = monotonicMs() + lingerMaxMs
      } else if (monotonicMs() < this.#mayLandUntilMs) {
        throw new UnsettledError(
          `an earlier attempt may still commit; this one was rejected: ${describeError(error)}`,
        )
      }
      throw error
    }
  }
}
