import {
  defineScript,
  pairsOf,
  permitWrites,
  plainRedis,
  type RedisConnection,
  type RedisScript,
} from '@sluice/runtime'
import type { Queue } from 'bullmq'
import { randomUUID } from 'node:crypto'
import { batchLedger, type BatchLedger, RELEASED_TTL_S } from './batch-ledger.ts'
import { bullmqQueue } from './bullmq-internals.ts'
import { type ChunkData, FRAME_FIELD, readJob, rowsOfJobData } from './chunk.ts'
import { type QueueNames, totalsField } from './queue-names.ts'

/** A chunk whose job failed. Its rows are not stored, unless its batch is confirmed. */
export interface FailedChunk {
  /** The id of its job. */
  readonly id: string
  readonly shard: number
  /** By the clock of Redis, ms since 1970. */
  readonly failedAtMs: number
  readonly reason: string
  /** Undefined if the data of the job is damaged. */
  readonly rows: number | undefined
  /** The batch that it belongs to. Undefined if it was not claimed. */
  readonly batchId: string | undefined
}

/**
 * What became of a chunk.
 *
 * - requeued: its job waits again;
 * - stored: its batch is confirmed, so its rows are stored. The job is removed;
 * - damaged: its rows cannot be read. Nothing was changed;
 * - removed: its job and its rows are deleted;
 * - needed: its batch has other chunks in the queue, which could not be stored without it. Nothing was changed;
 * - missing: there is no such failed job.
 */
export type FailedChunkOutcome = 'requeued' | 'stored' | 'damaged' | 'removed' | 'needed' | 'missing'
type Outcomes = Map<string, FailedChunkOutcome>

/**
 * KEYS: BullMQ's set of failed jobs, the job, the totals, the receipts, `absentKey`. ARGV: the id of the job, the number of its rows. Deletes
 * a failed job as BullMQ does, and counts its rows. Returns 0 if it is not a failed job.
 */
const PURGE = `
${permitWrites}
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('DEL', KEYS[2], KEYS[2] .. ':logs')
redis.call('ZREM', KEYS[4], ARGV[1])
if ARGV[2] ~= '0' then redis.call('HINCRBY', KEYS[3], '${totalsField.removed}', ARGV[2]) end
return 1`

interface Shard {
  readonly names: QueueNames
  readonly queue: Queue<ChunkData>
  readonly ledger: BatchLedger
}

interface FailedJob extends Shard {
  readonly id: string
  readonly failedAtMs: number
}

/**
 * The jobs that workers failed and no longer touch, for an operator.
 *
 * A retry stores no row twice, because the batch ledger decides what is sent. A chunk without a batch gets one before its job is requeued:
 * its record may have expired, so a worker must look up its rows too.
 */
export class FailedChunks {
  readonly #redis: RedisConnection
  readonly #purge: RedisScript<number>
  readonly #shards: readonly Shard[]

