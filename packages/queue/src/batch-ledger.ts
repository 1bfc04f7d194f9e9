import type { RedisConnection } from '@sluice/runtime'
import type { QueueNames } from './queue-names.ts'

/**
 * The state of a batch, as persisted in Redis:
 *
 * claimed (before its first insert) → confirmed (ClickHouse has stored it) → released (its jobs are completed; the record
 * expires soon).
 */
export interface BatchRecord {
  readonly state: 'claimed' | 'confirmed'
  /** Job ids, in the order in which their frames are inserted. */
  readonly members: readonly string[]
  /** Ranges of its rows that must not be sent as a whole again, because ClickHouse rejected them. */
  readonly splits: ReadonlySet<string>
}

/** The states as Redis has them. Workers of different versions share the records, so the values do not change. */
const STATE = { claimed: 'written', confirmed: 'inserted' } as const
const SPLIT_FIELD = 'split:'

/**
 * How long the record of a confirmed batch is kept while some of its jobs may not be completed. If its worker crashed before it
 * completed them, only this record tells the next worker that the rows are stored.
 */
export const CONFIRMED_TTL_S = 30 * 86_400

/**
 * How long the record is kept after all jobs are completed. An API process that did not receive Redis' answer to an add may
 * still add a copy of a chunk. It gives up after two seconds; the rest is a margin for processes that were frozen.
 */
const RELEASED_TTL_S = 300

/**
 * KEYS: the batch, the records of the chunks, the jobs of the chunks. ARGV: the id of the batch, the ids of the chunks. Returns
 * the id of each chunk's batch: this one, or the one that claimed it earlier; or '' for a chunk whose job does not exist. A
 * second run changes nothing.
 *
 * A job that does not exist was completed: its batch was confirmed, and its record may have expired. Only a worker that was
 * frozen for a long time claims such a chunk.
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
  redis.call('HSET', KEYS[1], 'state', '${STATE.claimed}', 'members', table.concat(members, ' '))
end
return owners`

/**
 * KEYS: the batch, its chunks. ARGV: the TTL of their records, in seconds; the number of splits that the caller knows, or -1 for any.
 * Returns 0, and changes nothing, if another worker has split more of the batch: the caller may have taken an ignored insert for a
 * successful one. Never extends a shorter TTL: a confirmation that arrives after the release must not keep the record, since no
 * release would follow it.
 */
const CONFIRM = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 1 end
local known = tonumber(ARGV[2])
if known >= 0 and redis.call('HGET', KEYS[1], 'state') == '${STATE.claimed}' then
  local splits = 0
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.sub(field, 1, ${SPLIT_FIELD.length}) == '${SPLIT_FIELD}' then splits = splits + 1 end
  end
  if splits > known then return 0 end
end
local ttl = redis.call('TTL', KEYS[1])
if ttl >= 0 and ttl < tonumber(ARGV[1]) then return 1 end
redis.call('HSET', KEYS[1], 'state', '${STATE.confirmed}')
for i = 1, #KEYS do redis.call('EXPIRE', KEYS[i], ARGV[1]) end
return 1`

/**
 * KEYS: the batch. ARGV: the field of a range. Returns 1 if the batch is claimed and not confirmed. A worker that was frozen or
 * disconnected may try to split a batch that another worker has confirmed.
 */
const SPLIT = `
if redis.call('HGET', KEYS[1], 'state') ~= '${STATE.claimed}' then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], '1')
return 1`

/** The records of batches in Redis. They make a batch immutable, whichever worker inserts it and however often. */
export class BatchLedger {
  readonly #redis: RedisConnection
  readonly #names: QueueNames

  constructor(redis: RedisConnection, names: QueueNames) {
    this.#redis = redis
    this.#names = names
  }

  /**
   * Persists a batch with those of the chunks that belong to no batch yet.
   *
   * @returns the id of the batch that each chunk belongs to, in the order of the chunks; undefined for a chunk whose job does
   *   not exist, because it was delivered earlier
   */
  async claim(batchId: string, chunkIds: readonly string[]): Promise<(string | undefined)[]> {
    const keys = [...this.#keys(batchId, chunkIds), ...chunkIds.map((id) => this.#names.jobKey(id))]
    const owners = (await this.#redis.eval(CLAIM, keys.length, ...keys, batchId, ...chunkIds)) as string[]
    return owners.map((owner) => (owner === '' ? undefined : owner))
  }

  /** Undefined if the batch was released, or never existed. */
  async read(batchId: string): Promise<BatchRecord | undefined> {
    const { state, members, ...rest } = await this.#redis.hgetall(this.#names.batchKey(batchId))
    if (state === undefined || members === undefined) return undefined
    const splits = Object.keys(rest).filter((field) => field.startsWith(SPLIT_FIELD))
    return {
      state: state === STATE.confirmed ? 'confirmed' : 'claimed',
      members: members.split(' '),
      splits: new Set(splits.map((field) => field.slice(SPLIT_FIELD.length))),
    }
  }

  /**
   * Persists that ClickHouse rejected a range of the batch's rows, before the parts of the range are sent.
   *
   * @returns whether the parts may be sent; if not, another worker has confirmed the batch
   */
  async recordSplit(batchId: string, range: string): Promise<boolean> {
    const key = this.#names.batchKey(batchId)
    return (await this.#redis.eval(SPLIT, 1, key, `${SPLIT_FIELD}${range}`)) === 1
  }

  /**
   * Persists that ClickHouse has stored the batch. Its jobs may complete only after this.
   *
   * @param splits the number of splits that the caller has taken into account
   * @returns false if another worker has split more of the batch; then nothing is persisted, and the batch must be read again
   */
  async confirm(batchId: string, chunkIds: readonly string[], splits: number): Promise<boolean> {
    return this.#expire(batchId, chunkIds, CONFIRMED_TTL_S, splits)
  }

  /** Lets the records expire soon. To be called when all jobs of the batch are completed. */
  async release(batchId: string, chunkIds: readonly string[]): Promise<void> {
    await this.#expire(batchId, chunkIds, RELEASED_TTL_S, -1)
  }

  async #expire(
    batchId: string,
    chunkIds: readonly string[],
    ttlS: number,
    splits: number,
  ): Promise<boolean> {
    const keys = this.#keys(batchId, chunkIds)
    return (await this.#redis.eval(CONFIRM, keys.length, ...keys, ttlS, splits)) === 1
  }

  #keys(batchId: string, chunkIds: readonly string[]): string[] {
    return [this.#names.batchKey(batchId), ...chunkIds.map((id) => this.#names.chunkKey(id))]
  }
}
