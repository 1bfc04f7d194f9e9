import {
  defineScript,
  type DurableRedis,
  pairsOf,
  permitWrites,
  plainRedis,
  type RedisConnection,
  type RedisScript,
} from '@sluice/runtime'
import type { Queue } from 'bullmq'
import { BatchLedger, type BatchRecord, RELEASED_TTL_S } from './batch-ledger.ts'
import { bullmqQueue } from './bullmq-internals.ts'
import { type ChunkData, FRAME_FIELD, type JobData, readJobData, rowsOfJobData } from './chunk.ts'
import { type QueueNames, totalsField } from './queue-names.ts'

/** A chunk whose job failed. Its rows are not stored, unless its batch is confirmed. */
export interface FailedChunk {
  /** The id of its job. */
  readonly id: string
  readonly shard: number
  /** By the clock of Redis, ms since 1970. */
  readonly failedAtMs: number
  readonly reason: string
  /** Undefined if the data of the job is damaged, or has an unknown format. */
  readonly rows: number | undefined
  /** The batch that it belongs to. Undefined if it was not claimed. */
  readonly batchId: string | undefined
}

/**
 * The result of a retry:
 *
 * - requeued: its job waits again;
 * - stored: its batch is confirmed, so its rows are stored. The job is removed;
 * - damaged: its rows cannot be read. Nothing was changed;
 * - missing: there is no such failed job.
 */
export type RetryOutcome = 'requeued' | 'stored' | 'damaged' | 'missing'

/**
 * The result of a removal:
 *
 * - removed: its job and its rows are deleted;
 * - needed: its batch has other chunks in the queue, which could not be stored without it. Nothing was changed;
 * - missing: there is no such failed job.
 */
export type PurgeOutcome = 'removed' | 'needed' | 'missing'

export interface FailedChunksOptions {
  readonly redis: RedisConnection
  /** What the claims run on. Default: `redis`. */
  readonly durable?: DurableRedis | undefined
  /** All shards of the installation, retired ones included. */
  readonly shards: readonly QueueNames[]
  /** Makes the id of a batch: unique. */
  readonly makeId: () => string
}

/**
 * KEYS: BullMQ's set of failed jobs, the job, the totals, `absentKey`. ARGV: the id of the job, the number of its rows. Deletes a failed
 * job as BullMQ does for a job without parents and children, and counts its rows. Returns 0 if it is not a failed job.
 */
const PURGE = `
${permitWrites}
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('DEL', KEYS[2], KEYS[2] .. ':logs')
if ARGV[2] ~= '0' then redis.call('HINCRBY', KEYS[3], '${totalsField.removed}', ARGV[2]) end
return 1`

/** Jobs whose data is in memory at once. */
const READ_AT_ONCE_MAX = 16

interface Shard {
  readonly names: QueueNames
  readonly queue: Queue<ChunkData>
  readonly ledger: BatchLedger
}

/** A failed job. */
interface FailedJob {
  readonly id: string
  readonly shard: Shard
  readonly failedAtMs: number
}

/**
 * The jobs that workers failed and no longer touch, for an operator.
 *
 * A retry stores no row twice, because the batch ledger decides what is sent. A chunk of a claimed batch is inserted as part of this
 * batch, by a worker that looks up its rows first. A chunk of a confirmed batch is not inserted. A chunk without a batch gets one before
 * its job is requeued: its record may have expired, so a worker must look up its rows too.
 */
export class FailedChunks {
  readonly #redis: RedisConnection
  readonly #makeId: () => string
  readonly #purge: RedisScript<number>
  readonly #shards: readonly Shard[]

