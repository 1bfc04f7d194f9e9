import type { RedisConnection } from '@sluice/runtime'
import { chunkJobName, type Chunk } from '@sluice/schema'
import { Job, type IRedisTransaction, type Queue } from 'bullmq'
import { addStandardJob } from 'bullmq/dist/esm/scripts/addStandardJob-9.js'
import type { Result } from 'ioredis'

/** A text that is to be in Redis if, and only if, the chunk that it comes with is in the queue. */
export interface QueueRecord {
  /** Its Redis key, in the queue's hash slot. */
  readonly name: string
  readonly text: string
}

const COMMAND = 'sluiceAddRecorded'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    [COMMAND](...args: (string | number | Buffer)[]): Result<readonly (string | null)[] | null, Context>
  }
}

/** How many keys and arguments BullMQ's script takes. Ours come after them, so that it finds its own where they were. */
const BULLMQ = { keys: 9, args: 3 } as const

if (addStandardJob.keys !== BULLMQ.keys)
  throw new Error('BullMQ adds jobs by another script than this was made for')

/**
 * KEYS: those of BullMQ's add, the records. ARGV: those of BullMQ's add, '1' if there is a chunk to add, how long the
 * records live in ms, the records' texts. Returns null when it has stored everything; if any of the records was there
 * already, it stores nothing and returns what was there, record by record. Running it again changes nothing.
 *
 * BullMQ's own script runs inside: a transaction of its add and the records would keep the records when the add fails,
 * and so would answer for entries that were never stored. Here nothing is recorded before the add has returned.
 */
const ADD_RECORDED = `
local function add()
${addStandardJob.content}
end
local held = redis.call('MGET', unpack(KEYS, ${BULLMQ.keys + 1}))
for i = 1, #held do
  if held[i] then return held end
end
if ARGV[${BULLMQ.args + 1}] == '1' then add() end
for i = 1, #held do
  redis.call('SET', KEYS[${BULLMQ.keys} + i], ARGV[${BULLMQ.args + 2} + i], 'PX', ARGV[${BULLMQ.args + 2}])
end
return false`

/** Teaches a connection the script that `addRecorded` runs. */
export function defineRecordedAdd(redis: RedisConnection): void {
  redis.defineCommand(COMMAND, { lua: ADD_RECORDED })
}

/**
 * Adds a chunk and its records in one atomic step, the chunk as the very job that `queue.add` makes of it.
 *
 * @param redis a connection that has been given to `defineRecordedAdd`
 * @param chunk undefined when there are records alone
 * @param records at least one
 * @returns undefined when all was stored; else nothing was, and this is what is stored under each record's name
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
  const job = await jobArguments(queue, chunkId, chunk ?? NO_CHUNK)
  const held = await redis[COMMAND](
    BULLMQ.keys + records.length,
    ...job.slice(0, BULLMQ.keys),
    ...records.map(({ name }) => name),
    ...job.slice(BULLMQ.keys),
    chunk === undefined ? '0' : '1',
    windowMs,
    ...records.map(({ text }) => text),
  )
  return held ?? undefined
}

/** Stands in for a chunk where none is added. */
const NO_CHUNK: Chunk = { v: 1, rows: 0, bytes: 0, frame: '' }

/** The keys and arguments that BullMQ's add would give its script. */
function jobArguments(queue: Queue<Chunk>, chunkId: string, chunk: Chunk): Promise<(string | Buffer)[]> {
  const job = new Job(queue, chunkJobName, chunk, { ...queue.defaultJobOptions, jobId: chunkId }, chunkId)
  return new Promise((resolve, reject) => {
    const recorder: Pick<IRedisTransaction, 'runCommand'> = {
      runCommand(name, args: (string | Buffer)[]) {
        if (name.startsWith(`${addStandardJob.name}:`) && args.length === BULLMQ.keys + BULLMQ.args)
          resolve(args)
        else reject(new Error(`BullMQ adds by ${name} with ${args.length} arguments`))
        return this as IRedisTransaction
      },
    }
    queue
      .getBackend()
      .addJobToTransaction(recorder as IRedisTransaction, job.asJSON(), chunkId)
      .catch(reject)
  })
}
