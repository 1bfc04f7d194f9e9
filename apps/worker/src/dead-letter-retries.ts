import { type DeadLetterStore, describeError, type LateInserts } from '@sluice/clickhouse'
import type { Retry, RetryRequests } from '@sluice/ops'
import { type Logger, type RedisConnection, RegularCheck } from '@sluice/runtime'

export interface DeadLetterRetriesOptions {
  readonly redis: RedisConnection
  readonly requests: Pick<RetryRequests, 'take' | 'update'>
  readonly store: Pick<DeadLetterStore, 'ids' | 'find' | 'retry'>
  readonly late: LateInserts
  readonly logger: Logger
}

/** Retries the dead letters that operators choose in the explorer, as `sluice dead-letters retry` does. */
export class DeadLetterRetries extends RegularCheck<DeadLetterRetriesOptions> {
  /** A person waits. It costs Redis a look at one key. */
  protected override readonly intervalMs = 2_000
  #isStopping = false

  override stop(): void {
    super.stop()
    this.#isStopping = true
  }

  async check(): Promise<void> {
    const { requests, store, late, logger } = this.options
    const result = { inserted: 0, rejected: 0, reason: '' }
    try {
      const choice = await requests.take()
      if (choice === undefined) return
      // One by one: a row may have a megabyte. One that is gone was retried or removed by somebody else.
      for (const id of 'id' in choice ? [choice.id] : await store.ids(choice)) {
        if (this.#isStopping) return await requests.update({ state: 'waiting', ...result })
        const letter = await store.find(id)
        const [outcome] = letter === undefined ? [] : await store.retry([letter], late)
        if (outcome !== undefined) result[outcome.rejection === undefined ? 'inserted' : 'rejected'] += 1
        result.reason = outcome?.rejection ?? result.reason
        await requests.update({ state: 'running', ...result })
      }
      await requests.update({ state: 'done', ...result })
      logger.info(result, 'dead letters retried')
    } catch (error) {
      result.reason = describeError(error)
      logger.warn({ reason: result.reason }, 'dead letters not retried')
      const state: Retry['state'] = this.#isStopping ? 'waiting' : 'failed'
      await requests.update({ state, ...result }).catch(() => undefined)
    }
  }
}
