import {
  type DurableRedis,
  type Logger,
  plainRedis,
  type RedisConnection,
  withTimeout,
} from '@sluice/runtime'
import { isNotConnectionError } from 'bullmq'
import { batchFinisher } from './batch-finish.ts'
import { FRAME_FIELD, type HeldChunk, readJob } from './chunk.ts'
import type { FetchMonitor } from './fetch-monitor.ts'
import { HeldJobs, keepLocks, type LockedJob } from './held-jobs.ts'
import { type FetchedJob, jobFetcher } from './job-fetch.ts'
import { jobMover, type QueueEnd } from './job-moves.ts'
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

export interface Fetch {
  /** Locked, and held from now on. */
  readonly chunks: readonly HeldChunk[]
  /** Whether jobs may still be waiting. */
  readonly hasMore: boolean
}

export type ChunkConsumer = ReturnType<typeof chunkConsumer>

/**
 * The consumer's side of one shard's queue. It is passive: the caller decides when to fetch, finish and requeue chunks. By itself it
 * only renews the locks of the held chunks, and requeues the chunks of workers that died.
 *
 * Each operation is one Lua script for many chunks, with BullMQ's own scripts inside, so that all chunks share one wait for the disk of
 * Redis. The scripts also run while Redis is above its `maxmemory`, so that the queue can be drained. Each operation may be repeated. If
 * Redis rejects it, it throws, and the chunks stay held. If the connection is lost, its promise settles when Redis replies again.
 */
export function chunkConsumer(options: ChunkConsumerOptions) {
  const {
    redis,
    durable = plainRedis(redis),
    names,
    workerId,
    lockDurationMs,
    logger,
    fetchMonitor,
  } = options
  const held = new HeldJobs()
  const fetcher = jobFetcher(redis, names, workerId, lockDurationMs)
  const mover = jobMover(redis, names)
  const stopLocks = keepLocks(options, held)
  const readJobs = durable.script<JobFields[]>(READ_JOBS, { isBinary: true })
  fetchMonitor.started(names.queuePrefix)
  const onError = (error: Error): void => fetchMonitor.failed(names.queuePrefix, error)
  redis.on('error', onError)

  async function fail(job: LockedJob, error: Error): Promise<void> {
    // Otherwise another worker has locked it.
    if (await mover.fail(job, error))
      logger.error({ err: error, chunkId: job.id }, 'chunk moved to the failed jobs')
  }

  /** @returns undefined if the job is not a new chunk. Never rejects. */
  async function accept({ id, token, json, frame }: FetchedJob): Promise<HeldChunk | undefined> {
    const chunk = readJob(id, json, frame.length === 0 ? null : frame)
    if (typeof chunk !== 'string') return held.add({ id, token }) ? chunk : undefined
    try {
      if (chunk === 'damaged') await fail({ id, token }, new Error('the data of the job is damaged'))
      else await mover.delay({ id, token }, UNKNOWN_FORMAT_DELAY_MS)
    } catch (error) {
      // The job stays active. The stalled check requeues it when its lock has expired.
      logger.warn({ err: error, chunkId: id }, 'chunk left to the stalled check')
    }
    return undefined
  }

  /** Repeats a step that releases locks: a job may be fetched again, with a new lock, while the step is in flight. */
  async function releaseAll(
    chunkIds: readonly string[],
    step: (jobs: readonly LockedJob[]) => Promise<unknown>,
  ): Promise<void> {
    for (let jobs = held.of(chunkIds); jobs.length > 0; jobs = held.of(chunkIds)) {
      const released = jobs
      await held.release(released, () => step(released).then(() => true))
    }
  }

  return {
    finish: batchFinisher(durable, names, held),
    /** Lets another worker take the turn at once. Without effect if this worker does not have it. */
    yieldTurn: (): Promise<void> => fetcher.yieldTurn(),
    get heldChunks(): number {
      return held.size
    },
    /** Drops held chunks whose jobs do not exist any more. */
    forget: (chunkIds: readonly string[]): void => held.forget(chunkIds),
    /**
     * Fetches the oldest waiting chunks and locks them, unless another worker has the turn. A chunk that is still held, because its
     * lock had expired, is not returned again.
     *
     * @param count the number of chunks, at most 64. With 0 it only takes or renews the turn
     * @param turn isBusy: whether another worker that is not busy may take the turn from this one
     * @returns undefined if another worker has the turn
     * @throws if Redis rejects the fetch
     */
    async fetch(count: number, turn: { readonly isBusy: boolean }): Promise<Fetch | undefined> {
      try {
        const fetched = await fetcher.fetch(count, turn.isBusy)
        fetchMonitor.fetched(names.queuePrefix)
        if (fetched === undefined) return undefined
        const chunks = await Promise.all(fetched.jobs.map(accept))
        return { chunks: chunks.filter((chunk) => chunk !== undefined), hasMore: fetched.hasMore }
      } catch (error) {
        fetchMonitor.failed(names.queuePrefix, error as Error)
        if (isNotConnectionError(error as Error)) logger.warn({ err: error }, 'fetch rejected')
        throw error
      }
    },
    /**
     * Reads chunks by the ids of their jobs, in their order, and does not lock them.
     *
     * @returns undefined if a job does not exist
     * @throws if a job is not a chunk of a known format
     */
    async load(chunkIds: readonly string[]): Promise<HeldChunk[] | undefined> {
      const runs: Promise<JobFields[]>[] = []
      for (let from = 0; from < chunkIds.length; from += READ_PER_RUN_MAX)
        runs.push(readJobs(chunkIds.slice(from, from + READ_PER_RUN_MAX).map(names.jobKey), []))
      // Together, since each waits for replicas.
      const found = (await Promise.all(runs)).flat()
      if (found.some(([json]) => json === null)) return undefined
      return found.map(([json, frame], index) => {
        const id = chunkIds[index] ?? ''
        const chunk = readJob(id, String(json), frame)
        if (typeof chunk === 'string') throw new Error(`the job ${id} is ${chunk}`)
        return chunk
      })
    },
    /**
     * Returns held chunks to the queue, in their order.
     *
     * @param end 'front': they are the next ones to be fetched; 'back': behind all waiting chunks
     * @throws if Redis rejects it; then the chunks stay held
     */
    requeue: (chunkIds: readonly string[], end: QueueEnd): Promise<void> =>
      releaseAll(chunkIds, (jobs) => mover.requeue(jobs, end)),
    /** Moves a held chunk to the failed jobs, for an operator. @throws if Redis rejects it; then the chunk stays held */
    fail: (chunkId: string, error: Error): Promise<void> =>
      releaseAll([chunkId], (jobs) => Promise.all(jobs.map((job) => fail(job, error)))),
    /** Yields the turn if Redis replies soon. What is still held returns to the queue when its lock has expired. */
    async close(): Promise<void> {
      stopLocks()
      fetchMonitor.stopped(names.queuePrefix)
      redis.off('error', onError)
      // Without a reply, or after an error, the turn expires.
      await withTimeout(fetcher.yieldTurn(), YIELD_TIMEOUT_MS).catch(() => undefined)
    },
  }
}
