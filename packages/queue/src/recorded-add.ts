import type { RedisConnection } from '@sluice/runtime'
import type { Queue } from 'bullmq'
import type { Result } from 'ioredis'
import { addScript, addScriptArguments } from './bullmq-internals.ts'
import type { Chunk } from './chunk.ts'

/** A text that is in Redis if, and only if, the chunk added with it is in the queue. */
export interface QueueRecord {
  /** Its Redis key, in the hash slot of the queue. */
  readonly name: string
  readonly text: string
}

/** What one add stores, all of it or nothing. */
export interface Add {
  readonly chunkId: string
  /** Undefined to store records only. */
  readonly chunk: Chunk | undefined
  readonly records: readonly QueueRecord[]
  /** The lifetime of the records. */
  readonly windowMs: number
}

export interface AddAnswer {
  /** The clock of the Redis that ran the script, ms since 1970, rounded up. */
  readonly redisMs: number
  /** Redis' clock was past the fence: nothing was stored. */
  readonly isLate: boolean
  /** How many adds to the queue Redis had counted before this one: those of all processes. */
  readonly addsBefore: number
  /** Undefined if everything was stored; otherwise nothing was, and this is the existing text of each record. */
  readonly held: readonly (string | null)[] | undefined
}

const COMMAND = 'sluiceAddRecorded'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    [COMMAND](
      ...args: (string | number | Buffer)[]
    ): Result<
      readonly [redisMs: number, isLate: number, addsBefore: number, held?: readonly (string | null)[]],
      Context
    >
  }
}

/**
 * KEYS: those of BullMQ's add script, then the records. ARGV: those of BullMQ's add script, then '1' if there is a chunk to
 * add, the fence in ms since 1970, the lifetime of the records in ms, and the texts of the records. Returns Redis' clock, whether
 * the fence has passed, in which case it stores nothing, and BullMQ's counter of adds. If any record exists already, it stores
 * nothing and also returns the existing text of each record. A second run changes nothing but the counter.
 *
 * BullMQ's script runs inside this one. A transaction of BullMQ's add and the records would keep the records if the add
 * failed, and would then replay answers for entries that were never stored. Here the records follow the completed add.
 */
const ADD_RECORDED = `
local function add()
${addScript.lua}
end
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + time[2] / 1000
local clock = math.ceil(nowMs)
local addsBefore = tonumber(redis.call('GET', KEYS[${addScript.counterKey}])) or 0
if nowMs > tonumber(ARGV[${addScript.args + 2}]) then return {clock, 1, addsBefore} end
local count = #KEYS - ${addScript.keys}
if count > 0 then
  local held = redis.call('MGET', unpack(KEYS, ${addScript.keys + 1}))
  for i = 1, count do
    if held[i] then return {clock, 0, addsBefore, held} end
  end
end
if ARGV[${addScript.args + 1}] == '1' then add() end
for i = 1, count do
  redis.call('SET', KEYS[${addScript.keys} + i], ARGV[${addScript.args + 3} + i], 'PX', ARGV[${addScript.args + 3}])
end
return {clock, 0, addsBefore}`

/** Defines the script that `sendAdd` runs on a connection. */
export function defineRecordedAdd(redis: RedisConnection): void {
  redis.defineCommand(COMMAND, { lua: ADD_RECORDED })
}

/** The arguments of an add's script, without the fence. They are prepared first, so that nothing delays the command itself. */
export interface AddArguments {
  readonly add: Add
  readonly job: readonly (string | Buffer)[]
}

/** The job is the same as `queue.add` would make. */
export async function addArguments(queue: Queue<Chunk>, add: Add): Promise<AddArguments> {
  return { add, job: await addScriptArguments(queue, add.chunkId, add.chunk ?? NO_CHUNK) }
}

/**
 * Sends the script that adds a chunk and its records in one atomic step.
 *
 * @param redis a connection that was passed to `defineRecordedAdd`
 * @param fenceMs the last moment at which Redis may store the add, by its own clock
 */
export async function sendAdd(
  redis: RedisConnection,
  { add: { chunk, records, windowMs }, job }: AddArguments,
  fenceMs: number,
): Promise<AddAnswer> {
  const [redisMs, isLate, addsBefore, held] = await redis[COMMAND](
    addScript.keys + records.length,
    ...job.slice(0, addScript.keys),
    ...records.map(({ name }) => name),
    ...job.slice(addScript.keys),
    chunk === undefined ? '0' : '1',
    fenceMs,
    windowMs,
    ...records.map(({ text }) => text),
  )
  return { redisMs, isLate: isLate === 1, addsBefore, held }
}

/** The arguments of a script run that stores nothing. It reads the clock of the Redis that has the queue, in a cluster too. */
export function clockArguments(queue: Queue<Chunk>): Promise<AddArguments> {
  return addArguments(queue, { chunkId: 'none', chunk: undefined, records: [], windowMs: 0 })
}

/** Stands in for the chunk if only records are stored. */
const NO_CHUNK: Chunk = { v: 1, rows: 0, bytes: 0, frame: '' }
