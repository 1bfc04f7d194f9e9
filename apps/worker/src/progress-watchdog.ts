import type { Logger, MonotonicClock } from '@sluice/runtime'
import { workerLimits } from './limits.ts'
import type { Semaphore } from './semaphore.ts'
import type { ShardProgress } from './shard-progress.ts'
import { within } from './within.ts'

export const watchdogLimits = {
  intervalMs: 5_000,
  /** A shard without progress for this long is suspect: Redis is asked whether it is the reason. */
  suspectMs: 30_000,
  /** Redis answers within milliseconds. Without an answer in this time, the shard waits for Redis. */
  redisAnswerMs: 5_000,
  /**
   * From then on, the worker is not ready. Longer than every wait of a working shard: a repair waits until an unanswered insert cannot
   * arrive any more, and a step makes up to three requests to ClickHouse.
   */
  reportAfterMs: 300_000,
  /** From then on, the worker is not alive, and it exits one interval later. */
  exitAfterMs: 600_000,
} as const

if (watchdogLimits.reportAfterMs < workerLimits.insertLingerMaxMs + 3 * workerLimits.insertTimeoutMs)
  throw new Error('reportAfterMs is shorter than waits of a working shard')

export interface WatchedShard {
  /** Its number. */
  readonly shard: number
  readonly progress: ShardProgress
  /** Asks Redis something about the shard. Rejects if Redis rejects it, and may never settle. */
  readonly askRedis: () => Promise<unknown>
}

export interface ProgressWatchdogOptions {
  readonly shards: () => readonly WatchedShard[]
  readonly insertSlots: Pick<Semaphore, 'free' | 'waiting'>
  readonly repairPermits: Pick<Semaphore, 'free' | 'waiting'>
  readonly clock: MonotonicClock
  readonly logger: Logger
}

/** The worker cannot continue its work. Its chunks return to the queue when their locks expire. */
export class NoProgressError extends Error {
  override name = 'NoProgressError'
}

/**
 * Notices that a shard makes no progress although work is waiting and nothing outside is the reason: a promise that never settles, a
 * permit that was not returned, a lost wake-up. No code of the worker is expected to do that, and only a restart helps.
 *
 * A shard: working → suspect (`suspectMs`: an external reason is looked for) → stalled (`reportAfterMs`: not ready, logged with what the
 * shard was doing) → stuck (`exitAfterMs`: not alive; `run` rejects). Progress or an external reason leads back to working.
 *
 * External reasons:
 *
 * - The connection to Redis reports errors, or Redis does not answer a question about the shard.
 * - An operation of the shard, for example an insert, has just failed and is retried.
 * - Rows are looked up, in one query after another.
 * - The shard waits for a slot, and others that use the slots make progress.
 * - This process was suspended.
 */
export class ProgressWatchdog {
  readonly #options: ProgressWatchdogOptions
  readonly #stopping = new AbortController()
  readonly #reported = new Set<number>()
  #checkedAtMs: number

  constructor(options: ProgressWatchdogOptions) {
    this.#options = options
    this.#checkedAtMs = options.clock.nowMs()
  }

  /** An external reason has shown itself: the time until now does not count, for any shard. */
  excuse(): void {
    for (const { progress } of this.#options.shards()) progress.excuse()
  }

  /** Why the worker is not ready. */
  get reasons(): string[] {
    return this.#beyond(watchdogLimits.reportAfterMs).map(
      ({ shard, progress }) =>
        `shard ${shard} has made no progress for ${Math.floor(progress.stalledMs / 1_000)} s although work is waiting`,
    )
  }

  /** False if only a restart of the worker can help. */
  get isAlive(): boolean {
    return this.#beyond(watchdogLimits.exitAfterMs).length === 0
  }

  /**
   * Watches until it is stopped.
   *
   * @throws NoProgressError when the worker must exit
   */
  async run(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#stopping
    let isAlive = true
    for (;;) {
      await clock.sleep(watchdogLimits.intervalMs, signal)
      if (signal.aborted) return
      const wasAlive = isAlive
      await this.#check()
      isAlive = this.isAlive
      if (!wasAlive && !isAlive) throw new NoProgressError(this.reasons.join('; '))
    }
  }

  stop(): void {
    this.#stopping.abort()
  }

  async #check(): Promise<void> {
    const { clock } = this.#options
    const suspendedMs = clock.nowMs() - this.#checkedAtMs - watchdogLimits.intervalMs
    if (suspendedMs > watchdogLimits.suspectMs) this.excuse()
    const suspects = this.#beyond(watchdogLimits.suspectMs)
    await Promise.all(suspects.map((each) => this.#look(each)))
    this.#checkedAtMs = clock.nowMs()
    this.#report()
  }

  /** Looks for an external reason. */
  async #look(suspect: WatchedShard): Promise<void> {
    const { progress, askRedis } = suspect
    if (this.#isInLine(suspect)) progress.excuse()
    else if (!(await this.#doesRedisAnswer(askRedis))) progress.excuse()
  }

  /** Whether the shard only waits for a slot, and other shards take turns with the slots. */
  #isInLine({ shard, progress }: WatchedShard): boolean {
    const { insertSlots, repairPermits, shards } = this.#options
    if (insertSlots.waiting + repairPermits.waiting === 0) return false
    if (progress.blockedMs >= watchdogLimits.suspectMs) return false
    return shards().some(
      (other) => other.shard !== shard && other.progress.wasAliveWithin(watchdogLimits.suspectMs),
    )
  }

  async #doesRedisAnswer(ask: () => Promise<unknown>): Promise<boolean> {
    try {
      return (await within(watchdogLimits.redisAnswerMs, ask(), this.#options.clock)) !== 'late'
    } catch {
      return false
    }
  }

  /** Logs once that a shard is stalled, and what it was doing. */
  #report(): void {
    const { logger, insertSlots, repairPermits } = this.#options
    const stalled = this.#beyond(watchdogLimits.reportAfterMs)
    const isStalled = new Set(stalled.map(({ shard }) => shard))
    for (const shard of this.#reported) {
      if (isStalled.has(shard)) continue
      this.#reported.delete(shard)
      logger.info({ shard }, 'the shard makes progress again')
    }
    for (const { shard, progress } of stalled) {
      if (this.#reported.has(shard)) continue
      this.#reported.add(shard)
      logger.error(
        {
          shard,
          stalledMs: Math.round(progress.stalledMs),
          ...progress.snapshot,
          insertSlots: slots(insertSlots),
          repairPermits: slots(repairPermits),
        },
        'no progress although work is waiting',
      )
    }
  }

  #beyond(ms: number): WatchedShard[] {
    return this.#options.shards().filter(({ progress }) => progress.stalledMs >= ms)
  }
}

function slots({ free, waiting }: Pick<Semaphore, 'free' | 'waiting'>): object {
  return { free, waiting }
}
