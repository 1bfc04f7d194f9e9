/** The Redis names that more than one process uses, for one queue. */
export interface RedisNames {
  /** BullMQ's prefix, with a hash tag: in a Redis Cluster a queue and its records must live in one slot. */
  readonly queuePrefix: string
  readonly queue: string
  /** BullMQ's own key of a job. */
  jobKey(id: string): string
  /** BullMQ's own list of the ids of the jobs that wait, the newest first. */
  readonly waitKey: string
  /** The batch that a chunk belongs to, by the chunk's job id. */
  chunkKey(chunkId: string): string
  /** The written-down batch, by its id. */
  batchKey(batchId: string): string
  /** The record of an idempotency key, by the hash of the key and its project. */
  idempotencyKey(hash: string): string
  /** Projects and API keys. */
  readonly registryPrefix: string
  /** The bucket that a project's rate limit is counted in. */
  rateLimitKey(projectId: string): string
}

const QUEUE = 'logs'

/**
 * The names of an installation with one queue, or of the first of its queues.
 *
 * @param prefix sets installations apart that share a Redis; tests have one each
 */
export function redisNames(prefix: string): RedisNames {
  return namesInSlot(`{${prefix}}`)
}

/**
 * The names of each queue of an installation, the first one's being those of an installation with one queue: so nothing
 * is renamed when there are more. Each queue is in one slot of a Redis Cluster, whatever the others are in.
 */
export function shardNames(prefix: string, shards: number): RedisNames[] {
  return Array.from({ length: shards }, (_, shard) =>
    // No prefix has a colon.
    shard === 0 ? redisNames(prefix) : namesInSlot(`{${prefix}:${shard}}`),
  )
}

function namesInSlot(tag: string): RedisNames {
  return {
    queuePrefix: tag,
    queue: QUEUE,
    jobKey: (id) => `${tag}:${QUEUE}:${id}`,
    waitKey: `${tag}:${QUEUE}:wait`,
    chunkKey: (chunkId) => `${tag}:chunk:${chunkId}`,
    batchKey: (batchId) => `${tag}:batch:${batchId}`,
    idempotencyKey: (hash) => `${tag}:idempotency:${hash}`,
    registryPrefix: `${tag}:registry`,
    rateLimitKey: (projectId) => `${tag}:rate-limit:${projectId}`,
  }
}

/** The table of migrations/0001-logs.sql. */
export const logsTable = 'logs'
/** The table of migrations/0002-dead-letters.sql. */
export const deadLettersTable = 'dead_letters'

/** The name of every job: there is one kind. */
export const chunkJobName = 'chunk'
