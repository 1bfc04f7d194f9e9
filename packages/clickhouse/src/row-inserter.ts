import { framesWithout } from '@sluice/rows'
import type { FrameInserter } from './frame-inserter.ts'
import { classifyInsertError, describeError } from './insert-errors.ts'
import { queryIds } from './query-ids.ts'
import { InsertOnce, type InsertOnceOptions, type InsertTarget, REPLACEMENTS_MAX } from './insert-once.ts'
import type { StoredRows } from './stored-rows.ts'

export interface RowInserterOptions extends InsertOnceOptions {
  readonly frameInserter: Pick<FrameInserter, 'insert'> & Partial<Pick<FrameInserter, 'isRunning'>>
  readonly storedRows: Pick<StoredRows, 'find'>
  /** How long after it was sent an insert without an answer may still arrive at ClickHouse, ms. */
  readonly lingerMaxMs: number
  readonly monotonicMs: () => number
}

/** ClickHouse rejected a row while an earlier attempt without an answer may still arrive: not yet a final rejection. */
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
   * A rejection is final when no earlier attempt can commit any more. ClickHouse rejects the row itself only if no attempt with the same
   * query id is running on that server. What remains is a request that has not arrived: it is in the network, in a proxy, or in the
   * worker's kernel, which sends the data of a closed connection again for about 100 s.
   *
   * @param mayLandUntilMs the time, on the clock `monotonicMs`, after which no attempt of another worker can arrive
   */
  prepareSingle(frame: Buffer, token: string, mayLandUntilMs: number): InsertOnce<Buffer> {
    const { frameInserter, monotonicMs, lingerMaxMs } = this.#options
    let settledFromMs = mayLandUntilMs
    const insert = async (frames: readonly Buffer[], itsToken: string): Promise<void> => {
      const sentAtMs = monotonicMs()
      try {
        await frameInserter.insert(frames, itsToken)
      } catch (error) {
        if (classifyInsertError(error).failure === 'transient') {
          settledFromMs = sentAtMs + lingerMaxMs
        } else if (monotonicMs() < settledFromMs) {
          const reason = describeError(error)
          throw new UnsettledError(`an earlier attempt may still arrive; this one was rejected: ${reason}`)
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
   */
  async consumeToken(frame: Buffer, token: string): Promise<'stored'> {
    await this.#options.frameInserter.insert([frame], token, queryIds.consumedToken(token))
    return 'stored'
  }

  /** The ids of the rows that are stored. @throws LookupError */
  async findStored(frames: readonly Buffer[]): Promise<ReadonlySet<string>> {
    return this.#options.storedRows.find(frames).catch((error: unknown) => {
      throw new LookupError(describeError(error))
    })
  }

  #target(frames: readonly Buffer[], insert: InsertTarget<Buffer>['insert']): InsertTarget<Buffer> {
    const { frameInserter } = this.#options
    return {
      all: frames,
      findMissing: async () => framesWithout(await this.findStored(frames), frames),
      insert,
      isRunning: async (token) => (await frameInserter.isRunning?.(token)) === true,
    }
  }
}
