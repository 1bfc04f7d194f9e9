import { type QueueNames, readRowTotals, type RowTotals, type ShardCount } from '@sluice/queue'
import { idTimeMs } from '@sluice/rows'
import { type RedisConnection, redisInfoField } from '@sluice/runtime'
import type { Redis } from 'ioredis'

export interface QueueReading {
  /** Chunks that no worker holds, delayed ones included. */
  readonly waiting: number
  /** Chunks that workers have fetched and not completed. */
  readonly inHand: number
  /** The age of the oldest of both, in seconds, unless it was requeued behind newer ones. */
  readonly oldestAgeS: number
  /** Chunks whose jobs failed. No worker takes them, until an operator does something about them. */
  readonly failed: number
  /** Used share of Redis' memory, in percent; of several servers, of the fullest one. */
  readonly memoryPercent: number
  readonly shards: readonly ShardReading[]
  readonly servers: readonly ServerMemory[]
}

export interface ShardReading {
  readonly shard: number
  /** Chunks that no worker holds, without the delayed ones. */
  readonly waiting: number
  /** Chunks that wait for a worker that knows their format. */
  readonly delayed: number
  readonly inHand: number
  readonly failed: number
  readonly oldestAgeS: number
  readonly totals: RowTotals
}

export interface ServerMemory {
  readonly server: string
  readonly usedBytes: number
  readonly limitBytes: number
}

export interface QueueGaugeOptions {
  /** A connection that fails fast and has a command timeout. */
  readonly redis: Pick<RedisConnection, 'llen' | 'lindex' | 'zcard' | 'hgetall'>
  /** The servers that hold data, as far as they are known now. */
  readonly servers: () => readonly Pick<Redis, 'info' | 'options'>[]
  readonly shards: Pick<ShardCount, 'names' | 'refresh'>
  /** The memory budget of a Redis server that has no `maxmemory`, in bytes. */
  readonly memoryBytes: number
  /** The clock of the chunks' ids, ms since 1970: the same for all processes that make them. */
  readonly wallMs: () => number
}

/**
 * Reads the state of the queues, retired shards included: a script, seven commands per shard and one per server. With one shard they take
 * Redis about 30 µs in total, regardless of the size of the queue, and about 1 µs more with each further shard. A shard or a server that
 * does not reply counts with its last reading: its backlog still exists. This needs an earlier reply of it, and at least one other that
 * replies now.
 */
export class QueueGauge {
  readonly #options: QueueGaugeOptions
  /** The last reading of each shard, by its wait list. */
  readonly #shards = new Map<string, ShardReading>()
  /** Why the last reading of each shard failed, by its wait list. */
  readonly #failures = new Map<string, string>()
  /** The last reading of each known server, by its address. */
  readonly #servers = new Map<string, ServerMemory>()

  constructor(options: QueueGaugeOptions) {
    this.#options = options
  }

  /** @throws when no shard or no server replies in time, or the clock is not known */
  async read(): Promise<QueueReading> {
    await Promise.all([this.#readQueues(), this.#readServers()])
    const queues = [...this.#shards.values()]
    const servers = [...this.#servers.values()]
    return {
      waiting: queues.reduce((sum, { waiting, delayed }) => sum + waiting + delayed, 0),
      inHand: queues.reduce((sum, { inHand }) => sum + inHand, 0),
      oldestAgeS: Math.max(...queues.map(({ oldestAgeS }) => oldestAgeS)),
      failed: queues.reduce((sum, { failed }) => sum + failed, 0),
      memoryPercent: Math.max(...servers.map((each) => Math.round((100 * each.usedBytes) / each.limitBytes))),
      shards: queues,
      servers,
    }
  }

  /** Why a shard was not read last time; undefined if it was, or was not attempted. */
  failureOf({ waitKey }: QueueNames): string | undefined {
    return this.#failures.get(waitKey)
  }

  async #readQueues(): Promise<void> {
    const { shards } = this.#options
    // Without a reply, the shards known so far are read. In a cluster, their servers may still reply.
    await shards.refresh().catch(() => undefined)
    await requireOne(
      shards.names.map(async (names) => {
        try {
          this.#shards.set(names.waitKey, await this.#readQueue(names))
          this.#failures.delete(names.waitKey)
        } catch (error) {
          this.#failures.set(names.waitKey, error instanceof Error ? error.message : 'unknown')
          throw error
        }
      }),
    )
  }

  async #readServers(): Promise<void> {
    const { servers, memoryBytes } = this.#options
    const known = new Map(
      servers().map((server) => [`${server.options.host}:${server.options.port}`, server]),
    )
    // A node that was removed from its cluster must not count forever.
    for (const address of this.#servers.keys()) if (!known.has(address)) this.#servers.delete(address)
    await requireOne(
      Array.from(known, async ([address, server]) => {
        const info = await server.info('memory')
        // As Redis counts for `maxmemory`: without the buffers of its append-only file and its replicas.
        const usedBytes = field(info, 'used_memory') - field(info, 'mem_not_counted_for_evict')
        const limitBytes = field(info, 'maxmemory') || memoryBytes
        this.#servers.set(address, { server: address, usedBytes, limitBytes })
      }),
    )
  }

  /**
   * The held chunks count: a stuck worker holds the oldest ones. The age is the higher one of the next chunk to be fetched and of the
   * chunk held for the longest time. An older chunk that returned to the back of the queue counts when it is next again.
   */
  async #readQueue(names: QueueNames): Promise<ShardReading> {
    const { shard, waitKey, activeKey, delayedKey, failedKey, totalsKey } = names
    const { redis, wallMs } = this.#options
    const [waiting, delayed, inHand, failed, totals, ...oldest] = await Promise.all([
      redis.llen(waitKey),
      redis.zcard(delayedKey),
      redis.llen(activeKey),
      redis.zcard(failedKey),
      redis.hgetall(totalsKey),
      redis.lindex(waitKey, -1),
      redis.lindex(activeKey, -1),
    ])
    const nowMs = wallMs()
    const agesMs = oldest.map((id) => (id === null ? 0 : nowMs - idTimeMs(id)))
    const oldestAgeS = Math.max(0, ...agesMs) / 1_000
    return { shard, waiting, delayed, inHand, oldestAgeS, failed, totals: readRowTotals(totals) }
  }
}

/** @throws if none of the tasks succeeds */
async function requireOne(tasks: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(tasks)
  if (results.some(({ status }) => status === 'fulfilled')) return
  const failure = results.find((result) => result.status === 'rejected')
  throw failure?.reason ?? new Error('no Redis server is known')
}

/** @throws if the reply to INFO does not have the field, or its value is not a number */
function field(info: string, name: string): number {
  const value = Number(redisInfoField(info, name))
  if (Number.isNaN(value)) throw new Error(`Redis does not report its ${name}`)
  return value
}
