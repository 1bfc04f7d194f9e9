import {
  type DurableRedis,
  installationNames,
  permitWrites,
  plainRedis,
  type RedisConnection,
  redisSettings,
} from '@sluice/runtime'
import type { ChunkQueue } from './chunk-queue.ts'
import { type QueueNames, shardNames } from './queue-names.ts'
import { type FoundRecord, QueueUnavailableError } from './recorded-add.ts'

/** Higher numbers in Redis were not stored by Sluice: no process accepts them as a setting. */
const SHARDS_MAX = redisSettings.QUEUE_SHARDS.maximum

/**
 * KEYS: the number of shards. ARGV: a number of shards in use. Returns the highest number that was ever in use. A number of 1 is not
 * stored, because every installation has the first shard. A second run changes nothing.
 */
const RECORD = `
${permitWrites}
local count = tonumber(ARGV[1])
local stored = tonumber(redis.call('GET', KEYS[1])) or 1
if stored >= count then return stored end
redis.call('SET', KEYS[1], ARGV[1])
return count`

/**
 * Persists the numbers of shards in use.
 *
 * @param key see `InstallationNames.shardCountKey`
 * @returns a function that persists that this number of shards is in use, and resolves to the highest number that was ever in use. It
 *   rejects if Redis does
 */
export function shardRecorder(redis: DurableRedis, key: string): (count: number) => Promise<number> {
  const record = redis.script<number>(RECORD)
  return async (count) => Math.min(await record([key], [count]), SHARDS_MAX)
}

/**
 * The shards that may have chunks: the shards of this process' setting, and retired ones, which were in use under a higher number. A shard
 * is in Redis' record before its first chunk is (`ChunkQueue`), so no shard is missed, whichever processes have which setting.
 *
 * The record is never lowered automatically. No process knows whether another one still adds to the last shard.
 */
export class ShardCount {
  readonly #redis: Pick<RedisConnection, 'exists'>
  readonly #prefix: string
  readonly #record: () => Promise<number>
  #names: readonly QueueNames[]

  /**
   * @param prefix of the installation
   * @param configured the number of shards of this process
   */
  constructor(redis: RedisConnection, prefix: string, configured: number) {
    this.#redis = redis
    this.#prefix = prefix
    this.#names = shardNames(prefix, configured)
    const record = shardRecorder(plainRedis(redis), installationNames(prefix).shardCountKey)
    this.#record = () => record(configured)
  }

  /** The names of each shard, as far as they are known now. Their number never falls. */
  get names(): readonly QueueNames[] {
    return this.#names
  }

  /** Records the number of this process, and learns the numbers of others. @throws if Redis rejects it */
  async refresh(): Promise<void> {
    const count = await this.#record()
    if (count > this.#names.length) this.#names = shardNames(this.#prefix, count)
  }

  /** Whether a shard has no chunk in any state. Failed ones count. */
  async isEmpty({ waitKey, activeKey, delayedKey, failedKey }: QueueNames): Promise<boolean> {
    return (await this.#redis.exists(waitKey, activeKey, delayedKey, failedKey)) === 0
  }
}

/** A shard that failed gets one chunk per interval as a probe, while other shards work. */
const PROBE_INTERVAL_MS = 5_000

interface Shard {
  readonly queue: Pick<ChunkQueue, 'add'>
  readonly index: number
  addsInFlight: number
  failedAtMs: number
}

/**
 * Distributes chunks over the shards. Of the shards that work, each chunk goes to the least busy one; equally busy shards
 * alternate. All attempts to add a chunk go to the same shard, because no other shard knows its id.
 */
export class ShardedQueue {
  readonly #shards: readonly Shard[]
  readonly #monotonicMs: () => number
  /** The shard that is the first choice for the next chunk. */
  #next = 0

  constructor(queues: readonly Shard['queue'][], monotonicMs: () => number) {
    this.#shards = queues.map((queue, index) => ({ queue, index, addsInFlight: 0, failedAtMs: -Infinity }))
    this.#monotonicMs = monotonicMs
  }

  /**
   * Adds to a shard, or to any if it is undefined: see `ChunkQueue.add`.
   *
   * @returns the index of the shard, and what Redis found instead of storing the records
   */
  async addTo(
    index: number | undefined,
    ...add: Parameters<ChunkQueue['add']>
  ): Promise<{ readonly shard: number; readonly found: readonly FoundRecord[] | undefined }> {
    const shard = (index === undefined ? undefined : this.#shards[index]) ?? this.#choose()
    shard.addsInFlight += 1
    try {
      return { shard: shard.index, found: await shard.queue.add(...add) }
    } catch (error) {
      if (error instanceof QueueUnavailableError) shard.failedAtMs = this.#monotonicMs()
      throw error
    } finally {
      shard.addsInFlight -= 1
    }
  }

  #choose(): Shard {
    const failedSinceMs = this.#monotonicMs() - PROBE_INTERVAL_MS
    const cost = ({ addsInFlight, failedAtMs }: Shard): number =>
      failedAtMs > failedSinceMs ? Number.MAX_SAFE_INTEGER : addsInFlight
    const inOrder = [...this.#shards.slice(this.#next), ...this.#shards.slice(0, this.#next)]
    const chosen = inOrder.reduce((best, shard) => (cost(shard) < cost(best) ? shard : best))
    this.#next = (chosen.index + 1) % this.#shards.length
    return chosen
  }
}
