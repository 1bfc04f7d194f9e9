import { type DurableRedis, pairsOf, permitWrites, type RedisScript } from '@sluice/runtime'
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
  /** The number of the last repair that has begun. 0 before the first one. */
  readonly repairs: number
}

export interface BatchRepair {
  /** Each repair of a batch has a higher number than the one before. Redis rejects the splits and the confirmation of all but the last. */
  readonly number: number
  readonly splits: ReadonlySet<string>
}

/** The states as Redis has them. Workers of different versions share the records, so the values do not change. */
export const batchState = { claimed: 'written', confirmed: 'inserted' } as const
/** The beginning of the fields that name the split ranges of a batch. */
const SPLIT_FIELD = 'split:'
export const REPAIRS_FIELD = 'repairs'

/**
 * How long the record of a confirmed batch is kept while some of its jobs may not be completed. If its worker crashed before it
 * completed them, only this record shows the next worker that the rows are stored.
 */
export const CONFIRMED_TTL_S = 30 * 86_400

/**
 * How long the record is kept after all jobs are completed. An API process that did not receive Redis' reply to an add may
 * still add a copy of a chunk. It gives up after two seconds; the rest is a margin for processes that were frozen.
 */
export const RELEASED_TTL_S = 300

/**
 * How long a worker may recover a batch without an extension of its lease. Callers extend it every 5 s, so one extension may fail.
 * After the death of the worker, the recovery continues within this time.
 */
const LEASE_TTL_MS = 15_000

/**
 * KEYS: the batch, the records of the chunks, the jobs of the chunks. ARGV: the id of the batch, the ids of the chunks. Returns
 * the id of each chunk's batch: this one, or the batch that claimed it earlier; or '' for a chunk whose job does not exist. A
 * second run changes nothing.
 *
 * A job that does not exist was completed: its batch was confirmed, and its record may have expired. Only a worker that was
 * frozen for a long time claims such a chunk.
 */
const CLAIM = `
${permitWrites}
local count = #ARGV - 1
local owners = redis.call('MGET', unpack(KEYS, 2, 1 + count))
local members, records = {}, {}
for i = 1, count do
  if not owners[i] then
    if redis.call('EXISTS', KEYS[1 + count + i]) == 1 then
      owners[i] = ARGV[1]
      records[#records + 1], records[#records + 2] = KEYS[1 + i], ARGV[1]
    else
      owners[i] = ''
    end
  end
  if owners[i] == ARGV[1] then members[#members + 1] = ARGV[1 + i] end
end
if #records > 0 then redis.call('MSET', unpack(records)) end
if #members > 0 and redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'state', '${batchState.claimed}', 'members', table.concat(members, ' '))
end
return owners`

/**
 * KEYS: the batch. ARGV: the field of a range, the number of the repair. Returns 1 if the batch is claimed and not confirmed, and -1 if
 * another repair has begun. A worker that was frozen or disconnected may try to split a batch that another worker has confirmed. A
 * request of an earlier repair may arrive late.
 */
const SPLIT = `
${permitWrites}
if redis.call('HGET', KEYS[1], 'state') ~= '${batchState.claimed}' then return 0 end
if redis.call('HGET', KEYS[1], '${REPAIRS_FIELD}') ~= ARGV[2] then return -1 end
redis.call('HSET', KEYS[1], ARGV[1], '1')
return 1`

/**
 * KEYS: the lease, the batch. ARGV: the worker, the TTL in ms. Returns the number of the repair and the fields of the record; nothing if
 * another worker has the lease.
 */
const BEGIN_REPAIR = `
${permitWrites}
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return nil end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if redis.call('EXISTS', KEYS[2]) == 0 then return { 0, {} } end
return { redis.call('HINCRBY', KEYS[2], '${REPAIRS_FIELD}', 1), redis.call('HKEYS', KEYS[2]) }`

/** KEYS: the lease. ARGV: the worker, the TTL in ms. With a TTL of 0, Redis deletes the lease. */
const RENEW_LEASE = `
${permitWrites}
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end`

/**
 * KEYS: the batch. Returns the fields and values of its record. As a script, so that what is read is as durable as what is written: a
 * worker inserts a batch because of it.
 */