  /**
   * To be closed by the caller.
   *
   * @param shards of the installation, retired ones included
   * @param durable what the claims run on
   */
  constructor(redis: RedisConnection, shards: readonly QueueNames[], durable = plainRedis(redis)) {
    this.#redis = redis
    this.#purge = defineScript(redis, PURGE)
    this.#shards = shards.map((names) => ({
      names,
      queue: bullmqQueue(redis, names),
      ledger: batchLedger(durable, names),
    }))
  }

  /** The failed chunks, those that failed last first, at most `limit`. */
  async list(limit: number): Promise<FailedChunk[]> {
    const chunks: FailedChunk[] = []
    // One by one: the data of a chunk of version 1 has its rows.
    for (const job of (await this.#failedJobs(limit)).slice(0, limit)) chunks.push(await this.#read(job))
    return chunks
  }

  async count(): Promise<number> {
    return (await this.#failedJobs()).length
  }

  /** @returns the outcome of each chunk: of those named, or of those that are failed now */
  async retry(choice: 'all' | readonly string[]): Promise<Outcomes> {
    const outcomes: Outcomes = new Map()
    for (const [id, job] of await this.#choose(choice))
      outcomes.set(id, job === undefined ? 'missing' : await this.#retry(job))
    return outcomes
  }

  /**
   * Deletes failed chunks with their rows. The chunks of a batch can only be deleted together.
   *
   * @returns as `retry`
   */
  async purge(choice: 'all' | readonly string[]): Promise<Outcomes> {
    const chosen = await this.#choose(choice)
    const outcomes: Outcomes = new Map()
    /** The keys of batches. Nothing reads them when none of their jobs is left. */
    const orphaned: string[] = []
    for (const [id, job] of chosen) {
      if (job === undefined) {
        outcomes.set(id, 'missing')
        continue
      }
      const { names, ledger } = job
      const batchId = (await this.#redis.get(names.chunkKey(id))) ?? ''
      const batch = await ledger.read(batchId)
      const claimed = batch?.state === 'claimed' ? batch.members : []
      const others = claimed.filter((member) => chosen.get(member) === undefined)
      const isNeeded = others.length > 0 && (await this.#redis.exists(others.map(names.jobKey))) > 0
      outcomes.set(id, isNeeded ? 'needed' : await this.#remove(job, batch?.state === 'confirmed'))
      if (claimed.length > 0 && !isNeeded)
        orphaned.push(names.batchKey(batchId), ...claimed.map(names.chunkKey))
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
      this.#shards.map(async ({ names, queue, ledger }) => {
        const reply = await this.#redis.zrevrange(names.failedKey, 0, (limit ?? 0) - 1, 'WITHSCORES')
        return pairsOf(reply).map(([id, ms]) => ({ names, queue, ledger, id, failedAtMs: Number(ms) }))
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
      if (score !== null) return { ...shard, id, failedAtMs: Number(score) }
    }
    return undefined
  }

  async #read({ id, names, failedAtMs }: FailedJob): Promise<FailedChunk> {
    const [data, reason] = await this.#redis.hmget(names.jobKey(id), 'data', 'failedReason')
    const batchId = await this.#redis.get(names.chunkKey(id))
    return {
      id,
      shard: names.shard,
      failedAtMs,
      reason: reason ?? 'unknown',
      rows: rowsOfJobData(data ?? ''),
      batchId: batchId ?? undefined,
    }
  }

  async #retry(job: FailedJob): Promise<FailedChunkOutcome> {
    const { id, names, queue, ledger } = job
    const [json, frame = null] = await this.#redis.hmgetBuffer(names.jobKey(id), 'data', FRAME_FIELD)
    if (!json) return 'missing'
    if (readJob(id, json.toString(), frame) === 'damaged') return 'damaged'
    const [batchId] = await ledger.claim(randomUUID(), [id])
    if (batchId === undefined) return 'missing'
    // Its record may expire before a worker fetches the chunk. Without the record, the worker would insert it again.
    if ((await ledger.read(batchId))?.state !== 'claimed')
      return (await this.#remove(job, true)) === 'removed' ? 'stored' : 'missing'
    try {
      await (await queue.getJob(id))?.retry('failed')
    } catch (error) {
      // Another operator was faster, unless the job is still failed.
      if ((await this.#find(id)) !== undefined) throw error
    }
    return 'requeued'
  }

  /** Also while Redis is full: then it is most likely that an operator deletes chunks. */
  async #remove({ id, names }: FailedJob, isStored: boolean): Promise<FailedChunkOutcome> {
    const data = isStored ? null : await this.#redis.hget(names.jobKey(id), 'data')
    const rows = rowsOfJobData(data ?? '') ?? 0
    const { absentKey, failedKey, receiptsKey, totalsKey } = names
    const keys = [failedKey, names.jobKey(id), totalsKey, receiptsKey, absentKey]
    return (await this.#purge(keys, [id, rows])) === 1 ? 'removed' : 'missing'
  }
}
