import { type Backoff, backoffMs, type Logger, type RedisConnection } from '@sluice/runtime'
import { Queue } from 'bullmq'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chunk } from './chunk.ts'
import { chunkJobName, type QueueNames } from './queue-names.ts'
import { addRecorded, defineRecordedAdd, type QueueRecord } from './recorded-add.ts'

/** It is not known whether Redis has the chunk, so its entries must not be acknowledged. */
export class QueueUnavailableError extends Error {
  override name = 'QueueUnavailableError'
}

/** Redis is out of memory. The chunk is not in the queue. */
export class QueueFullError extends Error {
  override name = 'QueueFullError'
}

const RETRY: Backoff = { baseMs: 25, maxMs: 250 }

/** BullMQ keeps a stream of events per queue. Nothing reads it here, so it is kept as short as possible. */
const EVENTS_MAX = 1

/** The producer's side of one shard's queue. */
export class ChunkQueue {
  readonly #redis: RedisConnection
  readonly #names: QueueNames
  readonly #logger: Logger
  #queue: Queue<Chunk> | undefined

  /** @param redis a connection that fails fast and has a command timeout */
  constructor(redis: RedisConnection, names: QueueNames, logger: Logger) {
    this.#redis = redis
    this.#names = names
    this.#logger = logger
    defineRecordedAdd(redis)
  }

  /**
   * Resolves when Redis has confirmed the chunk. If the answer to an add is lost, it is retried with the same job id, so the
   * chunk is in the queue once.
   *
   * @param deadlineMs a time on the clock of `performance.now()`
   * @throws QueueFullError at once when Redis is out of memory; the chunk is not in the queue
   * @throws QueueUnavailableError when Redis has not confirmed by the deadline
   */
  async add(chunkId: string, chunk: Chunk, deadlineMs: number): Promise<void> {
    await this.#retryUntil(deadlineMs, async () => {
      await this.#usableQueue().add(chunkJobName, chunk, { jobId: chunkId })
    })
  }

  /**
   * Adds a chunk together with records: Redis stores all of them or nothing. Without a chunk, it stores the records alone. If
   * any of the records exists already, nothing is stored. A retry after a lost answer therefore finds its own records: each
   * record's text must be unique.
   *
   * @param records at least one
   * @param windowMs the lifetime of the records
   * @param deadlineMs a time on the clock of `performance.now()`
   * @returns undefined if everything was stored; otherwise the existing text of each record, null for none
   * @throws QueueFullError as `add`
   * @throws QueueUnavailableError when Redis has not answered by the deadline
   */
  addRecorded(
    chunkId: string,
    chunk: Chunk | undefined,
    { records, windowMs }: { readonly records: readonly QueueRecord[]; readonly windowMs: number },
    deadlineMs: number,
  ): Promise<readonly (string | null)[] | undefined> {
    return this.#retryUntil(deadlineMs, async () => {
      const queue = this.#usableQueue()
      await queue.waitUntilReady()
      return addRecorded(this.#redis, queue, { chunkId, chunk, records, windowMs })
    })
  }

  async #retryUntil<T>(deadlineMs: number, attemptAdd: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await withDeadline(attemptAdd(), deadlineMs)
      } catch (error) {
        if (isOutOfMemory(error)) throw outOfMemoryError(attempt, error)
        const waitMs = backoffMs(attempt, RETRY, Math.random())
        if (error instanceof DeadlineError || performance.now() + waitMs >= deadlineMs) {
          throw new QueueUnavailableError('Redis did not confirm the chunk in time', { cause: error })
        }
        await sleep(waitMs)
      }
    }
  }

  get isConnected(): boolean {
    return this.#redis.status === 'ready'
  }

  async close(): Promise<void> {
    await this.#queue?.close()
  }

  #usableQueue(): Queue<Chunk> {
    if (!this.isConnected) throw new Error(`the connection to Redis is ${this.#redis.status}`)
    this.#queue ??= this.#open()
    return this.#queue
  }

  #open(): Queue<Chunk> {
    const queue = new Queue<Chunk>(this.#names.queue, {
      connection: this.#redis,
      prefix: this.#names.queuePrefix,
      streams: { events: { maxLen: EVENTS_MAX } },
      defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: false },
    })
    // Errors of the connection, emitted again. Its owner logs them. The one other error is handled below.
    queue.on('error', () => undefined)
    // BullMQ queries the version of Redis once. If that fails, this Queue object stays unusable.
    queue.waitUntilReady().catch((error: unknown) => {
      this.#queue = undefined
      this.#logger.warn({ err: error }, 'queue not opened')
    })
    return queue
  }
}

/**
 * Redis rejects the first write of BullMQ's script, so nothing of the chunk is stored. It keeps rejecting until workers have
 * freed memory: an immediate retry is useless. Before Redis 7 the code is inside the text of a script error.
 */
function isOutOfMemory(error: unknown): error is Error {
  return error instanceof Error && /(^|-)OOM /.test(error.message)
}

/** After the first attempt, an earlier one may have succeeded without an answer. */
function outOfMemoryError(attempt: number, cause: Error): Error {
  return attempt === 1
    ? new QueueFullError('Redis is out of memory', { cause })
    : new QueueUnavailableError('Redis is out of memory and did not confirm an earlier attempt', { cause })
}

class DeadlineError extends Error {
  override name = 'DeadlineError'
}

async function withDeadline<T>(promise: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new DeadlineError('no answer')),
      Math.max(0, deadlineMs - performance.now()),
    )
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
