import {
  type DurableRedis,
  type MonotonicClock,
  permitWrites,
  processClock,
  type RedisScript,
} from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { queueNames, type QueueNames } from './queue-names.ts'

export const completenessLimits = {
  /**
   * Entries received in this time before a question are not complete yet. Nearly all of them are in the queue by then. A chunk that is not must
   * be compressed again, with a later time of receipt.
   */
  settleMs: 250,
  /** The answer to a question serves all that are asked within this time. Each costs Redis two writes to its disk at most. */
  answerMs: 100,
} as const

/**
 * KEYS: the time up to which the shard is complete, the receipts, the admitted chunks, BullMQ's wait and active lists, its sets of delayed
 * and of failed jobs, the number of shards, `comparedKey`, `absentKey`. ARGV: a time of receipt, the beginning of the queue's keys. From now
 * on, no chunk with a row that was received up to this time is added. Returns the time up to which no row is in the queue or can come into
 * it; -1 if that is not known; and the number of shards in use.
 *
 * It is not known while there are chunks that processes of an earlier version have added, without receipts. Their workers leave receipts of
 * completed chunks, so the numbers may agree by chance: until all receipts were compared with jobs once, they say nothing.
 */
export const COMPLETE = `
${permitWrites}
local complete, receipts, admitted = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + time[2] / 1000
for _, id in ipairs(redis.call('ZRANGEBYSCORE', admitted, '-inf', '(' .. string.format('%.3f', nowMs))) do
  redis.call('ZREM', admitted, id)
  redis.call('ZREM', receipts, id)
end
local untilMs = tonumber(redis.call('GET', complete) or -1)
if tonumber(ARGV[1]) > untilMs then
  untilMs = tonumber(ARGV[1])
  redis.call('SET', complete, ARGV[1])
end
local first = redis.call('ZRANGE', receipts, 0, 0, 'WITHSCORES')
local function forget(id)
  if redis.call('EXISTS', ARGV[2] .. id) == 1 or redis.call('ZSCORE', admitted, id) then return false end
  return redis.call('ZREM', receipts, id)
end
while first[1] and forget(first[1]) do
  first = redis.call('ZRANGE', receipts, 0, 0, 'WITHSCORES')
end
local jobs = redis.call('LLEN', KEYS[4]) + redis.call('LLEN', KEYS[5]) + redis.call('ZCARD', KEYS[6]) + redis.call('ZCARD', KEYS[7])
local function agree() return redis.call('ZCARD', receipts) - redis.call('ZCARD', admitted) == jobs end
local compared = KEYS[9]
if agree() and redis.call('EXISTS', compared) == 0 then
  for _, id in ipairs(redis.call('ZRANGE', receipts, 0, -1)) do forget(id) end
  if agree() then redis.call('SET', compared, 1) end
end
if not agree() then
  redis.call('DEL', compared)
  untilMs = -1
elseif first[1] then untilMs = math.min(untilMs, tonumber(first[2]) - 1) end
return {untilMs, tonumber(redis.call('GET', KEYS[8]) or 1)}`

export type CompleteScript = RedisScript<[untilMs: number, shards: number]>

/** Runs the script for a shard. @param closedMs up to which receipt no more chunks are added */
export function closeShard(
  script: CompleteScript,
  names: QueueNames,
  closedMs: number,
): ReturnType<CompleteScript> {
  const queue = [names.waitKey, names.activeKey, names.delayedKey, names.failedKey]
  // Only shard 0 has the number of shards in its slot.
  const count = names.shard === 0 ? names.shardCountKey : names.absentKey
  const own = [names.completeKey, names.receiptsKey, names.admittedKey]
  const keys = [...own, ...queue, count, names.comparedKey, names.absentKey]
  return script(keys, [closedMs, names.jobKey('')])
}

export interface CompletenessOptions {
  /** What an answer relies on is on all replicas that must confirm it. */
  readonly durable: DurableRedis
  readonly prefix: string
  /** The shards of this process' setting. Others that are in use are learnt. */
  readonly shards: number
  /** The clock that stamps entries, ms since 1970: of Redis. Undefined before it is known. */
  readonly redisMs: () => number | undefined
  /** The clock of this process. Of the two, the earlier one counts: a clock that was set forward must not say what is complete. */
  readonly wallMs: () => number
  readonly clock?: MonotonicClock
}

/**
 * Up to which time of receipt a reader has all entries that were ever acknowledged: invariant 13 of docs/exactly-once.md. The answer holds
 * for ever. If a shard does not reply, its last answer is used.
 */
