import { backoffMs, type Logger } from '@sluice/runtime'
import { setTimeout } from 'node:timers/promises'
import { classifyInsertError, describeError, type InsertFailure } from './insert-errors.ts'
import { workerLimits } from './limits.ts'

/** The process is stopping: what was asked for is not done, and its chunks go back to the queue. */
export class HandBackError extends Error {
  override name = 'HandBackError'
}

/** Tries again what fails for a passing reason, with backoff, until it is done or the process stops. */
export class Persistence {
  readonly logger: Logger
  readonly #signal: AbortSignal
  readonly #sleep: Sleep
  #lastFailure: string | undefined

  /** @param signal aborted when no more tries shall be made */
  constructor(logger: Logger, signal: AbortSignal, sleep: Sleep = sleepUnlessAborted) {
    this.logger = logger
    this.#signal = signal
    this.#sleep = sleep
  }

  /** Why the last try failed, until one succeeds. */
  get lastFailure(): string | undefined {
    return this.#lastFailure
  }

  /** @throws HandBackError */
  async untilDone<T>(complaint: string, run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      if (this.#signal.aborted) throw new HandBackError('stopping')
      try {
        const result = await run()
        this.#lastFailure = undefined
        return result
      } catch (error) {
        if (error instanceof HandBackError) throw error
        await this.#wait(complaint, error, attempt)
      }
    }
  }

  /**
   * The same for an insert, but gives up on failures that `isRefusal` is true for.
   *
   * @returns the error when it was given up, undefined when it is done
   * @throws HandBackError
   */
  async untilDoneOrRefused(
    complaint: string,
    run: () => Promise<void>,
    isRefusal: (failure: InsertFailure) => boolean,
  ): Promise<unknown> {
    return this.untilDone(complaint, async () => {
      try {
        await run()
        return undefined
      } catch (error) {
        if (isRefusal(classifyInsertError(error).failure)) return error
        throw error
      }
    })
  }

  async #wait(complaint: string, error: unknown, attempt: number): Promise<void> {
    const retryInMs = backoffMs(attempt, workerLimits.retry, Math.random())
    const reason = describeError(error)
    const { isUnknown } = classifyInsertError(error)
    this.#lastFailure = `${complaint}: ${reason}`
    this.logger[isUnknown ? 'error' : 'warn']({ reason, attempt, retryInMs, isUnknown }, complaint)
    await this.#sleep(retryInMs, this.#signal)
  }
}

/** Resolves after so many milliseconds, or as soon as the signal is aborted. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>

async function sleepUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => undefined)
}
