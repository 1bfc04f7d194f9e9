import { chunkJobName, type Chunk, type RedisNames } from '@sluice/schema'
import { backoffMs, type Backoff, type Logger, type RedisConnection } from '@sluice/runtime'
import { Queue } from 'bullmq'
import { setTimeout as sleep } from 'node:timers/promises'
import { OverloadedError } from '../overload/overloaded-error.ts'
import { addRecorded, defineRecordedAdd, type QueueRecord } from './recorded-add.ts'

/** Whether Redis has a chunk is not known: nothing may be acknowledged. */
export class QueueUnavailableError extends Error {
  override name = 'QueueUnavailableError'
}

const RETRY: Backoff = { baseMs: 25, maxMs: 250 }

/**
 * BullMQ keeps a stream of events for each queue; nobody reads it here, so it is kept as short as it can be.
 */
const EVENTS_MAX = 1

/** Adds chunks to a BullMQ queue. */
export class ChunkQueue {
  readonly #redis: RedisConnection
  readonly #names: RedisNames
  readonly #logger: Logger
  #queue: Queue<Chunk> | undefined

  /** @param redis a connection that fails fast, and is given up when it stays silent */
  constructor(redis: RedisConnection, names: RedisNames, logger: Logger) {
    this.#redis = redis
    this.#names = names
    this.#logger = logger
    defineRecordedAdd(redis)
  }

  /**
   * Resolves once Redis has said that it has the chunk. An add whose answer was lost is tried again with the same job
   * id, so the chunk is in the queue once however often it was sent.
   *
   * @param deadlineMs a time on the clock of `performance.now()`
   * @throws OverloadedError at once when Redis has no memory left; the chunk is not in the queue
   * @throws QueueUnavailableError when Redis has not said so by the deadline
   */
  async add(chunkId: string, chunk: Chunk, deadlineMs: number): Promise<void> {
    await this.#untilAnswered(deadlineMs, async () => {
      await this.#usableQueue().add(chunkJobName, chunk, { jobId: chunkId })
    })
  }

  /**
   * Adds a chunk together with records: Redis has all of them or nothing. Without a chunk, the records alone. If any of
   * the records is there already, nothing is added. Trying again after a lost answer so finds the records that it has
   * stored itself: their texts must tell them from all others.
   *
   * @param records at least one
   * @param windowMs how long the records live
   * @param deadlineMs a time on the clock of `performance.now()`
   * @returns undefined when all was added; else what is stored under each record's name, null for nothing
   * @throws QueueUnavailableError when Redis has not answered by the deadline
   */
  addRecorded(
    chunkId: string,
    chunk: Chunk | undefined,
    { records, windowMs }: { readonly records: readonly QueueRecord[]; readonly windowMs: number },
    deadlineMs: number,
  ): Promise<readonly (string | null)[] | undefined> {
    return this.#untilAnswered(deadlineMs, async () => {
      const queue = this.#usableQueue()
      await queue.waitUntilReady()
      return addRecorded(this.#redis, queue, { chunkId, chunk, records, windowMs })
    })
  }

  /** Asks Redis again until it has answered, or until it is too late for an answer. */
  async #untilAnswered<T>(deadlineMs: number, ask: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await withDeadline(ask(), deadlineMs)
      } catch (error) {
        if (isOutOfMemory(error)) throw refusal(attempt, error)
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
    // These are the connection's, again on each queue; they are logged where it was made. The one that is not comes below.
    queue.on('error', () => undefined)
    // BullMQ asks Redis for its version once, and a queue for which that failed stays unusable.
    queue.waitUntilReady().catch((error: unknown) => {
      this.#queue = undefined
      this.#logger.warn({ err: error }, 'queue not opened')
    })
    return queue
  }
}

/**
 * Redis refuses the first write of BullMQ's script, so that nothing of the chunk is kept. It says so again until workers
 * have made room: there is no use in asking. Before version 7 the text is within an error of the script.
 */
function isOutOfMemory(error: unknown): error is Error {
  return error instanceof Error && /(^|-)OOM /.test(error.message)
}

/** What became of an earlier try is not known. */
function refusal(attempt: number, cause: Error): Error {
  return attempt === 1
    ? new OverloadedError('redis_memory', 'Redis has no memory left', { cause })
    : new QueueUnavailableError('Redis has no memory left, and did not confirm an earlier try', { cause })
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
