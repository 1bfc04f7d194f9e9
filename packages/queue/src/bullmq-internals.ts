import { type IRedisTransaction, Job, type Queue } from 'bullmq'
import { addStandardJob } from 'bullmq/dist/esm/scripts/addStandardJob-9.js'
import { type Chunk } from './chunk.ts'
import { chunkJobName } from './queue-names.ts'

// The only file that depends on parts of BullMQ that are not its public API: the Lua script behind `Queue.add`, and the
// arguments that BullMQ gives it. Both are checked when this module loads and when it is used. The contract test
// (test/bullmq-contract.integration.test.ts) must pass before BullMQ is upgraded.

/**
 * BullMQ's script, and the numbers of its keys and arguments. Others may follow them, so that the script finds its own in place.
 * Of the keys, `counterKey` (counted from 1) is the counter that BullMQ increases with each add.
 */
export const addScript = { lua: addStandardJob.content, keys: 9, args: 3, counterKey: 4 } as const

if (addStandardJob.keys !== addScript.keys)
  throw new Error(`BullMQ's add script takes ${addStandardJob.keys} keys, not ${addScript.keys}`)

/** The keys and arguments that `queue.add` would give the script for this chunk, in order. */
export function addScriptArguments(
  queue: Queue<Chunk>,
  chunkId: string,
  chunk: Chunk,
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
