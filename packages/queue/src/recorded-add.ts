import type { RedisScript } from '@sluice/runtime'
import type { Queue } from 'bullmq'
import { addScript, addScriptArguments } from './bullmq-internals.ts'
import { type ChunkData, FRAME_FIELD, type NewChunk } from './chunk.ts'
import { type QueueNames, totalsField } from './queue-names.ts'

/** It is not known whether Redis has the chunk, so its entries must not be acknowledged. */
export class QueueUnavailableError extends Error {
  override name = 'QueueUnavailableError'
}

/** Redis is out of memory. The chunk is not in the queue. */
export class QueueFullError extends Error {
  override name = 'QueueFullError'
}

/** A string that is in Redis if, and only if, the chunk added with it is in the queue. */
export interface QueueRecord {
  /** Its Redis key, in the hash slot of the queue. */
  readonly name: string
  /** Not empty. Undefined to look the record up without storing it. */
  readonly text: string | undefined
  /** The Redis key of the quota that a new record counts against, in the same slot. */
  readonly quota: string
}

/** For how long, and how many records of a quota are stored at a time. */
export interface RecordLimits {
  readonly windowMs: number
  readonly recordsMax: number
}

/**
 * What Redis found instead of storing a record: its existing value; or the time in ms after which its quota has room again. Null if the record
 * could be stored.
 */
export type FoundRecord = string | number | null

/** The records of an add, and their limits if there are any. */
export interface AddedRecords {
  readonly records?: readonly QueueRecord[]
  readonly recordLimits?: RecordLimits
}

/** What one add stores, all of it or nothing. */
export interface Add extends AddedRecords {
  readonly chunkId: string
  /** Undefined to store no chunk. */
  readonly chunk?: NewChunk | undefined
  /** Entries received up to this time, ms since 1970, may be known to be complete, whatever the shard says. */
  readonly completeMs?: number
}

export interface AddReply {
  /** The clock of the Redis that ran the script, ms since 1970, rounded up. */
  readonly redisMs: number
  /** Redis' clock was past the fence: nothing was stored. */
  readonly isLate: boolean
  /**
   * Nothing was stored, because readers were told that they have all entries received by then. From now until the fence, the chunk may be
   * added with this time of receipt, ms since 1970.
   */
  readonly admittedMs: number | undefined
  /** Undefined if everything was stored; otherwise nothing was, and this is why, for each record. */
  readonly found: readonly FoundRecord[] | undefined
}

/**
 * A quota is a string: for each part of the window, when the part ends, in ms since 1970, and how many records were stored that expire
 * in it. More parts would free a used-up quota sooner. Each costs 20 bytes per project.
 */
const QUOTA_PARTS = 12
/** The keys between the ones of BullMQ and the ones of the records. */
const OWN_KEYS = 6
/** The arguments between the ones of BullMQ and the ones of the records. */
const OWN_ARGS = 6

/**
 * KEYS: the keys of BullMQ's add script, the chunk's job, the record of its batch, the totals, the time up to which the shard is complete,
 * the receipts, the admitted chunks, then the records, then the quota of each record. ARGV: the arguments of BullMQ's add script, the number
 * of rows of the chunk, or -1 without a chunk, the fence in ms since 1970, the frame, the id of the chunk, its time of receipt, and a time up
 * to which entries may be complete. If there are records, also their lifetime in ms, the number of records that a quota allows, and the
 * values of the records; an empty one is not stored. Returns what `AddReply` has.
 *
 * A second run adds no job: the chunk is in the queue, or in a batch, from which it may have left the queue already. As a job it would wait,
 * perhaps for longer than the record of its batch lives, and would then be inserted again.
 *
 * A quota never counts less than the records that have not expired. It counts them for a part of the window longer. A quota that is used up
 * does not affect lookups of existing records.
 *
 * BullMQ's script runs inside this one. A transaction of BullMQ's add and the records would keep the records if the add failed.
 */
