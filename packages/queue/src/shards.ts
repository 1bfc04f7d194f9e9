import {
  type DurableRedis,
  permitWrites,
  plainRedis,
  type RedisConnection,
  redisSettings,
} from '@sluice/runtime'
import { queueNames, type QueueNames, shardNames } from './queue-names.ts'

/** Higher numbers in Redis were not stored by Sluice: no process accepts them as a setting. */
const SHARDS_MAX = redisSettings.QUEUE_SHARDS.maximum

/**
 * KEYS: the number of shards, the time up to which shard 0 is complete. ARGV: a number of shards in use. Returns the highest number that
 * was ever in use, and the time. A number of 1 is not stored, because every installation has the first shard.
 */
const RECORD = `
${permitWrites}
local count = tonumber(ARGV[1])
local stored = tonumber(redis.call('GET', KEYS[1])) or 1
if stored < count then redis.call('SET', KEYS[1], ARGV[1]) end
return {math.max(stored, count), tonumber(redis.call('GET', KEYS[2]) or -1)}`

/** Returns a function that persists that a number of shards is in use. @param names of any shard */
export function shardRecorder(redis: DurableRedis, { shardCountKey, firstCompleteKey }: QueueNames) {
  const record = redis.script<[number, number]>(RECORD)
  /**
   * Readers who did not know of the recorded shards may have been told that they have all entries received by `completeMs`.
   */
  return async (shards: number): Promise<{ readonly count: number; readonly completeMs: number }> => {
    const [count, completeMs] = await record([shardCountKey, firstCompleteKey], [shards])
    return { count: Math.min(count, SHARDS_MAX), completeMs }
  }
}

/**
 * The shards that may have chunks: those of this process' setting, and retired ones, which were in use under a higher number. A shard is in
 * Redis' record before its first chunk is (`ChunkQueue`), so no shard is missed. The record is never lowered automatically: no process knows
 * whether another one still adds to the last shard.
 */
export class ShardCount {
  readonly #prefix: string
  readonly #record: () => Promise<{ readonly count: number }>
  #names: readonly QueueNames[]

  /**
   * @param prefix of the installation
   * @param configured the number of shards of this process
   */
  constructor(redis: RedisConnection, prefix: string, configured: number) {
    this.#prefix = prefix
    this.#names = shardNames(prefix, configured)
    const record = shardRecorder(plainRedis(redis), queueNames(prefix))
    this.#record = () => record(configured)
  }

  /** The names of each shard, as far as they are known now. Their number never falls. */
  get names(): readonly QueueNames[] {
    return this.#names
  }

  /** Records the number of this process, and learns the numbers of others. @throws if Redis rejects it */
  async refresh(): Promise<void> {
    const { count } = await this.#record()
    if (count > this.#names.length) this.#names = shardNames(this.#prefix, count)
  }
}
