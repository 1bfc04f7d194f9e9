import type { Logger } from '@sluice/runtime'
import type { QueueGauge, QueueReading } from '@sluice/ops'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type Problem, retryLater, type RetryRange } from '../problems.ts'
import { type OverloadReason, overloadReasons, type OverloadThresholds, type Thresholds } from './settings.ts'

/** Redis grows by at most about 30 MB a second, which is little compared with the memory above the high-water mark. */
const POLL_INTERVAL_MS = 1_000

/** Redis and the queue take longer to reach their low-water marks than the event loop. */
const REDIS_RETRY_AFTER_S: RetryRange = { min: 5, max: 15 }
const PROCESS_RETRY_AFTER_S: RetryRange = { min: 1, max: 3 }

export interface OverloadMonitorOptions {
  /** In the units of the signals: percent of Redis' memory, chunks, seconds, ms. */
  readonly thresholds: OverloadThresholds
  /** A read must settle in bounded time. */
  readonly queue: Pick<QueueGauge, 'read'>
  readonly eventLoopDelayMs: () => number
  readonly logger: Logger
  /** 0 ≤ random < 1 */
  readonly random: () => number
}

interface Signal extends Thresholds {
  /** Null before the first reading. */
  value: number | null
  isOver: boolean
}

/** The page `/overload` of the ops server. */
export interface OverloadStatus {
  readonly overloaded: boolean
  /** False while Redis cannot be read: its signals keep their last values. */
  readonly redisReadable: boolean
  /**
   * The chunks in the queues: `queue_depth` is the sum of `waiting` and `inHand`. Those that `failed` wait for an operator. Null before
   * the first reading.
   */
  readonly queue: Pick<QueueReading, 'waiting' | 'inHand' | 'failed'> | null
  readonly signals: Readonly<Record<OverloadReason, Readonly<Signal>>>
  /** Number of requests rejected since the process started. A request counts for the first of its reasons only. */
  readonly refused: Readonly<Record<OverloadReason, number>>
}

/**
 * Decides whether requests must be rejected because more entries arrive than can be stored.
 *
 * Accepting → rejecting (at least one signal has reached its high-water mark, or had no room for a request) → accepting (every signal
 * is again at its low-water mark or below). The monitor reads the signals once a second, never during a request. While Redis cannot
 * be read, its signals keep their state: a full Redis is probably still full, and an unavailable Redis makes the adds fail.
 * One read of Redis is in flight at a time.
 */
export class OverloadMonitor {
  readonly #options: OverloadMonitorOptions
  readonly #signals: Record<OverloadReason, Signal>
  readonly #refused = byReason(() => 0)
  /** The first of the current reasons. */
  #reason: OverloadReason | undefined
  #isReading = false
  #redisReadable = true
  #queue: OverloadStatus['queue'] = null
  #timer: NodeJS.Timeout | undefined

  constructor(options: OverloadMonitorOptions) {
    this.#options = options
    this.#signals = byReason((reason) => ({ value: null, isOver: false, ...options.thresholds[reason] }))
  }

  /** Reads the signals from now on. The first read is after one second: by then the connection to Redis is established. */
  start(): void {
    this.#timer = setInterval(() => void this.poll(), POLL_INTERVAL_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Lets a request pass, or counts its rejection. @throws Problem `overloaded` */
  check(): void {
    if (this.#reason !== undefined) throw this.reject(this.#reason)
  }

  /**
   * Counts and returns the rejection of a request for which there was no room. From now on, requests are rejected before
   * their bodies are read, until a read of the signal ends it.
   */
  reject(reason: OverloadReason): Problem {
    this.#refused[reason] += 1
    this.#update(reason, this.#signals[reason].value, true)
    const range = reason === 'event_loop_delay' ? PROCESS_RETRY_AFTER_S : REDIS_RETRY_AFTER_S
    return retryLater(range, this.#options.random())
  }

  /** Reads all signals, except Redis' signals while a read of Redis is in flight. Resolves after the reads; never rejects. */
  async poll(): Promise<void> {
    this.#update('event_loop_delay', this.#options.eventLoopDelayMs())
    if (this.#isReading) return
    this.#isReading = true
    try {
      const { waiting, inHand, oldestAgeS, memoryPercent, failed } = await this.#options.queue.read()
      this.#reportFailed(failed, this.#queue?.failed ?? 0)
      this.#queue = { waiting, inHand, failed }
      this.#update('redis_memory', memoryPercent)
      this.#update('queue_depth', waiting + inHand)
      this.#update('queue_age', oldestAgeS)
      this.#redisReadable = true
    } catch (err) {
      if (this.#redisReadable) this.#options.logger.warn({ err }, 'cannot read the overload signals of redis')
      this.#redisReadable = false
    } finally {
      this.#isReading = false
    }
  }

  get status(): OverloadStatus {
    return {
      overloaded: this.#reason !== undefined,
      redisReadable: this.#redisReadable,
      queue: this.#queue,
      signals: this.#signals,
      refused: this.#refused,
    }
  }

  /** Their rows are not stored, and no process can do anything about it. */
  #reportFailed(failed: number, before: number): void {
    const { logger } = this.#options
    if (failed === before) return
    if (failed > 0) logger.warn({ failed }, 'failed chunks wait for an operator')
    else logger.info({ failed }, 'no failed chunks are left')
  }

  #update(reason: OverloadReason, value: number | null, hasNoRoom = false): void {
    const signal = this.#signals[reason]
    const { high, low, isOver: wasOver } = signal
    const isOver = hasNoRoom || (value !== null && (wasOver ? value > low : value >= high))
    Object.assign(signal, { value, isOver })
    if (isOver === wasOver) return
    this.#reason = overloadReasons.find((candidate) => this.#signals[candidate].isOver)
    const { logger } = this.#options
    if (isOver) logger.warn({ reason, value, high, low }, 'overloaded, rejecting requests')
    else logger.info({ reason, value, high, low }, 'no longer overloaded')
  }
}

function byReason<T>(make: (reason: OverloadReason) => T): Record<OverloadReason, T> {
  const entries = overloadReasons.map((reason) => [reason, make(reason)])
  return Object.fromEntries(entries) as Record<OverloadReason, T>
}

/** Fifty samples a second. Node takes them with an internal timer, without running JavaScript. */
const RESOLUTION_MS = 20

/**
 * Measures how late the iterations of the event loop start. It reports the median, because a single long iteration or a single pause
 * of the process is not an overload.
 *
 * @returns takes the median since the last call, in ms
 */
export function measureEventLoopDelay(): () => number {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  return () => {
    const medianMs = histogram.percentile(50) / 1e6
    histogram.reset()
    return Math.max(0, Math.round(medianMs - RESOLUTION_MS))
  }
}
