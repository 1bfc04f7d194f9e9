import type { Logger, RedisConnection } from '@sluice/runtime'
import {
  type BackendFactory,
  createRedisBackend,
  isNotConnectionError,
  Job,
  type RedisQueueBackend,
  Worker,
} from 'bullmq'
import { setTimeout as delay } from 'node:timers/promises'
import { type Chunk, decodeChunk, type HeldChunk, isKnownFormat } from './chunk.ts'
import { FetchMonitor } from './fetch-monitor.ts'
import type { QueueNames } from './queue-names.ts'

/** Thrown by `deliver` to return the chunk to the queue: it was not delivered, and may be delivered later. */
export class RequeueError extends Error {
  override name = 'RequeueError'
}

/** How chunks are fetched. */
export const fetchLimits = {
  /** Time between two rounds while chunks arrive: a fraction of the time that rows wait in a batch anyway. */
  intervalMs: 20,
  /** The same while none arrive. An empty fetch costs Redis about 0.1 ms and writes nothing to disk. */
  idleIntervalMs: 100,
  /** Chunks per round. If more are waiting, the next round follows at once. */
  jobsMax: 16,
  /** Pause after Redis rejected a fetch, for example because it is out of memory. */
  pauseAfterRejectionMs: 1_000,
  /** While there is no room for chunks, Redis is queried this often instead, to learn whether it answers. */
  queryIntervalMs: 1_000,
} as const

/** A chunk of an unknown version, or with other columns, waits this long for another worker. */
const UNKNOWN_FORMAT_DELAY_MS = 5_000
/** A crashed worker is detected by the second check after its lock has expired. */
const STALLED_CHECK_MAX_MS = 10_000
/** With its default of 1, BullMQ would fail a valid chunk whose workers crashed twice. */
const STALLED_COUNT_MAX = 1_000_000_000
/** Time between two attempts to complete a job while Redis is unavailable. */
const COMPLETION_RETRY_MS = 500
/** Locks are renewed this many times within their duration, so at least half of it is left at any time. */
const RENEWALS_PER_LOCK = 4

export interface ChunkConsumerOptions {
  readonly redis: RedisConnection
  readonly names: QueueNames
  /** Chunks in hand at the same time. */
  readonly chunksMax: number
  /** Bytes of base64 in hand. Above it no more chunks are fetched. Chunks fetched in one round may exceed it. */
  readonly heldBytesMax: number
  readonly lockDurationMs: number
  readonly logger: Logger
  /** Learns whether fetches are answered. */
  readonly fetchMonitor?: FetchMonitor
  /** Resolves when the chunk's job may complete. Rejects with RequeueError to return the chunk to the queue. */
  readonly deliver: (chunk: HeldChunk) => Promise<void>
  /** Called when the chunk's job is completed. */
  readonly onCompleted: (chunkId: string) => void
}

/** A job that this process has locked. */
interface LockedJob {
  readonly id: string
  readonly token: string
  /** Whether the step that releases the lock may have been sent. */
  isReleasing: boolean
}

/**
 * Fetches chunks from a BullMQ queue in rounds, holds their locks, and completes each one after it was delivered.
 *
 * It uses BullMQ's pattern of manual fetching (https://docs.bullmq.io/patterns/manually-fetching-jobs) and not its loop, which
 * fetches each job as soon as it arrives. With `appendfsync always`, each fetch makes Redis wait for its disk, and Redis
 * answers no client meanwhile. All fetches of a round share one wait.
 *
 * A chunk: fetched (locked, in hand) → delivered → completed; or → requeued; or, after an error of the worker itself, → failed.
 * If Redis rejects any of these steps, the job stays active until its lock expires, and the stalled check requeues it.
 */
