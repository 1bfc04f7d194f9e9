import {
  type Backoff,
  backoffMs,
  type DurableRedis,
  type MonotonicClock,
  plainRedis,
  processClock,
  type RedisConnection,
  TimeoutError,
  withTimeout,
} from '@sluice/runtime'
import type { Queue } from 'bullmq'
import { bullmqQueue } from './bullmq-internals.ts'
import { type ChunkData, type NewChunk, withReceiptFrom } from './chunk.ts'
import type { QueueNames } from './queue-names.ts'
import {
  type Add,
  ADD_RECORDED,
  type AddedRecords,
  type AddReply,
  type AddScript,
  type FoundRecord,
  prepareAdd,
  QueueFullError,
  QueueUnavailableError,
} from './recorded-add.ts'
import { shardRecorder } from './shards.ts'

const RETRY: Backoff = { baseMs: 25, maxMs: 250 }

/** A measurement of Redis' clock counts only if its reply arrived within this time. Redis stores an add at most this long after its deadline. */
const ROUND_TRIP_MAX_MS = 2_000

/** The clocks of this process and of Redis drift apart, and in a cluster another server may take over the queue unnoticed. */
const OFFSET_MAX_AGE_MS = 10_000

/** Called when a chunk was added, or its add has failed. After a failure, Redis may have the chunk. */
export type AddObserver = (chunk: NewChunk, durationMs: number, isAdded: boolean) => void

interface PendingAdd extends Add {
  chunk: NewChunk | undefined
  readonly deadlineMs: number
  /**
   * The last moment at which Redis may store the add, by Redis' clock. Infinity while it is certain that Redis has stored nothing. A later
   * attempt never gets a later fence, so it does not matter whether the process' clock stood still meanwhile.
   */
  fenceMs: number
}

/**
 * The producer's side of one shard's queue, as invariants 1 and 13 of docs/exactly-once.md say. No add is stored after its deadline: a late
 * copy would find the records of its chunk expired, and its rows would be stored twice. Before the first add on a connection, a shard other
 * than the first one is recorded as in use. Otherwise workers with a lower number of shards would not find its chunks.
 */
export class ChunkQueue {
  readonly #redis: RedisConnection
  readonly #addScript: AddScript
  readonly #stopListening: () => void
  readonly #names: QueueNames
  readonly #clock: MonotonicClock
  readonly #onAdd: AddObserver
  readonly #queue: Queue<ChunkData>
  /**
   * How far Redis' clock is ahead: measured on the current connection, and again by each reply to an add. It is never too small: it assumes that Redis read its
   * clock when the command was sent. It is too large by at most the time that the reply took.
   */
  #offset: { readonly ms: number; readonly measuredAtMs: number } | undefined
  readonly #recordShards: ReturnType<typeof shardRecorder>
  /**
   * Known when the shard was recorded as in use on the current connection. Readers who do not know of the shard may have all entries received
   * by this time. The first shard needs no record.
   */
  #completeMs: number | undefined

  /**
   * @param redis a connection that fails fast and has a command timeout
   * @param durable what the adds run on
   */
  constructor(
    redis: RedisConnection,
    names: QueueNames,
    {
      durable = plainRedis(redis),
      clock = processClock,
      onAdd = () => undefined,
    }: { durable?: DurableRedis; clock?: MonotonicClock; onAdd?: AddObserver } = {},
  ) {
    this.#onAdd = onAdd
    this.#redis = redis
    this.#names = names
    this.#queue = bullmqQueue(redis, names)
    this.#clock = clock
    this.#recordShards = shardRecorder(durable, names)
    this.#addScript = durable.script(ADD_RECORDED)
    this.#stopListening = durable.onClose(this.#forgetConnection)
  }

  /**
   * Adds a chunk with records: Redis stores all of them or nothing. Nothing is stored if any of the records exists already, or has no room in
   * its quota. A retry finds its own records: each record's value must be unique.
   *
   * @param chunk undefined to store no chunk
   * @param deadlineMs a time on the clock of `performance.now()`
   * @returns undefined if everything was stored; otherwise what Redis found for each record
   * @throws QueueFullError at once when Redis is out of memory; the chunk is not in the queue
   * @throws QueueUnavailableError when Redis has not confirmed by the deadline
   */
  async add(
    chunkId: string,
    chunk: NewChunk | undefined,
    deadlineMs: number,
    recorded: AddedRecords = {},
  ): Promise<readonly FoundRecord[] | undefined> {
    const startedMs = this.#clock.nowMs()
    const observe = (isAdded: boolean): void => {
      if (chunk !== undefined) this.#onAdd(chunk, this.#clock.nowMs() - startedMs, isAdded)
    }
    try {
      const found = await this.#addUntil({ chunkId, chunk, ...recorded, deadlineMs, fenceMs: Infinity })
      if (found === undefined) observe(true)
      return found
    } catch (error) {
      observe(false)
      throw error
    }
  }

