import { idTimeMs, type RedisNames } from '@sluice/schema'
import type { Redis } from 'ioredis'

/** What Redis says of the queue, and of itself. */
export interface QueueReading {
  /** Chunks that no worker has taken yet. */
  readonly jobs: number
  /** How long the oldest of them has waited, by this process's clock. */
  readonly oldestAgeS: number
  /** How much of its memory Redis uses. */
  readonly memoryPercent: number
}

/** Reads the queue's signals: three commands that take Redis some 10 µs together, whatever the queue holds. */
export class QueueGauge {
  readonly #redis: Pick<Redis, 'llen' | 'lindex' | 'info'>
  readonly #waitKey: string
  readonly #memoryBytes: number
  readonly #now: () => number

  /**
   * @param redis a connection that fails fast, and whose commands have a deadline
   * @param memoryBytes what Redis may use where it has no `maxmemory` of its own
   * @param now the clock, in ms since 1970, which the chunks' ids are on
   */
  constructor(
    redis: Pick<Redis, 'llen' | 'lindex' | 'info'>,
    names: RedisNames,
    memoryBytes: number,
    now: () => number,
  ) {
    this.#redis = redis
    this.#waitKey = names.waitKey
    this.#memoryBytes = memoryBytes
    this.#now = now
  }

  /** @throws when Redis does not say so in time */
  async read(): Promise<QueueReading> {
    const [jobs, oldest, info] = await Promise.all([
      this.#redis.llen(this.#waitKey),
      this.#redis.lindex(this.#waitKey, -1),
      this.#redis.info('memory'),
    ])
    return {
      jobs,
      oldestAgeS: oldest === null ? 0 : Math.max(0, this.#now() - idTimeMs(oldest)) / 1_000,
      memoryPercent: this.#memoryPercent(info),
    }
  }

  /** As Redis itself counts when it decides whether it is full: without the buffers of its file and its replicas. */
  #memoryPercent(info: string): number {
    const used = field(info, 'used_memory') - field(info, 'mem_not_counted_for_evict')
    return Math.round((100 * used) / (field(info, 'maxmemory') || this.#memoryBytes))
  }
}

/** @throws when the INFO does not have the field, or its value is no number */
function field(info: string, name: string): number {
  const value = new RegExp(`^${name}:(\\d+)\\r?$`, 'm').exec(info)?.[1]
  if (value === undefined) throw new Error(`Redis does not tell its ${name}`)
  return Number(value)
}
