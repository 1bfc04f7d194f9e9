import { type DurableRedis, permitWrites, readClock } from '@sluice/runtime'
import { batchState, CONFIRMED_TTL_S, RELEASED_TTL_S, REPAIRS_FIELD } from './batch-ledger.ts'
import { finisherLua, HAS_NO_LOCK } from './bullmq-internals.ts'
import type { HeldJobs } from './held-jobs.ts'
import { type QueueNames, totalsField } from './queue-names.ts'

/** Jobs per run of the script. Redis serves no other client meanwhile, for two to three milliseconds. */
export const FINISHED_PER_RUN_MAX = 64
/** Lua cannot pass more than about 8,000 arguments to one command. */
const EXISTS_KEYS_MAX = 1_000

/** A batch that ClickHouse has stored. */
export interface StoredBatch {
  readonly id: string
  readonly members: readonly string[]
  /** How many of its rows are in the table of logs, and in the table of dead letters. Undefined if it is confirmed already. */
  readonly rows?: { readonly inserted: number; readonly deadLettered: number }
}

/**
 * KEYS: the batch, the totals, the receipts, `absentKey`, its chunks. ARGV: the beginning of the queue's keys; '1' if this is the first run for the
 * batch; '1' if it is the last; the number of the caller's repair, or -1 if it has seen that the batch is confirmed; how many of its rows
 * are inserted, and how many dead-lettered; the number of jobs to complete; their ids; the tokens of their locks; in the first and in the
 * last run, the ids of all chunks of the batch. Returns 0, and changes nothing, if another repair of the batch has begun: the caller may
 * have taken an ignored insert for a successful one. A second run changes nothing.
 *
 * The first run persists that the batch is stored, before it completes a job. A batch without a record was released, or its record has expired,
 * both after its confirmation. A job that another worker has locked is left to that worker. If a lock has expired and no other worker has
 * locked the job, it is completed. The records are never kept longer than they were before: no release follows a late confirmation.
 */
const FINISH = `
${finisherLua}
${permitWrites}
local base, isFirst, isLast, repair, count = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4]), tonumber(ARGV[7])
local firstId, firstToken, firstMember = 8, 8 + count, 8 + 2 * count

if isFirst and redis.call('HGET', KEYS[1], 'state') == '${batchState.claimed}' then
  local repairs = tonumber(redis.call('HGET', KEYS[1], '${REPAIRS_FIELD}') or '0')
  if repair ~= repairs then return 0 end
  redis.call('HSET', KEYS[1], 'state', '${batchState.confirmed}')
  redis.call('HINCRBY', KEYS[2], '${totalsField.inserted}', ARGV[5])
  if ARGV[6] ~= '0' then redis.call('HINCRBY', KEYS[2], '${totalsField.deadLettered}', ARGV[6]) end
end

${readClock}
local complete = newFinisher(base, nowMs, 'completed')
for i = 0, count - 1 do
  local id = ARGV[firstId + i]
  local code = complete(id, ARGV[firstToken + i])
  if code == ${HAS_NO_LOCK} then code = complete(id, '0') end
  if code == 0 then redis.call('ZREM', KEYS[3], id) end
end

local function isAnyJobLeft()
  local jobs = {}
  for i = firstMember, #ARGV do jobs[#jobs + 1] = base .. ARGV[i] end
  for i = 1, #jobs, ${EXISTS_KEYS_MAX} do
    if redis.call('EXISTS', unpack(jobs, i, math.min(#jobs, i + ${EXISTS_KEYS_MAX} - 1))) > 0 then return true end
  end
  return false
end

if isFirst or isLast then
  local ttl = redis.call('TTL', KEYS[1])
  local wanted = (isLast and not isAnyJobLeft()) and ${RELEASED_TTL_S} or ${CONFIRMED_TTL_S}
  if ttl == -1 or ttl > wanted then
    redis.call('EXPIRE', KEYS[1], wanted)
    for i = 5, #KEYS do redis.call('EXPIRE', KEYS[i], wanted) end
  end
end
return 1`

export type FinishBatch = (batch: StoredBatch, repair: number | undefined) => Promise<boolean>

/**
 * Returns a function that persists that ClickHouse has stored a batch, completes its jobs that are held, and releases the records of the
 * batch when no job of it is left. Afterwards none of its chunks is held. A chunk that another worker has locked is left to that worker.
 * Its `repair` is the number of the repair that has stored the batch; 0 for its first insert; undefined if it is known to be confirmed. It
 * resolves to false if another repair has begun: then nothing is changed, and the batch must be read again.
 * It rejects if Redis rejects the step; then the chunks that are not completed stay held.
 *
 * @param jobs the held jobs; those that are completed are removed from it
 */
export function batchFinisher(redis: DurableRedis, names: QueueNames, jobs: HeldJobs): FinishBatch {
  const script = redis.script<number>(FINISH)
  const { batchKey, chunkKey, jobKey, totalsKey, receiptsKey, absentKey } = names
  return async ({ id: batchId, members, rows }, repair) => {
    let isFirst = true
    do {
      const left = jobs.of(members)
      const run = left.slice(0, FINISHED_PER_RUN_MAX)
      const isLast = run.length === left.length
      const records = isFirst || isLast ? members : []
      const keys = [batchKey(batchId), totalsKey, receiptsKey, absentKey, ...records.map(chunkKey)]
      const args = [
        jobKey(''),
        isFirst ? 1 : 0,
        isLast ? 1 : 0,
        repair ?? -1,
        rows?.inserted ?? 0,
        rows?.deadLettered ?? 0,
        run.length,
        ...run.map(({ id }) => id),
        ...run.map(({ token }) => token),
        ...records,
      ]
      if (!(await jobs.release(run, async () => (await script(keys, args)) === 1))) return false
      isFirst = false
      // More than one run can complete; or a job was fetched again while its completion was in flight.
    } while (jobs.of(members).length > 0)
    return true
  }
}