  /** To be closed by the caller. */
  constructor({ redis, durable = plainRedis(redis), shards, makeId }: FailedChunksOptions) {
    this.#redis = redis
    this.#makeId = makeId
    this.#purge = defineScript(redis, PURGE)
    this.#shards = shards.map((names) => ({
      names,
      queue: bullmqQueue(redis, names),
      ledger: new BatchLedger(durable, names),
    }))
  }

  /** The failed chunks, those that failed last first, at most `limit`. */
  async list(limit: number): Promise<FailedChunk[]> {
    const failed = (await this.#failedJobs(limit)).slice(0, limit)
    const chunks: FailedChunk[] = []
    for (let from = 0; from < failed.length; from += READ_AT_ONCE_MAX) {
      const jobs = failed.slice(from, from + READ_AT_ONCE_MAX)
      chunks.push(...(await Promise.all(jobs.map((job) => this.#read(job)))))
    }
    return chunks
  }

  async count(): Promise<number> {
    return (await this.#failedJobs()).length
  }

  /** @returns the outcome of each chunk: of those named, or of those that are failed now */
  async retry(choice: 'all' | readonly string[]): Promise<ReadonlyMap<string, RetryOutcome>> {
    const outcomes = new Map<string, RetryOutcome>()
    for (const [id, job] of await this.#choose(choice))
      outcomes.set(id, job === undefined ? 'missing' : await this.#retry(job))
    return outcomes
  }

  /**
   * Deletes failed chunks with their rows. The chunks of a batch can only be deleted together.
   *
   * @returns as `retry`
   */
  async purge(choice: 'all' | readonly string[]): Promise<ReadonlyMap<string, PurgeOutcome>> {
    const chosen = await this.#choose(choice)
    const outcomes = new Map<string, PurgeOutcome>()
    /** The keys of batches. Nothing reads them when none of their jobs is left. */
    const orphaned: string[] = []
    for (const [id, job] of chosen) {
      const batch = job && (await this.#batchOf(job))
      if (job === undefined) {
        outcomes.set(id, 'missing')
      } else if (batch?.state === 'claimed' && (await this.#isNeeded(job.shard, batch, chosen))) {
        outcomes.set(id, 'needed')
      } else {
        outcomes.set(id, await this.#remove(job, batch))
        const { names } = job.shard
        if (batch?.state === 'claimed')
          orphaned.push(names.batchKey(batch.id), ...batch.members.map(names.chunkKey))
      }
    }
    // Earlier, a crash would leave chunks whose batch seems to be confirmed.
    for (const key of orphaned) await this.#redis.expire(key, RELEASED_TTL_S)
    return outcomes
  }

  async close(): Promise<void> {
    await Promise.all(this.#shards.map(({ queue }) => queue.close()))
  }

  /** The failed jobs, at most `limit` per shard if it is given, those that failed last first. */
  async #failedJobs(limit?: number): Promise<FailedJob[]> {
    const perShard = await Promise.all(
      this.#shards.map(async (shard) => {
        const { failedKey } = shard.names
        const reply = await this.#redis.zrevrange(failedKey, 0, (limit ?? 0) - 1, 'WITHSCORES')
        return pairsOf(reply).map(([id, failedAtMs]) => ({ id, shard, failedAtMs: Number(failedAtMs) }))
      }),
    )
    return perShard.flat().toSorted((a, b) => b.failedAtMs - a.failedAtMs)
  }

  /** The chosen jobs by their ids; undefined for an id without a failed job. */
  async #choose(choice: 'all' | readonly string[]): Promise<Map<string, FailedJob | undefined>> {
    if (choice === 'all') return new Map((await this.#failedJobs()).map((job) => [job.id, job]))
    return new Map(await Promise.all(choice.map(async (id) => [id, await this.#find(id)] as const)))
  }

  async #find(id: string): Promise<FailedJob | undefined> {
    for (const shard of this.#shards) {
      const score = await this.#redis.zscore(shard.names.failedKey, id)
      if (score !== null) return { id, shard, failedAtMs: Number(score) }
    }
    return undefined
  }

  async #read({ id, shard, failedAtMs }: FailedJob): Promise<FailedChunk> {
    const { names } = shard
    const [data, reason, batchId] = await Promise.all([
      this.#readData(names, id),
      this.#redis.hget(names.jobKey(id), 'failedReason'),
      this.#redis.get(names.chunkKey(id)),
    ])
    return {
      id,
      shard: names.shard,
      failedAtMs,
      reason: reason ?? 'unknown',
      rows: data?.kind === 'chunk' ? data.chunk.rows : undefined,
      batchId: batchId ?? undefined,
    }
  }

  /** Undefined if there is no such job. */
  async #readData(names: QueueNames, id: string): Promise<JobData | undefined> {
    const [json, frame] = await this.#redis.hmgetBuffer(names.jobKey(id), 'data', FRAME_FIELD)
    return json instanceof Buffer ? readJobData(json.toString(), frame ?? null) : undefined
  }

  async #retry({ id, shard }: FailedJob): Promise<RetryOutcome> {
    const { names, queue, ledger } = shard
    const data = await this.#readData(names, id)
    if (data === undefined) return 'missing'
    if (data.kind === 'damaged') return 'damaged'
    const [batchId] = await ledger.claim(this.#makeId(), [id])
    if (batchId === undefined) return 'missing'
    // Its record may expire before a worker fetches the chunk. Without the record, the worker would insert it again.
    if ((await ledger.read(batchId))?.state !== 'claimed') {
      await queue.remove(id)
      return 'stored'
    }
    try {
      await (await queue.getJob(id))?.retry('failed')
    } catch (error) {
      // Another operator was faster, unless the job is still failed.
      if ((await this.#find(id)) !== undefined) throw error
    }
    return 'requeued'
  }

  /** Also while Redis is full: then it is most likely that an operator deletes chunks. */
  async #remove({ id, shard: { names } }: FailedJob, batch: Batch | undefined): Promise<PurgeOutcome> {
    const data = await this.#redis.hget(names.jobKey(id), 'data')
    const rows = batch?.state === 'confirmed' ? 0 : (rowsOfJobData(data ?? '') ?? 0)
    const keys = [names.failedKey, names.jobKey(id), names.totalsKey, names.absentKey]
    return (await this.#purge(keys, [id, rows])) === 1 ? 'removed' : 'missing'
  }

  async #batchOf({ id, shard: { names, ledger } }: FailedJob): Promise<Batch | undefined> {
    const batchId = await this.#redis.get(names.chunkKey(id))
    const record = batchId === null ? undefined : await ledger.read(batchId)
    return batchId === null || record === undefined ? undefined : { id: batchId, ...record }
  }

  /** Whether the queue has chunks of the batch that are not chosen. */
  async #isNeeded(
    { names }: Shard,
    { members }: Batch,
    chosen: ReadonlyMap<string, FailedJob | undefined>,
  ): Promise<boolean> {
    const others = members.filter((id) => chosen.get(id) === undefined)
    return others.length > 0 && (await this.#redis.exists(others.map((id) => names.jobKey(id)))) > 0
  }
}

interface Batch extends BatchRecord {
  readonly id: string
}
