import { integerSetting, type Logger, type SettingsOf } from '@sluice/runtime'
import type { QueueGauge, QueueReading } from '@sluice/ops'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type Problem, retryLater } from '../problems.ts'
import { BODY_LIMITS_MIN, type BodyLimits } from './body-budget.ts'

/** Why requests are rejected, in order of precedence if there are several reasons. */
export const overloadReasons = ['redis_memory', 'queue_depth', 'queue_age', 'event_loop_delay'] as const

export type OverloadReason = (typeof overloadReasons)[number]

/** The high-water mark and the low-water mark of a signal. */
export interface Thresholds {
  readonly high: number
  /** Below `high`. The gap keeps a signal near the high-water mark from switching on and off every second. */
  readonly low: number
}

/** The part of what a process holds of bodies that may be of one project. The rest is for other projects. */
const PROJECT_SHARE = 2 / 3

/**
 * The high-water marks that can be set; docs/overload.md explains how to choose them. A full Redis also stops the workers, which persist
 * the batches that they claim. For that reason the mark on its memory cannot be above 95 %.
 */
export const overloadSettings = {
  REDIS_MEMORY_HIGH_PERCENT: integerSetting(
    { minimum: 2, maximum: 95, default: 80 },
    'Memory use of Redis at which the API starts to reject entries, in percent of `maxmemory` or REDIS_MEMORY_BYTES.',
  ),
  QUEUE_HIGH_JOBS: integerSetting(
    { minimum: 2, default: 5_000_000 },
    'Number of chunks in the queue, waiting or in hand, at which the API starts to reject entries.',
  ),
  QUEUE_AGE_HIGH_S: integerSetting(
    { minimum: 2, default: 86_400 },
    'Age of the oldest chunk in the queue at which the API starts to reject entries, in seconds.',
  ),
  EVENT_LOOP_DELAY_HIGH_MS: integerSetting(
    { minimum: 2, default: 500 },
    'Median event-loop delay at which an API process starts to reject entries, in milliseconds.',
  ),
  BODIES_BYTES_MAX: integerSetting(
    {
      minimum: Math.ceil(BODY_LIMITS_MIN / PROJECT_SHARE),
      // 192 MiB are 19 bodies of the maximum size with their rows, or 2,800 batch requests of 35 KB.
      default: 201_326_592,
    },
    'Bytes of request bodies and their rows that an API process holds at most, from their arrival until their requests are answered. Of one project, two thirds of them.',
  ),
} as const

export type OverloadThresholds = Readonly<Record<OverloadReason, Thresholds>>

const below = (high: number, share: number): Thresholds => ({ high, low: Math.floor(share * high) })

export function overloadThresholds(settings: SettingsOf<typeof overloadSettings>): OverloadThresholds {
  return {
    redis_memory: below(settings.REDIS_MEMORY_HIGH_PERCENT, 7 / 8),
    queue_depth: below(settings.QUEUE_HIGH_JOBS, 4 / 5),
    queue_age: below(settings.QUEUE_AGE_HIGH_S, 1 / 2),
    event_loop_delay: below(settings.EVENT_LOOP_DELAY_HIGH_MS, 1 / 2),
  }
}

export function bodyLimits({ BODIES_BYTES_MAX: bytesMax }: SettingsOf<typeof overloadSettings>): BodyLimits {
  return { bytesMax, projectBytesMax: Math.floor(PROJECT_SHARE * bytesMax) }
}

/** Redis grows by at most about 30 MB a second, which is little compared with the memory above the high-water mark. */
const POLL_INTERVAL_MS = 1_000

/** Redis and the queue take longer to reach their low-water marks than the event loop. */
const REDIS_RETRY_AFTER_S = { min: 5, max: 15 }
const PROCESS_RETRY_AFTER_S = { min: 1, max: 3 }

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
  /** The chunks in the queues: `queue_depth` is the sum of `waiting` and `inHand`. Null before the first reading. */
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
    const { eventLoopDelayMs, logger, queue } = this.#options
    this.#update('event_loop_delay', eventLoopDelayMs())
    if (this.#isReading) return
    this.#isReading = true
    try {
      const { waiting, inHand, oldestAgeS, memoryPercent, failed } = await queue.read()
      // Their rows are not stored, and no process can do anything about it.
      if (failed !== (this.#queue?.failed ?? 0)) {
        if (failed > 0) logger.warn({ failed }, 'failed chunks wait for an operator')
        else logger.info({ failed }, 'no failed chunks are left')
      }
      this.#queue = { waiting, inHand, failed }
      this.#update('redis_memory', memoryPercent)
      this.#update('queue_depth', waiting + inHand)
      this.#update('queue_age', oldestAgeS)
      this.#redisReadable = true
    } catch (err) {
      if (this.#redisReadable) logger.warn({ err }, 'cannot read the overload signals of redis')
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
 * Measures how late the iterations of the event loop start, in ms: the median since the last call, because a single long iteration or a
 * single pause of the process is not an overload.
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
