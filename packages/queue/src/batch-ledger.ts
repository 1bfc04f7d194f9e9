import { type DurableRedis, pairsOf, permitWrites } from '@sluice/runtime'
import type { QueueNames } from './queue-names.ts'

/**
 * A batch as persisted in Redis: claimed (before its first insert) → confirmed (ClickHouse has stored it) → released (its jobs are
 * completed; the record expires soon).
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
 * For how long the record of a confirmed batch is kept while some of its jobs may not be completed: after a crash of its worker, only this
 * record shows that the rows are stored.
 */
export const CONFIRMED_TTL_S = 30 * 86_400

/**
 * For how long the record is kept after all jobs are completed: an API process may add a copy of a chunk for two seconds. The rest is a
 * margin for processes that were frozen.
 */
export const RELEASED_TTL_S = 300

/** For how long a lease is valid. Callers extend it every 5 s, so one extension may fail. */
const LEASE_TTL_MS = 15_000

/**
 * KEYS: the batch, the records of the chunks, the jobs of the chunks. ARGV: the id of the batch, the ids of the chunks. Returns
 * the id of each chunk's batch: this one, or the batch that claimed it earlier; or '' for a chunk whose job does not exist, because it was
 * completed. A second run changes nothing.
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
 * another repair has begun.
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

/** KEYS: the batch. Returns the fields and values of its record. As a script, so that what is read is as durable as what is written. */
const READ = `return redis.call('HGETALL', KEYS[1])`

export type BatchLedger = ReturnType<typeof batchLedger>

/** The records of batches in Redis. They make a batch immutable, whichever worker inserts it and however often. */
export function batchLedger(redis: DurableRedis, { batchKey, chunkKey, jobKey, leaseKey }: QueueNames) {
  const claimScript = redis.script<string[]>(CLAIM)
  const readScript = redis.script<string[]>(READ)
  const splitScript = redis.script<number>(SPLIT)
  const beginScript = redis.script<[number, string[]] | null>(BEGIN_REPAIR)
  const leaseScript = redis.script<null>(RENEW_LEASE)
  return {
    /**
     * Persists a batch with the chunks that belong to no batch yet.
     *
     * @param chunkIds at least one, and at most 3,000: Lua cannot pass more to one command
     * @returns the id of the batch of each chunk; undefined for a chunk that was delivered earlier
     */
    async claim(batchId: string, chunkIds: readonly string[]): Promise<(string | undefined)[]> {
      const keys = [batchKey(batchId), ...chunkIds.map(chunkKey), ...chunkIds.map(jobKey)]
      const owners = await claimScript(keys, [batchId, ...chunkIds])
      return owners.map((owner) => (owner === '' ? undefined : owner))
    },
    /** Undefined if the batch was released, or never existed. */
    async read(batchId: string): Promise<BatchRecord | undefined> {
      const fields = new Map(pairsOf(await readScript([batchKey(batchId)], [])))
      const [state, members] = [fields.get('state'), fields.get('members')]
      if (state === undefined || members === undefined) return undefined
      return {
        state: state === batchState.confirmed ? 'confirmed' : 'claimed',
        members: members.split(' '),
        splits: splitsIn([...fields.keys()]),
        repairs: Number(fields.get(REPAIRS_FIELD) ?? 0),
      }
    },
    /**
     * Begins a repair of a batch, and takes its lease. The lease is for efficiency only: the chunks of a dead worker's batch return to the
     * queue one by one, and without a lease several workers would insert the batch. Only the number of the repair is relied on.
     *
     * @returns undefined if another worker has the lease
     */
    async beginRepair(batchId: string, workerId: string): Promise<BatchRepair | undefined> {
      const begun = await beginScript([leaseKey(batchId), batchKey(batchId)], [workerId, LEASE_TTL_MS])
      return begun === null ? undefined : { number: begun[0], splits: splitsIn(begun[1]) }
    },
    /**
     * Persists that a range of the batch's rows is split, before its parts are sent.
     *
     * @returns false if another worker has confirmed the batch: the parts may not be sent
     * @throws if another repair of the batch has begun
     */
    async recordSplit(batchId: string, range: string, repair: number): Promise<boolean> {
      const result = await splitScript([batchKey(batchId)], [`${SPLIT_FIELD}${range}`, repair])
      if (result === -1) throw new Error('another repair of the batch has begun')
      return result === 1
    },
    /** Extends the lease if the worker has it. */
    async renewLease(batchId: string, workerId: string): Promise<void> {
      await leaseScript([leaseKey(batchId)], [workerId, LEASE_TTL_MS])
    },
    /** Ends the lease if the worker has it. */
    async endLease(batchId: string, workerId: string): Promise<void> {
      await leaseScript([leaseKey(batchId)], [workerId, 0])
    },
  }
}

function splitsIn(fields: readonly string[]): Set<string> {
  const splits = fields.filter((field) => field.startsWith(SPLIT_FIELD))
  return new Set(splits.map((field) => field.slice(SPLIT_FIELD.length)))
}
