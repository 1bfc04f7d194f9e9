import {
  type DurableRedis,
  listenTo,
  type Logger,
  plainRedis,
  type RedisConnection,
  type RedisScript,
  withTimeout,
} from '@sluice/runtime'
import { isNotConnectionError } from 'bullmq'
import { batchFinisher, type FinishBatch } from './batch-finish.ts'
import { FRAME_FIELD, type HeldChunk, readJob } from './chunk.ts'
import type { FetchMonitor } from './fetch-monitor.ts'
import { HeldJobs, keepLocks, type LockedJob } from './held-jobs.ts'
import { type FetchedJob, jobFetcher, type JobFetcher } from './job-fetch.ts'
import { jobMover, type JobMover, type QueueEnd } from './job-moves.ts'
import type { QueueNames } from './queue-names.ts'

/** A chunk of an unknown version, or with other columns, waits this long for another worker. */
const UNKNOWN_FORMAT_DELAY_MS = 5_000
/** A closing worker waits this long for Redis' reply that the turn is free. Without it, the turn is free some seconds later. */
const YIELD_TIMEOUT_MS = 1_000

/** Jobs per run of the script. Redis serves no other client meanwhile, for about a millisecond. */
const READ_PER_RUN_MAX = 16

/** KEYS: jobs. Returns the data and the frame of each. As a script, so that a job that is found missing was also missing on the replicas. */
const READ_JOBS = `
local data = {}
for i = 1, #KEYS do data[i] = redis.call('HMGET', KEYS[i], 'data', '${FRAME_FIELD}') end
return data`

type JobFields = readonly [data: Buffer | null, frame: Buffer | null]

export interface ChunkConsumerOptions {
  readonly redis: RedisConnection
  /** What the steps on batches run on. Default: `redis`. */
  readonly durable?: DurableRedis | undefined
  readonly names: QueueNames
  readonly workerId: string
  readonly lockDurationMs: number
  readonly logger: Logger
  readonly fetchMonitor: FetchMonitor
}

export type Fetch =
  | {
      readonly turn: 'mine'
      /** Locked, and held from now on. */
      readonly chunks: readonly HeldChunk[]
      /** Whether jobs may still be waiting. */
      readonly hasMore: boolean
    }
  /** Another worker has the turn. Nothing was fetched. */
  | { readonly turn: 'taken' }

/**
 * The consumer's side of one shard's queue. It is passive: the caller decides when to fetch, finish and requeue chunks. By itself it
 * only renews the locks of the held chunks, and requeues the chunks of workers that died.
 *
 * Each operation is one Lua script for many chunks, with BullMQ's own scripts inside, so that all chunks share one wait for the disk of
 * Redis. The scripts also run while Redis is above its `maxmemory`, so that the queue can be drained. Each operation may be repeated. If
 * Redis rejects it, it throws, and the chunks stay held. If the connection is lost, its promise settles when Redis replies again.
 */
export class ChunkConsumer {
  readonly #options: ChunkConsumerOptions
  readonly #jobs = new HeldJobs()
  readonly #fetcher: JobFetcher
  readonly #mover: JobMover
  readonly #stopLocks: () => void
  readonly #readJobs: RedisScript<JobFields[]>
  readonly #stopListening: () => void

