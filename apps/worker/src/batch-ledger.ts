import type { RedisConnection } from '@sluice/runtime'
import type { RedisNames } from '@sluice/schema'

/**
 * Where a batch stands, as written down in Redis:
 *
 * written (before its first insert) → inserted (ClickHouse confirmed it) → forgotten (its jobs are completed, and no
 * copy of a chunk can come any more).
 */
export interface BatchRecord {
  readonly state: 'written' | 'inserted'
  /** Job ids, in the order in which their frames are inserted. */
  readonly members: readonly string[]
  /** Ranges of its rows that are not to be sent as one any more, because ClickHouse refused them. */
  readonly splits: ReadonlySet<string>
}

const SPLIT_FIELD = 'split:'

/**
 * How long a batch that was inserted is remembered while some of its jobs may not be completed: its worker died in
 * between, and until another one comes the record alone tells that the rows are there.
 */
export const INSERTED_TTL_S = 30 * 86_400

/**
 * How long a batch whose jobs are completed is remembered: an API process may still send a copy of a chunk, because it
 * did not get Redis' answer to the first. It gives up after two seconds; the rest is for processes that were frozen.
 */
const COMPLETED_TTL_S = 300

/**
 * KEYS: the batch, the chunks' records, the chunks' jobs. ARGV: the batch's id, the chunks' ids. Returns the id of each
 * chunk's batch: this one, or the one it was written down with before; or '' for a chunk whose job is gone. Running it
 * again changes nothing.
 *
 * A job that is gone was completed: its batch was inserted, and may be forgotten by now. Only a worker that was frozen
 * for long asks for one.
 */
const CLAIM = `
local owners, members = {}, {}
local count = #ARGV - 1
for i = 1, count do
  local owner = redis.call('GET', KEYS[1 + i])
  if not owner then
    if redis.call('EXISTS', KEYS[1 + count + i]) == 1 then
      owner = ARGV[1]
      redis.call('SET', KEYS[1 + i], owner)
    else
      owner = ''
    end
  end
  owners[i] = owner
  if owner == ARGV[1] then members[#members + 1] = ARGV[1 + i] end
end
if #members > 0 and redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'state', 'written', 'members', table.concat(members, ' '))
end
return owners`

/**
 * KEYS: the batch, its chunks. ARGV: how long to remember them, in seconds. What is to be forgotten sooner stays so: a
 * confirmation that comes after the release would have no release after it.
 */
const CONFIRM = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local ttl = redis.call('TTL', KEYS[1])
if ttl >= 0 and ttl < tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'state', 'inserted')
for i = 1, #KEYS do redis.call('EXPIRE', KEYS[i], ARGV[1]) end
return 1`

/**
 * KEYS: the batch. ARGV: the field of a range. Returns whether the batch is still to be inserted: a worker that was frozen or cut off
 * asks for one that another worker has inserted, and may split it no more.
 */
const SPLIT = `
if redis.call('HGET', KEYS[1], 'state') ~= 'written' then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], '1')
return 1`

/** The written-down batches: what makes a batch immutable, whoever inserts it and however often. */
export class BatchLedger {
  readonly #redis: RedisConnection
  readonly #names: RedisNames

  constructor(redis: RedisConnection, names: RedisNames) {
    this.#redis = redis
    this.#names = names
  }

  /**
   * Writes a batch down with those of the chunks that belong to no batch yet.
   *
   * @returns the id of the batch that each chunk belongs to, in the chunks' order; '' for one that was delivered before
   */
  async claim(batchId: string, chunkIds: readonly string[]): Promise<string[]> {
    const keys = [...this.#keys(batchId, chunkIds), ...chunkIds.map((id) => this.#names.jobKey(id))]
    return (await this.#redis.eval(CLAIM, keys.length, ...keys, batchId, ...chunkIds)) as string[]
  }

  /** Undefined when the batch is forgotten, or never was. */
  async read(batchId: string): Promise<BatchRecord | undefined> {
    const { state, members, ...rest } = await this.#redis.hgetall(this.#names.batchKey(batchId))
    if (state === undefined || members === undefined) return undefined
    const splits = Object.keys(rest).filter((field) => field.startsWith(SPLIT_FIELD))
    return {
      state: state === 'inserted' ? 'inserted' : 'written',
      members: members.split(' '),
      splits: new Set(splits.map((field) => field.slice(SPLIT_FIELD.length))),
    }
  }

  /**
   * Writes down that a range of the batch's rows was refused as one, before its parts are sent.
   *
   * @returns whether they may be sent; if not, the batch was inserted meanwhile
   */
  async recordSplit(batchId: string, range: string): Promise<boolean> {
    const key = this.#names.batchKey(batchId)
    return (await this.#redis.eval(SPLIT, 1, key, `${SPLIT_FIELD}${range}`)) === 1
  }

  /** Writes down that ClickHouse has confirmed the batch. Only then may its jobs complete. */
  async confirm(batchId: string, chunkIds: readonly string[]): Promise<void> {
    await this.#remember(batchId, chunkIds, INSERTED_TTL_S)
  }

  /** To be called when all jobs of the batch are completed: it is forgotten soon after. */
  async release(batchId: string, chunkIds: readonly string[]): Promise<void> {
    await this.#remember(batchId, chunkIds, COMPLETED_TTL_S)
  }

  async #remember(batchId: string, chunkIds: readonly string[], ttlS: number): Promise<void> {
    const keys = this.#keys(batchId, chunkIds)
    await this.#redis.eval(CONFIRM, keys.length, ...keys, ttlS)
  }

  #keys(batchId: string, chunkIds: readonly string[]): string[] {
    return [this.#names.batchKey(batchId), ...chunkIds.map((id) => this.#names.chunkKey(id))]
  }
}
