import type { Logger } from '@sluice/runtime'
import { Problem } from '../problems.ts'
import { type OverloadReason, overloadReasons } from './overloaded-error.ts'
import type { QueueGauge } from './queue-gauge.ts'
import { type Marks, Watermark } from './watermark.ts'

/** Redis grows by some 30 MB a second at most, which is little next to what the marks leave free. */
const POLL_INTERVAL_MS = 1_000

/**
 * How long a client is told to wait, s: a random time from the least to the most, so that those who were refused together
 * do not come back together. A queue takes longer to fall to its low-water mark than what is within a process.
 */
const retryAfterS: Readonly<Record<OverloadReason, { readonly least: number; readonly most: number }>> = {
  redis_memory: { least: 5, most: 15 },
  queue_depth: { least: 5, most: 15 },
  queue_age: { least: 5, most: 15 },
  bytes_in_flight: { least: 1, most: 3 },
  event_loop_delay: { least: 1, most: 3 },
}

export interface OverloadMonitorOptions {
  /** In the units of the signals: percent of Redis' memory, chunks, seconds, bytes, ms. */
  readonly marks: Readonly<Record<OverloadReason, Marks>>
  /** Settles in bounded time. */
  readonly queue: Pick<QueueGauge, 'read'>
  readonly bytesInFlight: () => number
  readonly eventLoopDelayMs: () => number
  readonly logger: Logger
  /** 0 ≤ random < 1 */
  readonly random: () => number
}

interface SignalStatus extends Marks {
  /** Null before the first reading. */
  readonly value: number | null
  readonly isOver: boolean
}

/** What the ops server tells. */
export interface OverloadStatus {
  readonly overloaded: boolean
  /** False while the signals of Redis are as they were last known. */
  readonly redisReadable: boolean
  readonly signals: Readonly<Record<OverloadReason, SignalStatus>>
  /** How many requests were refused since the process started, each for the first of its reasons. */
  readonly refused: Readonly<Record<OverloadReason, number>>
}

/**
 * Says whether requests are to be refused because there is more than can be stored.
 *
 * Open (no signal is over its mark) → closed (one is: requests are refused) → open (all are at or below their low-water
 * marks). Signals are read once a second, never for a request. Those of Redis keep their last state while it cannot be
 * read: if it was full, it still is, and if it is away, the adds say so. One reading is under way at a time.
 */
export class OverloadMonitor {
  readonly #options: OverloadMonitorOptions
  readonly #watermarks: Readonly<Record<OverloadReason, Watermark>>
  readonly #refused = byReason(() => 0)
  /** The first of the reasons. */
  #reason: OverloadReason | undefined
  #isReading = false
  #redisReadable = true
  #timer: NodeJS.Timeout | undefined

  constructor(options: OverloadMonitorOptions) {
    this.#options = options
    this.#watermarks = byReason((reason) => new Watermark(options.marks[reason]))
  }

  /** Reads the signals from now on, first in a second: by then there is a connection to Redis. */
  start(): void {
    this.#timer = setInterval(() => void this.poll(), POLL_INTERVAL_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Lets a request pass. @throws Problem `overloaded`, counted */
  check(): void {
    if (this.#reason !== undefined) throw this.refuse(this.#reason)
  }

  /**
   * The answer to a request for which there was no room, counted. From now on others are refused before their bodies are
   * read, until a reading says otherwise.
   */
  refuse(reason: OverloadReason): Problem {
    this.#refused[reason] += 1
    if (!this.#watermarks[reason].isOver) this.#change(reason, (watermark) => watermark.trip())
    const { least, most } = retryAfterS[reason]
    const seconds = least + Math.floor(this.#options.random() * (most - least + 1))
    return new Problem('overloaded', 'More arrives than can be stored at present. Send this again later.', {
      headers: { 'retry-after': String(seconds) },
    })
  }

  /** Reads all signals, those of Redis unless that is under way. Resolves when they are read, and never rejects. */
  async poll(): Promise<void> {
    this.#update('bytes_in_flight', this.#options.bytesInFlight())
    this.#update('event_loop_delay', this.#options.eventLoopDelayMs())
    if (this.#isReading) return
    this.#isReading = true
    try {
      const { jobs, oldestAgeS, memoryPercent } = await this.#options.queue.read()
      this.#update('redis_memory', memoryPercent)
      this.#update('queue_depth', jobs)
      this.#update('queue_age', oldestAgeS)
      this.#redisReadable = true
    } catch (error) {
      if (this.#redisReadable) {
        this.#options.logger.warn({ err: error }, 'overload signals of redis cannot be read')
      }
      this.#redisReadable = false
    } finally {
      this.#isReading = false
    }
  }

  get status(): OverloadStatus {
    return {
      overloaded: this.#reason !== undefined,
      redisReadable: this.#redisReadable,
      signals: byReason((reason) => {
        const { value = null, isOver, marks } = this.#watermarks[reason]
        return { value, isOver, ...marks }
      }),
      refused: { ...this.#refused },
    }
  }

  #update(reason: OverloadReason, value: number): void {
    this.#change(reason, (watermark) => watermark.update(value))
  }

  #change(reason: OverloadReason, act: (watermark: Watermark) => void): void {
    const watermark = this.#watermarks[reason]
    const wasOver = watermark.isOver
    act(watermark)
    const { isOver, value, marks } = watermark
    if (isOver === wasOver) return
    this.#reason = overloadReasons.find((one) => this.#watermarks[one].isOver)
    const { logger } = this.#options
    if (isOver) logger.warn({ reason, value, ...marks }, 'overloaded, refusing requests')
    else logger.info({ reason, value, ...marks }, 'no longer overloaded')
  }
}

function byReason<T>(make: (reason: OverloadReason) => T): Record<OverloadReason, T> {
  return {
    redis_memory: make('redis_memory'),
    queue_depth: make('queue_depth'),
    queue_age: make('queue_age'),
    bytes_in_flight: make('bytes_in_flight'),
    event_loop_delay: make('event_loop_delay'),
  }
}