  constructor(options: ChunkConsumerOptions) {
    this.#options = options
    const { redis, durable = plainRedis(redis), names, workerId, lockDurationMs, fetchMonitor } = options
    this.#fetcher = jobFetcher(redis, names, workerId, lockDurationMs)
    this.finish = batchFinisher(durable, names, this.#jobs)
    this.#mover = jobMover(redis, names)
    this.#stopLocks = keepLocks(options, this.#jobs)
    this.#readJobs = durable.script(READ_JOBS, { isBinary: true })
    fetchMonitor.started(names.queuePrefix)
    this.#stopListening = listenTo(redis, 'error', (error) => fetchMonitor.failed(names.queuePrefix, error))
  }

  /**
   * Fetches the oldest waiting chunks and locks them, unless another worker has the turn. A chunk that is still held, because its
   * lock had expired, is not returned again.
   *
   * @param count the number of chunks, at most 64. With 0 it only takes or renews the turn
   * @param turn isBusy: whether another worker that is not busy may take the turn from this one
   */
  async fetch(count: number, turn: { readonly isBusy: boolean }): Promise<Fetch> {
    const { names, fetchMonitor, logger } = this.#options
    try {
      const fetched = await this.#fetcher.fetch(count, turn.isBusy)
      fetchMonitor.fetched(names.queuePrefix)
      if (fetched === undefined) return { turn: 'taken' }
      const chunks = await Promise.all(fetched.jobs.map((job) => this.#accept(job)))
      return { turn: 'mine', chunks: chunks.filter((chunk) => chunk !== undefined), hasMore: fetched.hasMore }
    } catch (error) {
      fetchMonitor.failed(names.queuePrefix, error as Error)
      if (isNotConnectionError(error as Error)) logger.warn({ err: error }, 'fetch rejected')
      throw error
    }
  }

  /** Lets another worker take the turn at once. Without effect if this worker does not have it. */
  yieldTurn(): Promise<void> {
    return this.#fetcher.yieldTurn()
  }

  /**
   * Reads chunks by the ids of their jobs, in their order, and does not lock them.
   *
   * @returns undefined if a job does not exist
   * @throws if a job is not a chunk of a known format
   */
  async load(chunkIds: readonly string[]): Promise<HeldChunk[] | undefined> {
    const runs: Promise<JobFields[]>[] = []
    for (let from = 0; from < chunkIds.length; from += READ_PER_RUN_MAX) {
      const keys = chunkIds.slice(from, from + READ_PER_RUN_MAX).map((id) => this.#options.names.jobKey(id))
      runs.push(this.#readJobs(keys, []))
    }
    // Together, since each waits for replicas.
    const found = (await Promise.all(runs)).flat()
    if (found.some(([json]) => json === null)) return undefined
    return found.map(([json, frame], index) => {
      const id = chunkIds[index] ?? ''
      const chunk = readJob(id, String(json), frame)
      if (typeof chunk === 'string') throw new Error(`the job ${id} is ${chunk}`)
      return chunk
    })
  }

  /** See `batchFinisher`. */
  readonly finish: FinishBatch

  /**
   * Returns held chunks to the queue, in their order.
   *
   * @param end 'front': they are the next ones to be fetched; 'back': behind all waiting chunks
   */
  async requeue(chunkIds: readonly string[], end: QueueEnd): Promise<void> {
    await this.#releaseAll(chunkIds, (jobs) => this.#mover.requeue(jobs, end))
  }

  /** Moves a held chunk to the failed jobs, with its data. It stays there until an operator handles it. */
  async fail(chunkId: string, error: Error): Promise<void> {
    await this.#releaseAll([chunkId], async (jobs) => {
      await Promise.all(jobs.map((job) => this.#fail(job, error)))
    })
  }

  /** Drops held chunks whose jobs do not exist any more. */
  forget(chunkIds: readonly string[]): void {
    this.#jobs.forget(chunkIds)
  }

  get heldChunks(): number {
    return this.#jobs.size
  }

  /** Yields the turn if Redis replies soon. What is still held returns to the queue when its lock has expired. */
  async close(): Promise<void> {
    const { names, fetchMonitor } = this.#options
    this.#stopLocks()
    fetchMonitor.stopped(names.queuePrefix)
    this.#stopListening()
    // Without a reply, or after an error, the turn expires.
    await withTimeout(this.yieldTurn(), YIELD_TIMEOUT_MS).catch(() => undefined)
  }

  /** @returns undefined if the job is not a new chunk. Never rejects. */
  async #accept({ id, token, json, frame }: FetchedJob): Promise<HeldChunk | undefined> {
    const chunk = readJob(id, json, frame.length === 0 ? null : frame)
    if (typeof chunk !== 'string') return this.#jobs.add({ id, token }) ? chunk : undefined
    try {
      if (chunk === 'damaged') await this.#fail({ id, token }, new Error('the data of the job is damaged'))
      else await this.#mover.delay({ id, token }, UNKNOWN_FORMAT_DELAY_MS)
    } catch (error) {
      // The job stays active. The stalled check requeues it when its lock has expired.
      this.#options.logger.warn({ err: error, chunkId: id }, 'chunk left to the stalled check')
    }
    return undefined
  }

  /** Repeats a step that releases locks: a job may be fetched again, with a new lock, while the step is in flight. */
  async #releaseAll(
    chunkIds: readonly string[],
    step: (jobs: readonly LockedJob[]) => Promise<unknown>,
  ): Promise<void> {
    for (;;) {
      const jobs = this.#jobs.of(chunkIds)
      if (jobs.length === 0) return
      await this.#jobs.release(jobs, async () => {
        await step(jobs)
        return true
      })
    }
  }

  async #fail(job: LockedJob, error: Error): Promise<void> {
    // Otherwise another worker has locked it.
    if (await this.#mover.fail(job, error))
      this.#options.logger.error({ err: error, chunkId: job.id }, 'chunk moved to the failed jobs')
  }
}