export class ChunkConsumer {
  readonly #options: ChunkConsumerOptions
  readonly #worker: Worker<Chunk, void>
  readonly #closing = new AbortController()
  readonly #locked = new Set<LockedJob>()
  readonly #inHand = new Set<Promise<void>>()
  readonly #fetching: Promise<void>
  readonly #renewal: NodeJS.Timeout
  readonly #monitor: FetchMonitor
  /** BullMQ emits each error of the connection again on every worker. They are logged by the owner of the connection. */
  readonly #connectionErrors = new WeakSet<Error>()
  readonly #noteConnectionError = (error: Error): void => {
    this.#connectionErrors.add(error)
    this.#monitor.failed(this.#options.names.queuePrefix, error)
  }
  #heldBytes = 0
  #isRenewing = false
  #queriedAtMs = 0
  #fetches = 0

  constructor(options: ChunkConsumerOptions) {
    this.#options = options
    const { redis, names, lockDurationMs, logger } = options
    this.#monitor = options.fetchMonitor ?? new FetchMonitor(() => performance.now())
    this.#monitor.started(names.queuePrefix)
    // Before BullMQ adds its own listener.
    redis.on('error', this.#noteConnectionError)
    this.#worker = new Worker<Chunk, void>(
      names.queue,
      null,
      {
        connection: redis,
        prefix: names.queuePrefix,
        autorun: false,
        lockDuration: lockDurationMs,
        stalledInterval: Math.min(STALLED_CHECK_MAX_MS, lockDurationMs),
        maxStalledCount: STALLED_COUNT_MAX,
      },
      withoutBlockingConnection,
    )
    this.#worker.on('error', (error) => {
      if (!this.#connectionErrors.has(error)) logger.warn({ err: error }, 'queue failed')
    })
    void this.#worker.startStalledCheckTimer()
    this.#renewal = setInterval(() => void this.#renewLocks(), lockDurationMs / RENEWALS_PER_LOCK)
    this.#fetching = this.#fetchUntilClosed()
  }

  /** Reads a chunk from the queue by its job's id. Undefined if the job is not in the queue. */
  async load(chunkId: string): Promise<HeldChunk | undefined> {
    const job = await Job.fromId<Chunk, void>(this.#worker, chunkId)
    return job === undefined ? undefined : decodeChunk(chunkId, job.data)
  }

  /** Stops fetching. Resolves when every chunk in hand is completed, requeued or given up. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#monitor.stopped(this.#options.names.queuePrefix)
    await this.#fetching
    clearInterval(this.#renewal)
    await this.#worker.close()
    this.#options.redis.off('error', this.#noteConnectionError)
  }

  async #fetchUntilClosed(): Promise<void> {
    // A round requests one more than the last round returned, to find out whether more are waiting.
    let wanted = 1
    while (!this.#closing.signal.aborted) {
      const room = this.#room
      const requested = Math.min(wanted, room, fetchLimits.jobsMax)
      if (requested === 0) await this.#query()
      const fetched = await this.#fetch(requested)
      if (fetched === 'rejected') {
        await this.#pause(fetchLimits.pauseAfterRejectionMs)
      } else if (requested > 0 && fetched === requested) {
        wanted = 2 * requested
      } else {
        wanted = fetched + 1
        await this.#pause(fetched > 0 || room === 0 ? fetchLimits.intervalMs : fetchLimits.idleIntervalMs)
      }
    }
    await Promise.all(this.#inHand)
  }

  /** How many more chunks may be fetched. */
  get #room(): number {
    const { chunksMax, heldBytesMax } = this.#options
    return this.#heldBytes > heldBytesMax ? 0 : Math.max(0, chunksMax - this.#inHand.size)
  }

  /** Fetches up to `count` jobs and starts their delivery. Resolves when Redis has answered all fetches. */
  async #fetch(count: number): Promise<number | 'rejected'> {
    const results = await Promise.allSettled(Array.from({ length: count }, () => this.#fetchOne()))
    const { names, logger } = this.#options
    const rejection = results.find((result) => result.status === 'rejected')
    if (rejection === undefined) {
      if (count > 0) this.#monitor.fetched(names.queuePrefix)
      return results.filter((result) => result.status === 'fulfilled' && result.value).length
    }
    const error = rejection.reason as Error
    this.#monitor.failed(names.queuePrefix, error)
    // Errors of the connection are logged by its owner.
    if (isNotConnectionError(error)) logger.warn({ err: error }, 'queue failed')
    return 'rejected'
  }

  /** Takes the place of fetches for the monitor while nothing is fetched. Never rejects. */
  async #query(): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#queriedAtMs < fetchLimits.queryIntervalMs) return
    this.#queriedAtMs = nowMs
    const { redis, names } = this.#options
    try {
      await redis.llen(names.waitKey)
      this.#monitor.answered(names.queuePrefix)
    } catch (error) {
      this.#monitor.failed(names.queuePrefix, error as Error)
    }
  }

  /** @returns whether a job was waiting */
  async #fetchOne(): Promise<boolean> {
    this.#fetches += 1
    const token = `${this.#worker.id}:${this.#fetches}`
    const job = (await this.#worker.getNextJob(token, { block: false })) as Job<Chunk, void> | undefined
    if (job === undefined) return false
    const settled: Promise<void> = this.#process(job, token).finally(() => this.#inHand.delete(settled))
    this.#inHand.add(settled)
    return true
  }

  /** Never rejects. */
  async #process(job: Job<Chunk, void>, token: string): Promise<void> {
    const { id = '' } = job
    // A job that another program added may have any data.
    const data = job.data as Partial<Chunk> | null
    const bytes = typeof data?.frame === 'string' ? data.frame.length : 0
    const lock: LockedJob = { id, token, isReleasing: false }
    this.#locked.add(lock)
    this.#heldBytes += bytes
    try {
      if (data !== null && !isKnownFormat(data))
        await job.moveToDelayed(Date.now() + UNKNOWN_FORMAT_DELAY_MS, token)
      else await this.#deliver(job, lock)
    } catch (error) {
      // The job stays active. The stalled check requeues it when its lock has expired.
      this.#options.logger.warn({ err: error, chunkId: id }, 'chunk left to the stalled check')
    } finally {
      this.#locked.delete(lock)
      this.#heldBytes -= bytes
    }
  }

  async #deliver(job: Job<Chunk, void>, lock: LockedJob): Promise<void> {
    const { id, token } = lock
    try {
      const chunk = decodeChunk(id, job.data)
      // Frees the job's text, which is more than half of the memory of a chunk in hand. The job itself is kept until it is completed.
      job.data = { ...job.data, frame: '' }
      await this.#options.deliver(chunk)
    } catch (error) {
      lock.isReleasing = true
      if (error instanceof RequeueError) {
        await job.moveToWait(token)
      } else {
        this.#options.logger.error({ err: error, chunkId: id }, 'chunk moved to the failed jobs')
        await job.moveToFailed(error instanceof Error ? error : new Error(String(error)), token, false)
      }
      return
    }
    lock.isReleasing = true
    await this.#complete(job, token)
    this.#options.onCompleted(id)
  }

  /** Retries while Redis is unavailable and the consumer is open. */
  async #complete(job: Job<Chunk, void>, token: string): Promise<void> {
    for (;;) {
      try {
        await job.moveToCompleted(undefined, token, false)
        return
      } catch (error) {
        if (this.#closing.signal.aborted || isNotConnectionError(error as Error)) throw error
        await this.#pause(COMPLETION_RETRY_MS)
      }
    }
  }

  /** Never rejects. */
  async #renewLocks(): Promise<void> {
    const locks = [...this.#locked]
    // While Redis does not answer, renewals would pile up in the queue of the connection.
    if (locks.length === 0 || this.#isRenewing) return
    this.#isRenewing = true
    const { lockDurationMs, logger } = this.#options
    try {
      const ids = await this.#worker.extendJobLocks(
        locks.map(({ id }) => id),
        locks.map(({ token }) => token),
        lockDurationMs,
      )
      const lost = locks.filter(({ id, isReleasing }) => ids.includes(id) && !isReleasing)
      // Another worker may have the chunk now. The batch ledger keeps the two from inserting it twice.
      if (lost.length > 0) logger.warn({ chunks: lost.length, chunkId: lost[0]?.id }, 'locks lost')
    } catch (error) {
      if (isNotConnectionError(error as Error)) logger.warn({ err: error }, 'locks not renewed')
    } finally {
      this.#isRenewing = false
    }
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined)
  }
}

/** Manual fetching never blocks, so the worker needs no second connection to wait on. */
const withoutBlockingConnection: BackendFactory<RedisQueueBackend> = (name, options) =>
  createRedisBackend(name, options)
