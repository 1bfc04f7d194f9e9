import { describeError } from '@sluice/clickhouse'
import { backoffMs, type Logger, type MonotonicClock } from '@sluice/runtime'
import { isFinal, RequeueError } from './delivery-errors.ts'
import { workerLimits } from './limits.ts'

export interface RetrierOptions {
  readonly logger: Logger
  /** Aborted when the process stops and no more attempts may be made. */
  readonly signal: AbortSignal
  readonly clock: Pick<MonotonicClock, 'sleep'>
  /** 0 ≤ random < 1 */
  readonly random: () => number
  /** Called for each failed attempt, with its message. */
  readonly onFailure?: (failureMessage: string) => void
}

/** Retries operations with backoff until they succeed, or until no more attempts may be made. */
export class Retrier {
  readonly #options: RetrierOptions
  /** The last error of each operation that is being retried. An operation leaves the map when it ends. */
  readonly #failing = new Map<symbol, string>()

  constructor(options: RetrierOptions) {
    this.#options = options
  }

  /**
   * Why each operation that is being retried failed last. Each operation counts by itself: the success of one says nothing about
   * another, even if both use the same server.
   */
  get failures(): string[] {
    return [...new Set(this.#failing.values())]
  }

  /**
   * Runs an operation until it succeeds.
   *
   * @param failureMessage logged for each failed attempt
   * @param giveUp the signal that ends the attempts, if it is aborted. The first attempt is made in any case.
   * @throws RequeueError after `giveUp`, or when the process stops; an error for which `isFinal` is true
   */
  async retry<T>(
    failureMessage: string,
    run: () => Promise<T>,
    giveUp: () => AbortSignal = () => this.#options.signal,
  ): Promise<T> {
    const { signal, logger, clock, random, onFailure } = this.#options
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
          onFailure?.(failureMessage)
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
