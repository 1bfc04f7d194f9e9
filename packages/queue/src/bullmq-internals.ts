import { defineScript, type RedisConnection, type RedisScript } from '@sluice/runtime'
import { type IRedisTransaction, Job, Queue } from 'bullmq'
import { addStandardJob } from 'bullmq/dist/esm/scripts/addStandardJob-9.js'
import { extendLocks } from 'bullmq/dist/esm/scripts/extendLocks-1.js'
import { moveJobFromActiveToWait } from 'bullmq/dist/esm/scripts/moveJobFromActiveToWait-9.js'
import { moveStalledJobsToWait } from 'bullmq/dist/esm/scripts/moveStalledJobsToWait-9.js'
import { moveToActive } from 'bullmq/dist/esm/scripts/moveToActive-11.js'
import { moveToDelayed } from 'bullmq/dist/esm/scripts/moveToDelayed-11.js'
import { moveToFinished } from 'bullmq/dist/esm/scripts/moveToFinished-14.js'
import { type ChunkData, FRAME_FIELD } from './chunk.ts'
import { chunkJobName, type QueueNames } from './queue-names.ts'

// The only file that depends on parts of BullMQ that are not its public API: the Lua scripts behind its operations, and their keys and
// arguments. The contract test (test/bullmq-contract.integration.test.ts) must pass before BullMQ is upgraded.
//
// Each script is embedded as a Lua function whose parameters hide the KEYS and ARGV of the script around it. The functions derive the names
// of the queue's keys from `base`, the beginning of all keys of the queue (`QueueNames.jobKey('')`). All keys are in one hash slot.

/** BullMQ keeps a stream of events per queue. Nothing reads it here, so it is kept as short as possible. */
const EVENTS_MAX = 1

/** A shard's queue as an object of BullMQ. Closing it leaves the connection open. */
export function bullmqQueue(
  redis: RedisConnection,
  { queue: name, queuePrefix: prefix }: QueueNames,
): Queue<ChunkData> {
  const queue = new Queue<ChunkData>(name, {
    connection: redis,
    prefix,
    // It would query the version once, and the object would be unusable if that fails.
    skipVersionCheck: true,
    streams: { events: { maxLen: EVENTS_MAX } },
    defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: false },
  })
  // BullMQ emits the errors of the connection again. The owner of the connection handles them.
  queue.on('error', () => undefined)
  return queue
}

/** Prepares a script whose keys are the wait list and `absentKey`, and whose first argument is `base`: the beginning of the queue's keys. */
export function jobScript<Answer>(
  redis: RedisConnection,
  names: QueueNames,
  lua: string,
): (...args: Parameters<RedisScript<Answer>>[1]) => Promise<Answer> {
  const run = defineScript<Answer>(redis, `local base = ARGV[1]\n${lua}`)
  return (...args) => run([names.waitKey, names.absentKey], [names.jobKey(''), ...args])
}

interface BullmqScript {
  readonly name: string
  readonly content: string
  readonly keys: number
}

function requireKeys({ name, keys }: BullmqScript, expected: number): void {
  if (keys !== expected) throw new Error(`BullMQ's script ${name} takes ${keys} keys, not ${expected}`)
}

/** Lua: a function with the name of the script. */
function embed(script: BullmqScript): string {
  return `local function ${script.name}(KEYS, ARGV)\n${script.content}\nend`
}

/** Lua: the keys of a queue, in the order in which a script takes them. A name in parentheses is an expression. */
function keysOf(script: BullmqScript, ...names: readonly string[]): string {
  requireKeys(script, names.length)
  return `{${names.map((name) => (name.startsWith('(') ? name : `base .. '${name}'`)).join(', ')}}`
}

/**
 * Lua: `newFetcher(base, nowMs, token, lockMs)` returns a function that locks the next job. It returns the job's id, its data and its frame,
 * which are empty if it has none; nil if no job may be fetched. A job that is due by `nowMs` is no longer delayed.
 */
export const fetcherLua = `${embed(moveToActive)}
local function newFetcher(base, nowMs, token, lockMs)
  local keys = ${keysOf(moveToActive, 'wait', 'active', 'prioritized', 'events', 'stalled', 'limiter', 'delayed', 'paused', 'meta', 'pc', 'marker')}
  local args = {base, nowMs, cmsgpack.pack({token = token, lockDuration = lockMs})}
  return function()
    local reply = moveToActive(keys, args)
    local fields = reply[1]
    if type(fields) ~= 'table' then return nil end
    local data, frame = '', ''
    for i = 1, #fields, 2 do
      if fields[i] == 'data' then data = fields[i + 1] end
      if fields[i] == '${FRAME_FIELD}' then frame = fields[i + 1] end
    end
    return reply[2], data, frame
  end
end`

/** Lua: `isDue(base, nowMs)` is whether a delayed job may be fetched. */
export const isDueLua = `local function isDue(base, nowMs)
  local scoreMax = string.format('%.0f', (nowMs + 1) * 0x1000 - 1)
  return #redis.call('ZRANGEBYSCORE', base .. 'delayed', '-inf', scoreMax, 'LIMIT', 0, 1) > 0
end`

