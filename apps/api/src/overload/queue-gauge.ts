import type { RedisConnection } from '@sluice/runtime'
import { idTimeMs, type RedisNames } from '@sluice/schema'

/** What Redis says of the queue, and of itself. */
export interface QueueReading {
  /** Chunks that no worker has taken yet. */
  readonly jobs: number
  /** How long the oldest of them has waited, by this process's clock. */
  readonly oldestAgeS: number
  /** How much of its memory Redis uses; of several servers, the one that is the fullest. */
  readonly memoryPercent: number
}

export interface QueueGaugeOptions {
  /** A connection that fails fast, and whose commands have a deadline. */
  readonly redis: Pick<RedisConnection, 'llen' | 'lindex'>
  /** The servers that hold data. */
  readonly servers: () => readonly Pick<RedisConnection, 'info'>[]
  /** The names of each of the queues. */
  readonly shards: readonly RedisNames[]
  /** What a server of Redis may use where it has no `maxmemory` of its own. */
  readonly memoryBytes: number
  /** The clock, in ms since 1970, which the chunks' ids are on. */
  readonly now: () => number
}

/**
 * Reads the queue's signals: two commands a shard and one a server, which take Redis some 10 µs together, whatever the
 * queue holds. A shard or a server that does not answer is left out as long as another does: nothing can be added to it.
 */
export class QueueGauge {
  readonly #options: QueueGaugeOptions

  constructor(options: QueueGaugeOptions) {
    this.#options = options
  }

  /** @throws when Redis does not say so in time */
  async read(): Promise<QueueReading> {
    const { servers, shards } = this.#options
    const [queues, memories] = await Promise.all([
      thoseThatAnswer(shards.map((names) => this.#readQueue(names))),
      thoseThatAnswer(servers().map(async (server) => this.#memoryPercent(await server.info('memory')))),
    ])
    return {
      jobs: queues.reduce((sum, { jobs }) => sum + jobs, 0),
      oldestAgeS: Math.max(...queues.map(({ oldestAgeS }) => oldestAgeS)),
      memoryPercent: Math.max(...memories),
    }
  }

  async #readQueue({ waitKey }: RedisNames): Promise<{ jobs: number; oldestAgeS: number }> {
    const { redis, now } = this.#options
    const [jobs, oldest] = await Promise.all([redis.llen(waitKey), redis.lindex(waitKey, -1)])
    return { jobs, oldestAgeS: oldest === null ? 0 : Math.max(0, now() - idTimeMs(oldest)) / 1_000 }
  }

  /** As Redis itself counts when it decides whether it is full: without the buffers of its file and its replicas. */
  #memoryPercent(info: string): number {
    const used = field(info, 'used_memory') - field(info, 'mem_not_counted_for_evict')
    return Math.round((100 * used) / (field(info, 'maxmemory') || this.#options.memoryBytes))
  }
}

/** @throws when there is none */
async function thoseThatAnswer<T>(asked: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(asked)
  const answers = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  if (answers.length > 0) return answers
  const failure = results.find((result) => result.status === 'rejected')
  throw failure?.reason ?? new Error('no server of Redis is known')
}

/** @throws when the INFO does not have the field, or its value is no number */
function field(info: string, name: string): number {
  const value = new RegExp(`^${name}:(\\d+)\\r?$`, 'm').exec(info)?.[1]
  if (value === undefined) throw new Error(`Redis does not tell its ${name}`)
  return Number(value)
}
