import { framesWithout } from '@sluice/rows'
import type { FrameInserter } from './frame-inserter.ts'
import { classifyInsertError, describeError } from './insert-errors.ts'
import { InsertOnce, type InsertOnceOptions, type InsertTarget, REPLACEMENTS_MAX } from './insert-once.ts'
import type { StoredRows } from './stored-rows.ts'

export interface RowInserterOptions extends InsertOnceOptions {
  readonly frameInserter: Pick<FrameInserter, 'insert'>
  readonly storedRows: Pick<StoredRows, 'find'>
  /** How long after its failure an unacknowledged insert may still commit, ms. */
  readonly lingerMaxMs: number
  readonly monotonicMs: () => number
}

/** ClickHouse rejected a row while an earlier, unacknowledged attempt may still commit: not yet a final rejection. */
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
   * Prepares the attempts to insert frames whose rows can also be inserted in parts. An attempt throws what `FrameInserter.insert`
   * throws, and LookupError.
   */
  prepare(frames: readonly Buffer[], token: string, wasSent: boolean): InsertOnce<Buffer> {
    const insert = (missing: readonly Buffer[], itsToken: string): Promise<void> =>
      this.#options.frameInserter.insert(missing, itsToken)
    return new InsertOnce(this.#target(frames, insert), token, { wasSent, replacementsMax: 0 }, this.#options)
  }

  /**
   * Prepares the attempts to insert a frame of one row, which may have been sent before. An attempt also throws UnsettledError.
   *
   * @param mayLandUntilMs the time, on the clock `monotonicMs`, after which no attempt of another worker can commit
   */
  prepareSingle(frame: Buffer, token: string, mayLandUntilMs: number): InsertOnce<Buffer> {
    const { frameInserter, monotonicMs, lingerMaxMs } = this.#options
    let settledFromMs = mayLandUntilMs
    const insert = async (frames: readonly Buffer[], itsToken: string): Promise<void> => {
      try {
        await frameInserter.insert(frames, itsToken)
      } catch (error) {
        if (classifyInsertError(error).failure === 'transient') {
          settledFromMs = monotonicMs() + lingerMaxMs
        } else if (monotonicMs() < settledFromMs) {
          const reason = describeError(error)
          throw new UnsettledError(`an earlier attempt may still commit; this one was rejected: ${reason}`)
        }
        throw error
      }
    }
    return new InsertOnce(
      this.#target([frame], insert),
      token,
      { wasSent: true, replacementsMax: REPLACEMENTS_MAX },
      this.#options,
    )
  }

  /**
   * Consumes the token of rows that are to be inserted in parts: inserts one of the rows with it. From then on, ClickHouse ignores every
   * other insert with this token in the partition of the row, whichever worker sent it and whenever it arrives. If ClickHouse has
   * the token already, nothing is inserted.
   *
   * @param frame one row
   * @throws what `beforeAttempt` and `FrameInserter.insert` throw
   */
  async consumeToken(frame: Buffer, token: string): Promise<'stored'> {
    await this.#options.beforeAttempt()
    await this.#options.frameInserter.insert([frame], token)
    return 'stored'
  }

  /** The ids of the rows that are stored. @throws LookupError, and what `beforeAttempt` throws */
  async findStored(frames: readonly Buffer[]): Promise<ReadonlySet<string>> {
    await this.#options.beforeAttempt()
    return this.#options.storedRows.find(frames).catch((error: unknown) => {
      throw new LookupError(describeError(error))
    })
  }

  #target(frames: readonly Buffer[], insert: InsertTarget<Buffer>['insert']): InsertTarget<Buffer> {
    return {
      all: frames,
      findMissing: async () => framesWithout(await this.findStored(frames), frames),
      insert,
    }
  }
}