export const ADD_RECORDED = `
local function addJob()
${addScript.lua}
end
local job, batch, totals, completeKey, receipts, admitted = unpack(KEYS, ${addScript.keys + 1}, ${addScript.keys + OWN_KEYS})
local rows, fence, frame, id, received, complete = unpack(ARGV, ${addScript.args + 1}, ${addScript.args + OWN_ARGS})
local isNew = tonumber(rows) >= 0 and redis.call('EXISTS', job, batch) == 0
local function admit()
  local after = math.max(tonumber(redis.call('GET', completeKey) or -1), tonumber(complete))
  if not isNew or tonumber(received) > after then return nil end
  if redis.call('ZSCORE', admitted, id) then
    after = tonumber(redis.call('ZSCORE', receipts, id)) - 1
    if tonumber(received) > after then return nil end
  else
    redis.call('ZADD', admitted, fence, id)
    redis.call('ZADD', receipts, after + 1, id)
  end
  return after + 1
end
local function add()
  if not isNew then return end
  addJob()
  redis.call('HSET', job, '${FRAME_FIELD}', frame)
  redis.call('HINCRBY', totals, '${totalsField.added}', rows)
  redis.call('ZADD', receipts, received, id)
  redis.call('ZREM', admitted, id)
end
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + time[2] / 1000
local clock = math.ceil(nowMs)
if nowMs > tonumber(fence) then return {clock, 1} end
local recordsFrom = ${addScript.keys + OWN_KEYS}
local count = (#KEYS - recordsFrom) / 2
if count == 0 then
  local admittedMs = admit()
  if admittedMs then return {clock, 0, {}, admittedMs} end
  add()
  return {clock, 0}
end

local function record(i) return KEYS[recordsFrom + i] end
local function text(i) return ARGV[${addScript.args + OWN_ARGS + 2} + i] end
local windowMs, recordsMax = tonumber(ARGV[${addScript.args + OWN_ARGS + 1}]), tonumber(ARGV[${addScript.args + OWN_ARGS + 2}])
local partMs = math.ceil(windowMs / ${QUOTA_PARTS})
local partEndMs = (math.floor((nowMs + windowMs) / partMs) + 1) * partMs

local quotas, quotasByName = {}, {}
local function quotaOf(i)
  local name = KEYS[recordsFrom + count + i]
  local quota = quotasByName[name]
  if quota then return quota end
  quota = {name = name, live = 0, added = 0, started = 0, others = {}, firstEndMs = math.huge, lastEndMs = partEndMs}
  for part, count in string.gmatch(redis.call('GET', name) or '', '(%d+):(%d+)') do
    local endMs = tonumber(part)
    if endMs > nowMs then
      quota.live = quota.live + tonumber(count)
      quota.firstEndMs = math.min(quota.firstEndMs, endMs)
      quota.lastEndMs = math.max(quota.lastEndMs, endMs)
      if endMs == partEndMs then quota.started = tonumber(count)
      else quota.others[#quota.others + 1] = part .. ':' .. count end
    end
  end
  quotas[#quotas + 1], quotasByName[name] = quota, quota
  return quota
end

local found, isStorable = redis.call('MGET', unpack(KEYS, recordsFrom + 1, recordsFrom + count)), true
for i = 1, count do
  if found[i] then
    isStorable = false
  elseif text(i) ~= '' then
    local quota = quotaOf(i)
    if quota.live + quota.added < recordsMax then
      quota.added = quota.added + 1
      quota.firstEndMs = math.min(quota.firstEndMs, partEndMs)
    else
      found[i] = math.ceil(quota.firstEndMs - nowMs)
      isStorable = false
    end
  end
end
if not isStorable then return {clock, 0, found} end
local admittedMs = admit()
if admittedMs then return {clock, 0, {}, admittedMs} end

add()
for i = 1, count do
  if text(i) ~= '' then redis.call('SET', record(i), text(i), 'PX', windowMs) end
end
for _, quota in ipairs(quotas) do
  quota.others[#quota.others + 1] = string.format('%.0f:%.0f', partEndMs, quota.started + quota.added)
  redis.call('SET', quota.name, table.concat(quota.others, ' '), 'PXAT', string.format('%.0f', quota.lastEndMs))
end
return {clock, 0}`

/** The script of an add. */
export type AddScript = RedisScript<
  readonly [redisMs: number, isLate: number, found?: readonly FoundRecord[], admittedMs?: number]
>

/**
 * Prepares an add, so that nothing delays the command itself. The job is the same as `queue.add` would make.
 *
 * @returns sends the script. `fenceMs` is the last moment at which Redis may store the add, by its own clock
 */
export async function prepareAdd(
  script: AddScript,
  queue: Queue<ChunkData>,
  names: QueueNames,
  { chunkId, chunk, records = [], recordLimits, completeMs = -1 }: Add,
): Promise<(fenceMs: number) => Promise<AddReply>> {
  const { frame, receivedMs, ...data } = chunk ?? NO_CHUNK
  const job = await addScriptArguments(queue, chunkId, data)
  const keys = [
    ...job.slice(0, addScript.keys).map(String),
    names.jobKey(chunkId),
    names.chunkKey(chunkId),
    names.totalsKey,
    names.completeKey,
    names.receiptsKey,
    names.admittedKey,
    ...records.map(({ name }) => name),
    ...records.map(({ quota }) => quota),
  ]
  const jobArgs = job.slice(addScript.keys)
  const recordArgs =
    recordLimits === undefined || records.length === 0
      ? []
      : [recordLimits.windowMs, recordLimits.recordsMax, ...records.map(({ text = '' }) => text)]
  return async (fenceMs) => {
    const [redisMs, isLate, found, admittedMs] = await script(keys, [
      ...jobArgs,
      chunk?.rows ?? -1,
      fenceMs,
      frame,
      chunkId,
      receivedMs,
      completeMs,
      ...recordArgs,
    ])
    return { redisMs, isLate: isLate === 1, found, admittedMs }
  }
}

/** Stands in for the chunk if there is none. */
const NO_CHUNK: NewChunk = { v: 2, rows: 0, bytes: 0, frame: Buffer.alloc(0), receivedMs: 0 }
