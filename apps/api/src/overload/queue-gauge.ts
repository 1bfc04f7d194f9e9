import type { RedisConnection } from '@sluice/runtime'
import { idTimeMs, type RedisNames } from '@sluice/schema'
import type { Redis } from 'ioredis'

/** What Redis says of the queue, and of itself. */
export interface QueueReading {
  /** Chunks that no worker has taken yet. */
  readonly jobs: number
  /** How long the oldest of them has waited, by this process's clock. */
  readonly oldestAgeS: number
  /** How much of its memory Redis uses; of several servers, the one that is the fullest. */
  readonly memoryPercent: number
}

/** A server of Redis, and its address. */
export interface RedisServer extends Pick<Redis, 'info'> {
  readonly options: Pick<Redis['options'], 'host' | 'port'>
}

export interface QueueGaugeOptions {
  /** A connection that fails fast, and whose commands have a deadline. */
  readonly redis: Pick<RedisConnection, 'llen' | 'lindex'>
  /** The servers that hold data, as many as are known now. */
  readonly servers: () => readonly RedisServer[]
  /** The names of each of the queues. */
  readonly shards: readonly RedisNames[]
  /** What a server of Redis may use where it has no `maxmemory` of its own. */
  readonly memoryBytes: number
  /** The clock, in ms since 1970, which the chunks' ids are on. */
  readonly now: () => number
}

interface ShardReading {
  readonly jobs: number
  readonly oldestAgeS: number
}

interface ServerReading {
  readonly memoryPercent: number
  /** When the server was known last. */
  readonly knownAtMs: number
}

/**
 * A node of a cluster that is away leaves the list from time to time, while its connection is made anew: within seconds.
 * One that was taken out of the cluster is never in it again, and must not be counted for ever.
 */
const SERVER_KEPT_MS = 60_000

/**
 * Reads the queue's signals: two commands a shard and one a server, which take Redis some 10 µs together, whatever the
 * queue holds. A shard or a server that does not answer counts as it was when it did: its backlog is still there, and a
 * mark that is passed stays so. As long as another one answers, that is, and it has answered before.
 */
export class QueueGauge {
  readonly #options: QueueGaugeOptions
  /** The last reading of each shard, by its key. */
  readonly #shards = new Map<string, ShardReading>()
  /** The last reading of each server, by its address. */
  readonly #servers = new Map<string, ServerReading>()

  constructor(options: QueueGaugeOptions) {
    this.#options = options
  }

  /** @throws when Redis does not say so in time */
  async read(): Promise<QueueReading> {
    await Promise.all([this.#readQueues(), this.#readServers()])
    const queues = [...this.#shards.values()]
    return {
      jobs: queues.reduce((sum, { jobs }) => sum + jobs, 0),
      oldestAgeS: Math.max(...queues.map(({ oldestAgeS }) => oldestAgeS)),
      memoryPercent: Math.max(...[...this.#servers.values()].map(({ memoryPercent }) => memoryPercent)),
    }
  }

  async #readQueues(): Promise<void> {
    await requireOne(
      this.#options.shards.map(async (names) => {
        this.#shards.set(names.waitKey, await this.#readQueue(names))
      }),
    )
  }

  async #readServers(): Promise<void> {
    const { servers, now } = this.#options
    const knownAtMs = now()
    const known = servers()
    for (const { options } of known) {
      const last = this.#servers.get(addressOf(options))
      if (last !== undefined) this.#servers.set(addressOf(options), { ...last, knownAtMs })
    }
    for (const [address, last] of this.#servers) {
      if (knownAtMs - last.knownAtMs > SERVER_KEPT_MS) this.#servers.delete(address)
    }
    await requireOne(
      known.map(async (server) => {
        const memoryPercent = this.#memoryPercent(await server.info('memory'))
        this.#servers.set(addressOf(server.options), { memoryPercent, knownAtMs })
      }),
    )
  }

  async #readQueue({ waitKey }: RedisNames): Promise<ShardReading> {
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

const addressOf = ({ host, port }: RedisServer['options']): string => `${host}:${port}`

/** @throws when none of them succeeds */
async function requireOne(tasks: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(tasks)
  if (results.some(({ status }) => status === 'fulfilled')) return
  const failure = results.find((result) => result.status === 'rejected')
  throw failure?.reason ?? new Error('no server of Redis is known')
}

/** @throws when the INFO does not have the field, or its value is no number */
function field(info: string, name: string): number {
  const value = new RegExp(`^${name}:(\\d+)\\r?$`, 'm').exec(info)?.[1]
  if (value === undefined) throw new Error(`Redis does not tell its ${name}`)
  return Number(value)
}
