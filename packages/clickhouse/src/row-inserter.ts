import { framesWithout } from '@sluice/rows'
import type { FrameInserter } from './frame-inserter.ts'
import { classifyInsertError, describeError } from './insert-errors.ts'
import { queryIds } from './query-ids.ts'
import { InsertOnce, type InsertOnceOptions, type InsertTarget, REPLACEMENTS_MAX } from './insert-once.ts'
import type { StoredRows } from './stored-rows.ts'

export interface RowInserterOptions extends InsertOnceOptions {
  readonly frameInserter: Pick<FrameInserter, 'insert'> & Partial<Pick<FrameInserter, 'isRunning'>>
  readonly storedRows: Pick<StoredRows, 'find'>
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
   *
   * @param wasSent whether they may have been sent before
   * @param onUnanswered called when an attempt fails without ClickHouse's answer: it may still commit
   */
  prepare(
    frames: readonly Buffer[],
    token: string,
    wasSent: boolean,
    onUnanswered: () => void = () => undefined,
  ): InsertOnce<Buffer> {
    const target = this.#target(frames, onUnanswered)
    return new InsertOnce(target, token, { wasSent, replacementsMax: 0 }, this.#options)
  }

  /**
   * Prepares the attempts to insert a frame of one row, which may have been sent before.
   *
   * @param onUnanswered as for `prepare`
   */
  prepareSingle(
    frame: Buffer,
    token: string,
    onUnanswered: () => void = () => undefined,
  ): InsertOnce<Buffer> {
    const target = this.#target([frame], onUnanswered)
    return new InsertOnce(target, token, { wasSent: true, replacementsMax: REPLACEMENTS_MAX }, this.#options)
  }

  /**
   * Consumes the token of rows that are to be inserted in parts: inserts one of the rows with it. From then on, ClickHouse ignores every
   * other insert with this token in the partition of the row, whichever worker sent it and whenever it arrives. If ClickHouse has
   * the token already, nothing is inserted.
   *
   * @param frame one row
   * @param onUnanswered as for `prepare`
   * @throws what `beforeAttempt` and `FrameInserter.insert` throw
   */
  async consumeToken(
    frame: Buffer,
    token: string,
    onUnanswered: () => void = () => undefined,
  ): Promise<'stored'> {
    await this.#options.beforeAttempt()
    await this.#insert([frame], token, onUnanswered, queryIds.consumedToken(token))
    return 'stored'
  }

  async #insert(
    frames: readonly Buffer[],
    token: string,
    onUnanswered: () => void,
    queryId?: string,
  ): Promise<void> {
    try {
      await this.#options.frameInserter.insert(frames, token, queryId)
    } catch (error) {
      if (classifyInsertError(error).failure === 'transient') onUnanswered()
      throw error
    }
  }

  /** The ids of the rows that are stored. @throws LookupError, and what `beforeAttempt` throws */
  async findStored(frames: readonly Buffer[]): Promise<ReadonlySet<string>> {
    await this.#options.beforeAttempt()
    return this.#options.storedRows.find(frames).catch((error: unknown) => {
      throw new LookupError(describeError(error))
    })
  }

  #target(frames: readonly Buffer[], onUnanswered: () => void): InsertTarget<Buffer> {
    const { frameInserter } = this.#options
    return {
      all: frames,
      findMissing: async () => framesWithout(await this.findStored(frames), frames),
      insert: (missing, itsToken) => this.#insert(missing, itsToken, onUnanswered),
      isRunning: async (token) => (await frameInserter.isRunning?.(token)) === true,
    }
  }
}
