import { classifyInsertError, describeError } from '@sluice/clickhouse'
import { RequeueError } from '@sluice/queue'
import { backoffMs, type Logger } from '@sluice/runtime'
import { setTimeout } from 'node:timers/promises'
import { workerLimits } from './limits.ts'

/** Retries operations with backoff until they succeed or the process stops. */
export class Retrier {
  readonly #logger: Logger
  readonly #signal: AbortSignal
  readonly #sleep: Sleep
  /** The last error of each operation that is being retried. An operation leaves the map when it ends. */
  readonly #failing = new Map<symbol, string>()

  /** @param signal aborted when the process stops and no more attempts may be made */
  constructor(logger: Logger, signal: AbortSignal, sleep: Sleep = sleepUnlessAborted) {
    this.#logger = logger
    this.#signal = signal
    this.#sleep = sleep
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
   * @throws RequeueError when the process stops
   */
  async retry<T>(failureMessage: string, run: () => Promise<T>): Promise<T> {
    const operation = Symbol(failureMessage)
    try {
      for (let attempt = 1; ; attempt += 1) {
        if (this.#signal.aborted) throw new RequeueError('stopping')
        try {
          return await run()
        } catch (error) {
          if (error instanceof RequeueError) throw error
          await this.#waitAfter(error, attempt, failureMessage, operation)
        }
      }
    } finally {
      this.#failing.delete(operation)
    }
  }

  async #waitAfter(
    error: unknown,
    attempt: number,
    failureMessage: string,
    operation: symbol,
  ): Promise<void> {
    const retryInMs = backoffMs(attempt, workerLimits.retry, Math.random())
    const reason = describeError(error)
    const isUnknown = classifyInsertError(error).failure === 'unknown'
    this.#failing.set(operation, `${failureMessage}: ${reason}`)
    this.#logger[isUnknown ? 'error' : 'warn']({ reason, attempt, retryInMs, isUnknown }, failureMessage)
    await this.#sleep(retryInMs, this.#signal)
  }
}

/** Resolves after `ms`, or as soon as the signal is aborted. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>

async function sleepUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => undefined)
}
