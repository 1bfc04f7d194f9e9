import type { Logger, RedisConnection } from '@sluice/runtime'
import { chunkFrame, type Chunk, type RedisNames } from '@sluice/schema'
import { DelayedError, Job, WaitingError } from 'bullmq'
import type { HeldChunk } from './collector.ts'
import { workerLimits } from './limits.ts'
import { PacedWorker } from './paced-worker.ts'
import { HandBackError } from './persistence.ts'

/** A chunk of a version that is not known here waits this long for a newer worker. */
const UNKNOWN_VERSION_DELAY_MS = 5_000
/** A worker that dies is noticed by the second check after its lock has run out. */
const STALLED_CHECK_MAX_MS = 10_000
/** BullMQ would otherwise fail a chunk whose workers died this often, though nothing is wrong with it. */
const STALLED_COUNT_MAX = 1_000_000_000

export interface ConsumerOptions {
  readonly redis: RedisConnection
  readonly names: RedisNames
  /** How many consumers share what a worker may hold. */
  readonly shards: number
  readonly lockDurationMs: number
  readonly logger: Logger
  /** Resolves when the chunk's job may complete; rejects with HandBackError when it goes back to the queue. */
  readonly deliver: (chunk: HeldChunk) => Promise<void>
  /** Called when the chunk's job is completed. */
  readonly onCompleted: (chunkId: string) => void
}

/** Fetches chunks from the BullMQ queue, as many as may be in hand, and completes each when it was delivered. */
export class ChunkConsumer {
  readonly #options: ConsumerOptions
  readonly #worker: PacedWorker<Chunk>
  readonly #chunksMax: number
  readonly #heldBytesMax: number
  /** BullMQ emits the errors of a connection again on every worker, as if they were its own. */
  readonly #connectionErrors = new WeakSet<Error>()
  readonly #noteConnectionError = (error: Error): unknown => this.#connectionErrors.add(error)
  #heldBytes = 0

  constructor(options: ConsumerOptions) {
    this.#options = options
    const { redis, names, shards, lockDurationMs, logger } = options
    this.#chunksMax = Math.ceil(workerLimits.chunksMax / shards)
    this.#heldBytesMax = Math.ceil(workerLimits.heldBytesMax / shards)
    // Before BullMQ listens to it. What is said of the connection is logged where it was made.
    redis.on('error', this.#noteConnectionError)
    this.#worker = new PacedWorker<Chunk>(names.queue, (job, token) => this.#process(job, token), {
      connection: redis,
      prefix: names.queuePrefix,
      concurrency: this.#chunksMax,
      lockDuration: lockDurationMs,
      stalledInterval: Math.min(STALLED_CHECK_MAX_MS, lockDurationMs),
      maxStalledCount: STALLED_COUNT_MAX,
      // How long a completion waits for Redis to come back before it is tried again.
      runRetryDelay: 500,
    })
    this.#worker.on('error', (error) => {
      if (!this.#connectionErrors.has(error)) logger.warn({ err: error }, 'queue failed')
    })
    this.#worker.on('failed', (job, error) =>
      logger.error({ err: error, chunkId: job?.id }, 'chunk set aside'),
    )
    this.#worker.on('completed', (job) => options.onCompleted(job.id ?? ''))
  }

  /** A chunk's content, by its job's id. Undefined when the job is gone. */
  async load(chunkId: string): Promise<HeldChunk | undefined> {
    const job = await Job.fromId<Chunk, void>(this.#worker, chunkId)
    return job === undefined ? undefined : hold(chunkId, job.data)
  }

  /** Stops fetching, and resolves when every chunk in hand is completed or handed back. */
  async close(): Promise<void> {
    await this.#worker.close()
    this.#options.redis.off('error', this.#noteConnectionError)
  }

  async #process(job: Job<Chunk, void>, token: string | undefined): Promise<void> {
    const { id, data } = job
    if (id === undefined) throw new Error('a job without an id')
    // It is found when its lock has run out; as a failed job it would not be.
    const leave = (error: unknown): void =>
      this.#options.logger.warn({ err: error, chunkId: id }, 'chunk not handed back')
    if (data.v !== 1) {
      await job.moveToDelayed(Date.now() + UNKNOWN_VERSION_DELAY_MS, token).catch(leave)
      throw new DelayedError()
    }
    const chunk = hold(id, data)
    const bytes = data.frame.length
    // BullMQ keeps the job until it is completed; its text is more than half of what a chunk in hand takes.
    job.data = { ...data, frame: '' }
    this.#hold(bytes)
    try {
      await this.#options.deliver(chunk)
    } catch (error) {
      if (!(error instanceof HandBackError)) throw error
      await job.moveToWait(token).catch(leave)
      throw new WaitingError()
    } finally {
      this.#hold(-bytes)
    }
  }

  /** The worker bounds the number of jobs in hand, not their bytes: over the limit it is told to have one at a time. */
  #hold(bytes: number): void {
    this.#heldBytes += bytes
    const concurrency = this.#heldBytes > this.#heldBytesMax ? 1 : this.#chunksMax
    if (this.#worker.concurrency !== concurrency) this.#worker.concurrency = concurrency
  }
}

function hold(id: string, chunk: Chunk): HeldChunk {
  return { id, rows: chunk.rows, bytes: chunk.bytes, frame: chunkFrame(chunk) }
}
