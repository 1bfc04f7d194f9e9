import {
  classifyInsertError,
  describeError,
  type InsertFailure,
  TokenWithoutRowsError,
} from '@sluice/clickhouse'
import { backoffMs, type Logger, type MonotonicClock } from '@sluice/runtime'
import { AssertionError } from 'node:assert'
import { workerLimits } from './limits.ts'
import type { Emit } from './worker-events.ts'

/** The worker gives up work that it has begun. Its chunks are returned to the queue. */
export class RequeueError extends Error {
  override name = 'RequeueError'
  /** The end of the queue to which they return: the front, or behind all other chunks. */
  readonly end: 'front' | 'back'

  constructor(message: string, end: 'front' | 'back' = 'front') {
    super(message)
    this.end = end
  }
}

/** No retry can deliver the chunks. An operator must find out why. Their jobs are moved to the failed jobs. */
export class UndeliverableError extends Error {
  override name = 'UndeliverableError'
}

/** Whether another attempt cannot succeed: the worker gives up, an operator is needed, or the code has a defect. */
export function isFinal(error: unknown): boolean {
  return finalErrors.some((type) => error instanceof type)
}

const ourErrors = [RequeueError, UndeliverableError, TokenWithoutRowsError]
const finalErrors = [...ourErrors, TypeError, RangeError, ReferenceError, AssertionError]

/** Makes one attempt to insert. Returns the error, if it is a rejection. Others are thrown, to be retried. */
export async function rejectionOf(
  run: () => Promise<void>,
  isRejection = (failure: InsertFailure): boolean => failure !== 'transient',
): Promise<Error | undefined> {
  try {
    await run()
    return undefined
  } catch (error) {
    if (error instanceof Error && isRejection(classifyInsertError(error).failure)) return error
    throw error
  }
}

export interface RetrierOptions {
  readonly logger: Logger
  /** Aborted when the process stops and no more attempts may be made. */
  readonly signal: AbortSignal
  readonly clock: Pick<MonotonicClock, 'sleep'>
  /** 0 ≤ random < 1 */
  readonly random: () => number
  readonly events: Emit
}

/** Retries operations with backoff until they succeed, or until no more attempts may be made. */
export class Retrier {
  readonly #options: RetrierOptions
  /** The last error of each operation that is being retried. An operation leaves the map when it ends. */
  readonly #failing = new Map<symbol, string>()

  constructor(options: RetrierOptions) {
    this.#options = options
  }

  /** Why each operation that is being retried failed last. The success of one says nothing about another. */
  get failures(): string[] {
    return [...new Set(this.#failing.values())]
  }

  /**
   * Runs an operation until it succeeds.
   *
   * @param failureMessage logged for each failed attempt
   * @param giveUp ends the attempts. The first attempt is made in any case
   * @throws RequeueError after `giveUp`, or when the process stops; an error for which `isFinal` is true
   */
  async retry<T>(
    failureMessage: string,
    run: () => Promise<T>,
    giveUp: () => AbortSignal = () => this.#options.signal,
  ): Promise<T> {
    const { signal, logger, clock, random, events } = this.#options
    const operation = Symbol(failureMessage)
    try {
      for (let attempt = 1; ; attempt += 1) {
        if (signal.aborted) throw new RequeueError('stopping')
        try {
          return await run()
        } catch (error) {
          if (isFinal(error)) throw error
          const reason = describeError(error)
          this.#failing.set(operation, `${failureMessage}: ${reason}`)
          events.emit('attempt failed', failureMessage)
          const retryInMs = backoffMs(attempt, workerLimits.retry, random())
          logger.warn({ reason, attempt, retryInMs }, failureMessage)
          const end = AbortSignal.any([signal, giveUp()])
          if (!end.aborted) await clock.sleep(retryInMs, end)
          if (end.aborted) throw new RequeueError(`${failureMessage}: ${reason}`)
        }
      }
    } finally {
      this.#failing.delete(operation)
    }
  }
}