export class Completeness {
  readonly #options: CompletenessOptions
  readonly #clock: MonotonicClock
  readonly #script: CompleteScript
  /** The last answer of each shard. */
  readonly #untilMs = new Map<number, number>()
  #shards: number
  #asked: { readonly atMs: number; readonly untilMs: Promise<number | null> } | undefined
  #roundTripMs = 0

  constructor(options: CompletenessOptions) {
    this.#options = options
    this.#clock = options.clock ?? processClock
    this.#shards = options.shards
    this.#script = options.durable.script(COMPLETE)
  }

  /**
   * No entry that was received by this time becomes visible after this promise has settled.
   *
   * @returns ms since 1970; null if it is not known
   */
  until(): Promise<number | null> {
    const atMs = this.#clock.nowMs()
    if (this.#asked === undefined || atMs - this.#asked.atMs >= completenessLimits.answerMs)
      this.#asked = { atMs, untilMs: this.#ask(atMs) }
    return this.#asked.untilMs
  }

  async #ask(atMs: number): Promise<number | null> {
    const { redisMs, wallMs, prefix } = this.#options
    const nowMs = Math.min(redisMs() ?? Number.NaN, wallMs())
    if (Number.isNaN(nowMs)) return null
    // While Redis is slow, chunks take longer to come into the queue, too.
    const closedMs = Math.floor(nowMs - completenessLimits.settleMs - 2 * this.#roundTripMs)
    // Shard 0 is asked first: a shard that is not known then adds nothing that was received by the time that shard 0 has closed.
    await this.#askShard(queueNames(prefix), closedMs)
    const others = Array.from({ length: this.#shards - 1 }, (_, i) => queueNames(prefix, i + 1))
    await Promise.all(others.map((names) => this.#askShard(names, closedMs)))
    this.#roundTripMs = this.#clock.nowMs() - atMs
    const untilMs = Math.min(
      ...Array.from({ length: this.#shards }, (_, shard) => this.#untilMs.get(shard) ?? -1),
    )
    return untilMs < 0 ? null : untilMs
  }

  async #askShard(names: QueueNames, closedMs: number): Promise<void> {
    try {
      const [untilMs, shards] = await closeShard(this.#script, names, closedMs)
      this.#untilMs.set(names.shard, untilMs)
      this.#shards = Math.max(this.#shards, shards)
    } catch {
      // The owner of the connection logs it.
    }
  }
}

/** How long the time of late rows does not become complete. */
const LATE_MAX_MS = 600_000
/** An insert that was given up ends within 120 s: see the assumptions in docs/exactly-once.md. */
const LATE_SENT_MS = LATE_MAX_MS / 2

/** KEYS: as the first three of `COMPLETE`. ARGV: an id, for how long the time may not become complete. Returns a time of receipt that is not complete. */
const ADMIT = `
${permitWrites}
local time = redis.call('TIME')
local receivedMs = tonumber(redis.call('GET', KEYS[1]) or -1) + 1
redis.call('ZADD', KEYS[3], time[1] * 1000 + time[2] / 1000 + ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[2], receivedMs, ARGV[1])
return receivedMs`

/** KEYS, ARGV: as for `ADMIT`. */
const RELEASE = `
${permitWrites}
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])`

/**
 * Runs inserts of rows that were never in the queue, or left it long ago. They get a later time of receipt, which does not become complete
 * before the insert has ended.
 *
 * @param names of any shard
 * @returns runs an insert. It asks for the time of receipt, ms since 1970, right before it sends the rows: a process that was suspended gets
 *   an error. If the insert throws, it may still end within ten minutes, and nothing becomes complete until then
 */
export function lateInserts(
  durable: DurableRedis,
  { completeKey, receiptsKey, admittedKey }: QueueNames,
  clock = processClock,
): <Result>(insert: (receivedMs: () => number) => Promise<Result>) => Promise<Result> {
  const [admit, release] = [durable.script<number>(ADMIT), durable.script<null>(RELEASE)]
  const keys = [completeKey, receiptsKey, admittedKey]
  return async (insert) => {
    const id = `late:${randomUUID()}`
    const endMs = clock.nowMs() + LATE_SENT_MS
    const receivedMs = await admit(keys, [id, LATE_MAX_MS])
    const result = await insert(() => {
      if (clock.nowMs() < endMs) return receivedMs
      throw new Error('the process was suspended, or the insert took too long. Run the command again')
    })
    await release(keys, [id])
    return result
  }
}
