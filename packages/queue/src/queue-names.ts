import { installationNames } from '@sluice/runtime'

const QUEUE = 'logs'

/** BullMQ's name of every job: there is one kind. */
export const chunkJobName = 'chunk'

/** See `queueNames`. */
export type QueueNames = Readonly<ReturnType<typeof queueNames>>

/**
 * The Redis names of one shard's queue and of the records next to it. All but the next two have one hash tag, so that one script may change
 * several of them in a Redis Cluster. The first shard has the names of an installation without shards, so nothing is renamed when shards
 * are added.
 *
 * @param prefix separates installations that share a Redis. It contains no colon, so no two installations share a name
 * @param shard from 0
 */
export function queueNames(prefix: string, shard = 0) {
  const tag = shard === 0 ? `{${prefix}}` : `{${prefix}:${shard}}`
  return {
    shard,
    /** See `InstallationNames`. It is in the slot of shard 0. */
    shardCountKey: installationNames(prefix).shardCountKey,
    /** `completeKey` of shard 0. It is in the slot of `shardCountKey`. */
    firstCompleteKey: `{${prefix}}:complete`,
    /** BullMQ's prefix: the hash tag. */
    queuePrefix: tag,
    queue: QUEUE,
    /** BullMQ's key of a job. */
    jobKey: (id: string) => `${tag}:${QUEUE}:${id}`,
    /** BullMQ's list of the ids of waiting jobs, newest first. */
    waitKey: `${tag}:${QUEUE}:wait`,
    /** BullMQ's list of the ids of jobs that workers have fetched, the last fetched first. */
    activeKey: `${tag}:${QUEUE}:active`,
    /** BullMQ's set of the ids of delayed jobs. */
    delayedKey: `${tag}:${QUEUE}:delayed`,
    /** BullMQ's set of the ids of failed jobs, with the time of each failure. */
    failedKey: `${tag}:${QUEUE}:failed`,
    /** The id of the batch that a chunk belongs to, by the chunk's job id. */
    chunkKey: (chunkId: string) => `${tag}:chunk:${chunkId}`,
    /** The record of a batch, by its id. */
    batchKey: (batchId: string) => `${tag}:batch:${batchId}`,
    /** The worker that recovers a batch, by the batch's id. */
    leaseKey: (batchId: string) => `${tag}:lease:${batchId}`,
    /** The worker that fetches chunks. */
    turnKey: `${tag}:turn`,
    /** An idempotency record, by the hash of its key and project. */
    idempotencyKey: (hash: string) => `${tag}:idempotency:${hash}`,
    /** How many idempotency records a project has in this shard. */
    idempotencyQuotaKey: (projectId: string) => `${tag}:idempotency-quota:${projectId}`,
    /**
     * A key that never exists. While a slot moves to another node of a cluster, Redis aborts a script at the first key that the node does not
     * have, and keeps what the script has written. But it does not start a script that is given a missing key. So every script that uses keys
     * that it is not given is given this one.
     */
    absentKey: `${tag}:absent`,
    /** The time up to which no more entries can be added to the queue, ms since 1970: see `Completeness`. */
    completeKey: `${tag}:complete`,
    /** Set when all receipts were compared with the jobs. */
    comparedKey: `${tag}:complete:compared`,
    /** The ids of all chunks in the queue, each with the earliest time of receipt of its rows. */
    receiptsKey: `${tag}:receipts`,
    /** The ids of chunks that may be added until a time on the clock of Redis, although others received then can not. */
    admittedKey: `${tag}:admitted`,
    /** How many rows were ever added, and what became of them: see `RowTotals`. */
    totalsKey: `${tag}:row-totals`,
  }
}

/** The names of each shard. */
export function shardNames(prefix: string, shards: number): QueueNames[] {
  return Array.from({ length: shards }, (_, shard) => queueNames(prefix, shard))
}

/**
 * How many rows of a shard were ever added to its queue, and what became of them. Each changes in the script that makes it true. So `added`
 * is the sum of the others and of the rows in the queue, whichever process was killed when.
 */
export interface RowTotals {
  readonly added: number
  /** Rows of confirmed batches that ClickHouse has in the table of logs. */
  readonly inserted: number
  /** Rows of confirmed batches that ClickHouse has in the table of dead letters. */
  readonly deadLettered: number
  /** Rows of failed chunks that an operator deleted. */
  readonly removed: number
}

/** The fields of the totals' hash. */
export const totalsField = {
  added: 'added',
  inserted: 'inserted',
  deadLettered: 'dead-lettered',
  removed: 'removed',
} as const satisfies Record<keyof RowTotals, string>

/** @param hash the fields of the totals in Redis; a field that was never counted is missing */
export function readRowTotals(hash: Readonly<Record<string, string>>): RowTotals {
  const totals = Object.entries(totalsField).map(([total, field]) => [total, Number(hash[field] ?? 0)])
  return Object.fromEntries(totals) as Record<keyof RowTotals, number>
}

/** Rows in the queue, including the rows of failed chunks. */
export function queuedRows({ added, inserted, deadLettered, removed }: RowTotals): number {
  return added - inserted - deadLettered - removed
}