const READ = `return redis.call('HGETALL', KEYS[1])`

/** The records of batches in Redis. They make a batch immutable, whichever worker inserts it and however often. */
export class BatchLedger {
  readonly #names: QueueNames
  readonly #claim: RedisScript<string[]>
  readonly #read: RedisScript<string[]>
  readonly #split: RedisScript<number>
  readonly #beginRepair: RedisScript<[number, string[]] | null>
  readonly #renewLease: RedisScript<null>

  constructor(redis: DurableRedis, names: QueueNames) {
    this.#names = names
    this.#claim = redis.script(CLAIM)
    this.#read = redis.script(READ)
    this.#split = redis.script(SPLIT)
    this.#beginRepair = redis.script(BEGIN_REPAIR)
    this.#renewLease = redis.script(RENEW_LEASE)
  }

  /**
   * Persists a batch with the chunks that belong to no batch yet.
   *
   * @param chunkIds at least one, and at most 3,000: Lua cannot pass more to one command
   * @returns the id of the batch that each chunk belongs to, in the order of the chunks; undefined for a chunk whose job does
   *   not exist, because it was delivered earlier
   */
  async claim(batchId: string, chunkIds: readonly string[]): Promise<(string | undefined)[]> {
    const names = this.#names
    const keys = [names.batchKey(batchId), ...chunkIds.map(names.chunkKey), ...chunkIds.map(names.jobKey)]
    const owners = await this.#claim(keys, [batchId, ...chunkIds])
    return owners.map((owner) => (owner === '' ? undefined : owner))
  }

  /** Undefined if the batch was released, or never existed. */
  async read(batchId: string): Promise<BatchRecord | undefined> {
    const fields = new Map(pairsOf(await this.#read([this.#names.batchKey(batchId)], [])))
    const [state, members] = [fields.get('state'), fields.get('members')]
    if (state === undefined || members === undefined) return undefined
    return {
      state: state === batchState.confirmed ? 'confirmed' : 'claimed',
      members: members.split(' '),
      splits: splitsIn([...fields.keys()]),
      repairs: Number(fields.get(REPAIRS_FIELD) ?? 0),
    }
  }

  /**
   * Begins a repair of a batch, and takes the lease for it for 15 s. The lease is for efficiency only: the chunks of a dead worker's batch
   * return to the queue one by one, and without a lease several workers would insert the batch. Only the number of the repair is relied
   * on.
   *
   * @returns undefined if another worker has the lease
   */
  async beginRepair(batchId: string, workerId: string): Promise<BatchRepair | undefined> {
    const keys = [this.#names.leaseKey(batchId), this.#names.batchKey(batchId)]
    const begun = await this.#beginRepair(keys, [workerId, LEASE_TTL_MS])
    if (begun === null) return undefined
    const [number, fields] = begun
    return { number, splits: splitsIn(fields) }
  }

  /**
   * Persists that ClickHouse rejected a range of the batch's rows, before the parts of the range are sent.
   *
   * @param repair the number of the repair that rejects the range
   * @returns whether the parts may be sent; if not, another worker has confirmed the batch
   * @throws if another repair of the batch has begun
   */
  async recordSplit(batchId: string, range: string, repair: number): Promise<boolean> {
    const result = await this.#split([this.#names.batchKey(batchId)], [`${SPLIT_FIELD}${range}`, repair])
    if (result === -1) throw new Error('another repair of the batch has begun')
    return result === 1
  }

  /** Extends the lease to 15 s from now if the worker has it. */
  async renewLease(batchId: string, workerId: string): Promise<void> {
    await this.#renewLease([this.#names.leaseKey(batchId)], [workerId, LEASE_TTL_MS])
  }

  /** Ends the lease if the worker has it. */
  async endLease(batchId: string, workerId: string): Promise<void> {
    await this.#renewLease([this.#names.leaseKey(batchId)], [workerId, 0])
  }
}

function splitsIn(fields: readonly string[]): Set<string> {
  const splits = fields.filter((field) => field.startsWith(SPLIT_FIELD))
  return new Set(splits.map((field) => field.slice(SPLIT_FIELD.length)))
}