  async #addUntil(add: PendingAdd): Promise<AddReply['found']> {
    const { deadlineMs } = add
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await withTimeout(this.#attempt(add), deadlineMs - this.#clock.nowMs())
      } catch (error) {
        // From the second attempt on, an earlier one may have succeeded although its reply was lost.
        if (isOutOfMemory(error))
          throw attempt === 1
            ? new QueueFullError('Redis is out of memory', { cause: error })
            : new QueueUnavailableError('Redis is out of memory and has not replied before', { cause: error })
        const waitMs = backoffMs(attempt, RETRY, Math.random())
        if (error instanceof TimeoutError || this.#clock.nowMs() + waitMs >= deadlineMs) {
          throw new QueueUnavailableError('Redis did not confirm the chunk in time', { cause: error })
        }
        await this.#clock.sleep(waitMs)
      }
    }
  }

  async #attempt(add: PendingAdd): Promise<AddReply['found']> {
    if (!this.isConnected) throw new Error(`the connection to Redis is ${this.#redis.status}`)
    const { shard } = this.#names
    this.#completeMs ??= shard === 0 ? -1 : (await this.#recordShards(shard + 1)).completeMs
    const recorded = { ...add, completeMs: this.#completeMs }
    const send = await prepareAdd(this.#addScript, this.#queue, this.#names, recorded)
    const offsetMs = this.#freshOffsetMs() ?? (await this.#measureOffset())
    if (this.#clock.nowMs() >= add.deadlineMs) throw new TimeoutError('the deadline has passed')
    const earlierFenceMs = add.fenceMs
    add.fenceMs = Math.min(earlierFenceMs, add.deadlineMs + offsetMs)
    const { isLate, found, admittedMs } = await this.#send(send, add.fenceMs)
    if (admittedMs !== undefined && add.chunk !== undefined) {
      add.chunk = withReceiptFrom(admittedMs, add.chunk)
      return this.#attempt(add)
    }
    if (!isLate) return found
    if (earlierFenceMs !== Infinity) throw new TimeoutError('the deadline has passed by the clock of Redis')
    // Only if Redis' clock was set, or another server has taken over: the next attempt uses the new offset.
    add.fenceMs = Infinity
    throw new Error('the clock of Redis has changed')
  }

  #freshOffsetMs(): number | undefined {
    if (this.#offset === undefined) return undefined
    const ageMs = this.#clock.nowMs() - this.#offset.measuredAtMs
    return ageMs < OFFSET_MAX_AGE_MS ? this.#offset.ms : undefined
  }

  async #measureOffset(): Promise<number> {
    // An add of nothing, with any fence in the past. It reads the clock of the Redis that has the queue, in a cluster too.
    await this.#send(await prepareAdd(this.#addScript, this.#queue, this.#names, { chunkId: 'none' }), 0)
    const offsetMs = this.#freshOffsetMs()
    if (offsetMs === undefined) throw new Error('Redis answered too slowly to measure its clock')
    return offsetMs
  }

  /** Every reply measures the offset again. */
  async #send(send: (fenceMs: number) => Promise<AddReply>, fenceMs: number): Promise<AddReply> {
    const sentAtMs = this.#clock.nowMs()
    try {
      const reply = await send(fenceMs)
      const repliedAtMs = this.#clock.nowMs()
      // A process that was suspended before it sent the command measures an offset that is too large.
      this.#offset =
        repliedAtMs - sentAtMs > ROUND_TRIP_MAX_MS
          ? undefined
          : { ms: reply.redisMs - sentAtMs, measuredAtMs: repliedAtMs }
      return reply
    } catch (error) {
      // In a cluster, another server may have the queue now.
      this.#offset = undefined
      throw error
    }
  }

  get isConnected(): boolean {
    return this.#redis.status === 'ready'
  }

  async close(): Promise<void> {
    this.#stopListening()
    await this.#queue.close()
  }

  /** The next connection may lead to another Redis, with another clock and other data. */
  readonly #forgetConnection = (): void => {
    this.#offset = undefined
    this.#completeMs = undefined
  }
}

/**
 * Redis rejects the first write of BullMQ's script, so nothing of the chunk is stored. Until workers have freed memory, a retry is useless.
 * Before Redis 7 the code is inside the message of a script error.
 */
function isOutOfMemory(error: unknown): error is Error {
  return error instanceof Error && /(^|-)OOM /.test(error.message)
}
