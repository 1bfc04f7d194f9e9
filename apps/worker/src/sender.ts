import { classifyInsertError, describeError } from './insert-errors.ts'
import type { Inserter } from './inserter.ts'
import { workerLimits } from './limits.ts'
import { tries, type ResendOptions } from './resend.ts'
import { framesWithout, type StoredRows } from './stored-rows.ts'

export interface SenderDependencies extends ResendOptions {
  readonly inserter: Pick<Inserter, 'insert'>
  readonly storedRows: Pick<StoredRows, 'find'>
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

/** ClickHouse refuses rows that an earlier try, of which nobody knows the end, may still bring in: it is no refusal yet. */
class UnsettledError extends Error {
  override name = 'UnsettledError'
}

/** It is not known which rows are there. Whatever ClickHouse said, it does not refuse the rows. */
class LookError extends Error {
  override name = 'LookError'
}

/** Sends rows to ClickHouse, and looks first for what may have been sent before. */
export class Sender {
  readonly #deps: SenderDependencies

  constructor(dependencies: SenderDependencies) {
    this.#deps = dependencies
  }

  /**
   * @param settledMs from when on nothing can land any more that others may have sent of the rows, on the clock `now`;
   *   undefined when they were never sent
   * @returns a function of which each call is a try. It throws what `Inserter.insert` does, UnsettledError and LookError.
   */
  tries(frames: readonly Buffer[], token: string, settledMs: number | undefined): () => Promise<void> {
    const { inserter, storedRows, now } = this.#deps
    let refusedFromMs = settledMs ?? 0
    const insert = async (rows: readonly Buffer[], itsToken: string): Promise<void> => {
      try {
        await inserter.insert(rows, itsToken)
      } catch (error) {
        if (classifyInsertError(error).failure === 'transient') {
          refusedFromMs = now() + workerLimits.landingMaxMs
        } else if (now() < refusedFromMs) {
          throw new UnsettledError(`an earlier try may still land; this one: ${describeError(error)}`)
        }
        throw error
      }
    }
    const findMissing = async (): Promise<Buffer[]> => {
      const stored = await storedRows.find(frames).catch((error: unknown) => {
        throw new LookError(describeError(error))
      })
      return framesWithout(stored, frames)
    }
    return tries({ all: frames, findMissing, insert }, token, settledMs !== undefined, this.#deps)
  }
}