/** What the function of `newFinisher` returns for a job that exists and has no lock. */
export const HAS_NO_LOCK = -2

/**
 * Lua: `newFinisher(base, nowMs, target)` returns a function that moves an active job to the target, 'completed' or 'failed'. Completed jobs
 * are deleted. The parameters of the function: the job's id, the token of its lock, or '0' if it has none, and, for a failed job, the reason
 * and the stack traces as JSON. It returns 0, or a negative number if it changed nothing.
 */
export const finisherLua = `${embed(moveToFinished)}
local function newFinisher(base, nowMs, target)
  local keys = ${keysOf(moveToFinished, 'wait', 'active', 'prioritized', 'events', 'stalled', 'limiter', 'delayed', 'paused', 'meta', 'pc', '(base .. target)', `('')`, `(base .. 'metrics:' .. target)`, 'marker')}
  local isFailed = target == 'failed'
  local keepJobs = {count = isFailed and -1 or 0}
  return function(id, token, reason, stacktrace)
    keys[12] = base .. id
    local property, value, fields = 'returnvalue', 'null', nil
    if isFailed then
      property, value = 'failedReason', reason
      fields = cmsgpack.pack({'failedReason', reason, 'stacktrace', stacktrace})
    end
    local options = {token = token, keepJobs = keepJobs, attempts = 1, maxMetricsSize = ''}
    return moveToFinished(keys, {id, nowMs, property, value, target, '0', base, cmsgpack.pack(options), fields})
  end
end`

/** Lua: `newRequeuer(base)` returns a function that makes an active job, by its id and the token of its lock, the next one to be fetched. */
export const requeuerLua = `${embed(moveJobFromActiveToWait)}
local function newRequeuer(base)
  local keys = ${keysOf(moveJobFromActiveToWait, 'active', 'wait', 'stalled', 'paused', 'meta', 'limiter', 'prioritized', 'marker', 'events')}
  return function(id, token) return moveJobFromActiveToWait(keys, {id, token, base .. id}) end
end`

/** Lua: `delayJob(base, nowMs, id, token, delayMs)` makes an active job a delayed one. */
export const delayJobLua = `${embed(moveToDelayed)}
local function delayJob(base, nowMs, id, token, delayMs)
  local keys = ${keysOf(moveToDelayed, 'marker', 'active', 'prioritized', 'delayed', '(base .. id)', 'events', 'meta', 'stalled', 'wait', 'limiter', 'pc')}
  return moveToDelayed(keys, {base, nowMs, id, token, delayMs, '1', '', '0', ''})
end`

/** Lua: `renewLocks(base, ids, tokens, lockMs)` returns the ids of the locks that have other tokens, or expired. */
export const renewLocksLua = `${embed(extendLocks)}
local function renewLocks(base, ids, tokens, lockMs)
  local keys = ${keysOf(extendLocks, 'stalled')}
  return extendLocks(keys, {base, cmsgpack.pack(tokens), cmsgpack.pack(ids), lockMs})
end`

/**
 * Lua: `requeueStalled(base, nowMs, countMax, intervalMs)` requeues the active jobs that have no lock, and had none when it ran last. Within
 * the interval, only the first run of all workers does this.
 */
export const requeueStalledLua = `${embed(moveStalledJobsToWait)}
local function requeueStalled(base, nowMs, countMax, intervalMs)
  local keys = ${keysOf(moveStalledJobsToWait, 'stalled', 'wait', 'active', 'stalled-check', 'meta', 'paused', 'marker', 'events', 'repeat')}
  return moveStalledJobsToWait(keys, {countMax, base, nowMs, intervalMs})
end`

/** BullMQ's script, and the numbers of its keys and arguments. Others may follow them. */
export const addScript = { lua: addStandardJob.content, keys: 9, args: 3 } as const

requireKeys(addStandardJob, addScript.keys)

/** The keys and arguments that `queue.add` would give the script for this chunk, in order. */
export function addScriptArguments(
  queue: Queue<ChunkData>,
  chunkId: string,
  chunk: ChunkData,
): Promise<(string | Buffer)[]> {
  const job = new Job(queue, chunkJobName, chunk, { ...queue.defaultJobOptions, jobId: chunkId }, chunkId)
  return new Promise((resolve, reject) => {
    // BullMQ adds to a transaction here. This one records the arguments of the script.
    const recorder: Pick<IRedisTransaction, 'runCommand'> = {
      runCommand(name, args: (string | Buffer)[]) {
        if (name.startsWith(`${addStandardJob.name}:`) && args.length === addScript.keys + addScript.args)
          resolve(args)
        else reject(new Error(`BullMQ adds with ${name} and ${args.length} arguments`))
        return this as IRedisTransaction
      },
    }
    queue
      .getBackend()
      .addJobToTransaction(recorder as IRedisTransaction, job.asJSON(), chunkId)
      .catch(reject)
  })
}
