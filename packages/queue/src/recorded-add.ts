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

const COMMAND = 'sluiceAddRecorded'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    [COMMAND](...args: (string | number | Buffer)[]): Result<readonly (string | null)[] | null, Context>
  }
}

/**
 * KEYS: those of BullMQ's add script, then the records. ARGV: those of BullMQ's add script, then '1' if there is a chunk to
 * add, the lifetime of the records in ms, and the texts of the records. Returns null if it stored everything. If any record
 * exists already, it stores nothing and returns the existing text of each record. A second run changes nothing.
 *
 * BullMQ's script runs inside this one. A transaction of BullMQ's add and the records would keep the records if the add
 * failed, and would then replay answers for entries that were never stored. Here the records follow the completed add.
 */
const ADD_RECORDED = `
local function add()
${addScript.lua}
end
local held = redis.call('MGET', unpack(KEYS, ${addScript.keys + 1}))
for i = 1, #held do
  if held[i] then return held end
end
if ARGV[${addScript.args + 1}] == '1' then add() end
for i = 1, #held do
  redis.call('SET', KEYS[${addScript.keys} + i], ARGV[${addScript.args + 2} + i], 'PX', ARGV[${addScript.args + 2}])
end
return false`

/** Defines the script that `addRecorded` runs on a connection. */
export function defineRecordedAdd(redis: RedisConnection): void {
  redis.defineCommand(COMMAND, { lua: ADD_RECORDED })
}

/**
 * Adds a chunk and its records in one atomic step. The job is the same as `queue.add` would make.
 *
 * @param redis a connection that was passed to `defineRecordedAdd`
 * @param add.chunk undefined to store records only
 * @param add.records at least one
 * @returns undefined if everything was stored; otherwise nothing was, and this is the existing text of each record
 */
export async function addRecorded(
  redis: RedisConnection,
  queue: Queue<Chunk>,
  add: {
    readonly chunkId: string
    readonly chunk: Chunk | undefined
    readonly records: readonly QueueRecord[]
    readonly windowMs: number
  },
): Promise<readonly (string | null)[] | undefined> {
  const { chunkId, chunk, records, windowMs } = add
  const job = await addScriptArguments(queue, chunkId, chunk ?? NO_CHUNK)
  const held = await redis[COMMAND](
    addScript.keys + records.length,
    ...job.slice(0, addScript.keys),
    ...records.map(({ name }) => name),
    ...job.slice(addScript.keys),
    chunk === undefined ? '0' : '1',
    windowMs,
    ...records.map(({ text }) => text),
  )
  return held ?? undefined
}

/** Stands in for the chunk if only records are stored. */
const NO_CHUNK: Chunk = { v: 1, rows: 0, bytes: 0, frame: '' }
