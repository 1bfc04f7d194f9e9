import type { QueueNames } from '@sluice/queue'
import { type MonotonicClock, withTimeout } from '@sluice/runtime'
import { workerLimits } from './limits.ts'
import type { WorkerEvents } from './worker-events.ts'

export const progressLimits = {
  checkIntervalMs: 5_000,
  /** Without progress for this long, Redis is asked whether it is the reason. */
  suspectMs: 60_000,
  /** Redis responds within milliseconds. Without a response in this time, it is the reason. */
  redisResponseMs: 5_000,
  /** Then the worker exits. Longer than every wait of a working one: the longest is for an insert that was given up, and may arrive. */
  stalledMs: 600_000,
} as const

if (progressLimits.stalledMs < workerLimits.insertLingerMaxMs + 3 * workerLimits.insertTimeoutMs)
  throw new Error('stalledMs is shorter than waits of a working worker')

/** The worker cannot continue its work. Its chunks return to the queue when their locks expire. */
export class NoProgressError extends Error {
  override name = 'NoProgressError'
}

export interface WatchedShard {
  readonly names: QueueNames
  /** When the last round of its loop ended. */
  readonly loopedAtMs: number
  /** Asks Redis something about the shard. Rejects if Redis rejects it, and may never settle. */
  readonly askRedis: () => Promise<unknown>
}

export interface ProgressOptions {
  readonly events: Pick<WorkerEvents, 'on'>
  readonly shards: () => readonly WatchedShard[]
  readonly heldChunks: () => number
  readonly clock: MonotonicClock
}

/**
 * When the worker last made progress: the loop of each shard has ended a round, and while it holds chunks, a step, a query or an attempt
 * has ended, successful or not. Without progress the worker exits, unless Redis does not respond, or the process was suspended.
 */
export class Progress {
  readonly #options: ProgressOptions
  /** When something ended, or nothing was held. */
  #endedAtMs: number
  /** The time until then does not count. */
  #excusedAtMs: number

  constructor(options: ProgressOptions) {
    this.#options = options
    this.#endedAtMs = this.#excusedAtMs = options.clock.nowMs()
    for (const event of ['step ended', 'query ended', 'attempt failed'] as const)
      options.events.on(event, () => this.ended())
  }

  /** Something ended on which the worker has waited. */
  ended(): void {
    this.#endedAtMs = this.#options.clock.nowMs()
  }

  /** False if only a restart of the worker can help. */
  get isAlive(): boolean {
    return this.#stalledMs < progressLimits.stalledMs
  }

  /**
   * Watches until the signal is aborted.
   *
   * @throws NoProgressError when the worker must exit
   */
  async watch(signal: AbortSignal): Promise<void> {
    const { clock, heldChunks } = this.#options
    for (;;) {
      const sleptAtMs = clock.nowMs()
      await clock.sleep(progressLimits.checkIntervalMs, signal)
      if (signal.aborted) return
      if (heldChunks() === 0) this.ended()
      const wasSuspended = clock.nowMs() - sleptAtMs > progressLimits.suspectMs
      if (!wasSuspended && this.#stalledMs < progressLimits.suspectMs) continue
      if (wasSuspended || !(await this.#doesRedisRespond())) this.#excusedAtMs = clock.nowMs()
      else if (!this.isAlive) throw new NoProgressError(this.#describe())
    }
  }

  get #stalledMs(): number {
    const { clock, shards } = this.#options
    const sinceMs = Math.min(this.#endedAtMs, ...shards().map(({ loopedAtMs }) => loopedAtMs))
    return clock.nowMs() - Math.max(sinceMs, this.#excusedAtMs)
  }

  /** Whether Redis responds for each shard. */
  async #doesRedisRespond(): Promise<boolean> {
    const { clock, shards } = this.#options
    const responses = Promise.all(shards().map(({ askRedis }) => askRedis()))
    return withTimeout(responses, progressLimits.redisResponseMs, clock).then(
      () => true,
      () => false,
    )
  }

  #describe(): string {
    const { clock, shards, heldChunks } = this.#options
    const secondsSince = (ms: number): number => Math.floor((clock.nowMs() - ms) / 1_000)
    const loops = shards().map(
      ({ names, loopedAtMs }) => `${secondsSince(loopedAtMs)} s in shard ${names.shard}`,
    )
    return `no progress: holds ${heldChunks()} chunks, ${secondsSince(this.#endedAtMs)} s since a step ended; the last rounds ended ${loops.join(', ')} ago`
  }
}
