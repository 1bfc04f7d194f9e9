import {
  type NewChunk,
  type ChunkQueue,
  encodeChunk,
  type FoundRecord,
  type QueueRecord,
  QueueUnavailableError,
  type RecordLimits,
  ShardedQueue,
} from '@sluice/queue'
import type { Owned, Rows } from '@sluice/row-scanner'
import { BlockPacker } from '@sluice/rows'
import type { Span, Traces } from '@sluice/traces'
import { retryAfter } from '../problems.ts'
import { ChunkSpan } from './chunk-span.ts'

/** The limits of the writer. Sizes are of rows before compression. */
export const chunkLimits = {
  /** With half as many, a saturated API costs 4 % more. More rows would only make recovery coarser. */
  rowsMax: 4_000,
  /** One request may be larger. */
  bytesMax: 1_500_000,
  /**
   * Redis serves no other client while it stores a chunk with records: 2 ms for this number, and 6 ms if each record is of another
   * project.
   */
  recordsMax: 500,
  /**
   * Adds in flight with one shard. Each further shard allows one more, so that a shard that does not reply does not block the
   * others. With one add, Redis would be idle while the next chunk is packed. More adds only make chunks smaller.
   */
  addsInFlightMax: 3,
  /**
   * While another add is in flight, or above `fastRowsPerS`, an add starts at the earliest this long after the last one, unless its chunk
   * is full. An add takes about 1 ms, so this gathers one large chunk instead of several small ones, and a shard that does not
   * reply delays the others little.
   */
  intervalMs: 4,
  /**
   * A chunk costs all processes together about a millisecond, whatever its size. Above this rate, chunks of several hundred rows are worth
   * more than a response that is some milliseconds earlier: at 60,000 rows per second they save a fifth of the CPU.
   */
  fastRowsPerS: 30_000,
  /** `intervalMs` above this rate, unless all clients wait. */
  fastIntervalMs: 20,
  /** Time from a request's arrival at the writer to Redis' reply. The contract allows two seconds. */
  addDeadlineMs: 1_800,
} as const

// The script passes the names of the records to Redis on Lua's stack, which has room for 8,000 values.
if (chunkLimits.recordsMax > 7_000) throw new Error('recordsMax is too large for the stack of Lua')

/**
 * The memory for one chunk. It holds a full chunk, and most requests that are larger than one. While Redis does not reply, many
 * small chunks can reserve up to six times the bytes that wait. The part that is not written to is not resident.
 */
const MEMORY_BYTES = 1.25 * chunkLimits.bytesMax
/** A steady load uses one or two. The others are for bursts. */
const SPARE_MEMORIES_MAX = 4
/** A timer takes at least 1 ms. A shorter wait is not worth it. */
const WAIT_MIN_MS = 0.5
/** The rate of rows is a mean over this time. */
const RATE_MS = 100
/** The largest number of writes that waited at once is forgotten over this time. */
const MOST_WAITING_MS = 1_000

export interface ChunkWriterOptions {
  readonly queues: readonly Pick<ChunkQueue, 'add'>[]
  /** Makes the job id of a chunk: unique, without colons. */
  readonly makeId: () => string
  /** How long a record lives, and how many a project has at a time. Each shard gets an equal share. */
  readonly records: { readonly windowMs: number; readonly perProjectMax: number }
  readonly monotonicMs: () => number
  /** Undefined if traces are off: then a chunk costs no object and a request one branch. */
  readonly traces?: Traces | undefined
}

/** The rows of a request, and the record to be stored with them. */
export interface RecordedWrite extends Pick<QueueRecord, 'name' | 'quota'> {
  readonly shard: number
  /** The content of the record. No other write has the same. */
  readonly record: string
  readonly rows: Rows<Owned>
}

/** What one add stores, all of it or nothing: the rows of a chunk, and records. */
class Gathering {
  writes = 0
  rows = 0
  bytes = 0
  /** Begins with the blocks of the rows. The one passed to the constructor, unless they did not fit. */
  memory: Buffer
  readonly records: QueueRecord[] = []
  /** Settles with its add, for all its requests. Undefined if everything was stored; otherwise what Redis found for each record. */
  readonly stored = Promise.withResolvers<readonly FoundRecord[] | undefined>()
  /** When its first request arrived. */
  readonly sinceMs: number
  /** Takes the requests of this gathering that were not stored because of the records of others. No other request joins it. */
  retry: Gathering | undefined
  readonly isRetry: boolean
  readonly span: ChunkSpan | undefined

  constructor(sinceMs: number, memory: Buffer, isRetry: boolean, span: ChunkSpan | undefined) {
    this.sinceMs = sinceMs
    this.memory = memory
    this.isRetry = isRetry
    this.span = span
  }

  add<Scope>(rows: Rows<Scope>): void {
    const bytes = this.bytes + rows.byteLength
    if (bytes > this.memory.length) {
      const larger = Buffer.allocUnsafeSlow(bytes)
      larger.set(this.memory.subarray(0, this.bytes))
      this.memory = larger
    }
    rows.copyTo(this.memory, this.bytes)
    this.writes += 1
    this.rows += rows.count
    this.bytes = bytes
  }

  /** Whether it takes no further requests, and is sent without waiting for more. */
  get isClosed(): boolean {
    const { rowsMax, bytesMax, recordsMax } = chunkLimits
    return this.isRetry || this.rows >= rowsMax || this.bytes >= bytesMax || this.records.length >= recordsMax
  }
}

/** The adds to one shard, or to any shard. */
class Lane {
  /** Undefined for any shard. */
  readonly shard: number | undefined
  /** How many shards it may add to. */
  readonly shards: number
  /** Chunks that are not sent yet: the last one gathers rows, the others are closed. */
  readonly gatherings: Gathering[] = []
  addsInFlight = 0
  startedMs = Number.NEGATIVE_INFINITY
  isTurnScheduled = false
  /** Set while rows wait for the interval between two adds. */
  pacer: NodeJS.Timeout | undefined

  constructor(shard: number | undefined, shards: number) {
    this.shard = shard
    this.shards = shards
  }
}

/**
 * Gathers the rows of concurrent requests into chunks (group commit): rows without records for any shard, rows with records for the
 * shard of the records. Each of these lanes is in one state:
 *
 * - Idle (no add is in flight): a write waits for the end of the event loop's iteration, so that writes of the same iteration are
 *   sent with it.
 * - Busy (an add is in flight, or the next one must wait for `intervalMs`): writes gather, and are sent when this ends. If they close a
 *   chunk, they are sent at once, up to `addsInFlightMax`. If there are several shards, they are also sent after `intervalMs`.
 *
 * Under low load a write costs one round trip; under high load chunks are large. If as many writes wait as at any time in the last second,
 * every client waits for a response and sends nothing. Then rows do not wait for more.
 *
 * A chunk and its records are one step in Redis, which stores nothing if any of the records exists already, or has no room in its quota.
 * Then these writes are settled, and the others are sent again as another chunk. A write whose record is in flight waits for the result
 * of the first. A write without rows only looks its record up: the response to it follows from its body, and it has nothing that could be
 * stored twice.
 *
 * The budget of bodies bounds the rows that wait: a request holds them until its response.
 */
export class ChunkWriter {
  readonly #options: ChunkWriterOptions
  readonly #queue: ShardedQueue
  readonly #recordLimits: RecordLimits
  readonly #anyShard: Lane
  readonly #lanes: readonly Lane[]
  /** The result of each record that waits or is being stored, by its name. */
  readonly #inFlight = new Map<string, Promise<string>>()
  /** Memory of packed chunks, for reuse: allocating a buffer of this size per chunk triggers ten major GCs per second. */
  readonly #spareMemories: Buffer[] = []
  readonly #packer = new BlockPacker()
  /** Writes without a result. */
  #waiting = 0
  #mostWaiting = 0
  /** The mean of the rows that were sent, at the time of the last add. */
  #rowsPerS = 0
  #sentMs = Number.NEGATIVE_INFINITY

  constructor(options: ChunkWriterOptions) {
    this.#options = options
    const { queues, records, monotonicMs } = options
    this.#queue = new ShardedQueue(queues, monotonicMs)
    const recordsMax = Math.floor(records.perProjectMax / queues.length)
    this.#recordLimits = { windowMs: records.windowMs, recordsMax }
    this.#anyShard = new Lane(undefined, queues.length)
    this.#lanes = queues.map((_queue, shard) => new Lane(shard, 1))
  }

  /**
   * Resolves when Redis has the rows on disk. They are copied before this returns.
   *
   * @throws QueueFullError if Redis has no room; nothing was enqueued
   * @throws QueueUnavailableError if Redis did not reply in time; the rows may or may not be enqueued
   */
  write<Scope>(rows: Rows<Scope>, span: Span | null = null): Promise<unknown> {
    const gathering = this.#openGathering(this.#anyShard)
    this.#gather(this.#anyShard, gathering, rows, span)
    // All requests of a chunk wait for the same promise.
    return gathering.stored.promise
  }

  /**
   * Resolves with the record that Redis has on disk under the name: the record of this write, with its rows; or the record of an earlier
   * write, in which case nothing of this one is stored. The record of a write without rows is returned, but not stored.
   *
   * @throws Problem `too_many_idempotency_keys` if the project has no room for the record; nothing was enqueued
   * @throws QueueFullError if Redis has no room; nothing was enqueued
   * @throws QueueUnavailableError if Redis did not reply in time; rows and record are both stored, or both not
   */
  async writeOnce(write: RecordedWrite, span: Span | null = null): Promise<string> {
    const inFlight = this.#inFlight.get(write.name)
    if (inFlight !== undefined) return inFlight
    const lane = this.#lanes[write.shard]
    if (lane === undefined) throw new RangeError(`there is no shard ${write.shard}`)
    const held = this.#writeRecorded(lane, write, span)
    this.#inFlight.set(write.name, held)
    try {
      return await held
    } finally {
      this.#inFlight.delete(write.name)
    }
  }

  async #writeRecorded(
    lane: Lane,
    { name, quota, record, rows }: RecordedWrite,
    span: Span | null,
  ): Promise<string> {
    const own = { name, quota, text: rows.count === 0 ? undefined : record }
    let gathering = this.#openGathering(lane)
    for (;;) {
      const index = gathering.records.push(own) - 1
      this.#gather(lane, gathering, rows, span)
      const found = await gathering.stored.promise
      if (found === undefined) return record
      const result = found[index]
      if (typeof result === 'string') return result
      if (typeof result === 'number')
        throw retryAfter('too_many_idempotency_keys', Math.max(1, Math.ceil(result / 1_000)))
      gathering = this.#retryOf(lane, gathering)
    }
  }

  #openGathering(lane: Lane): Gathering {
    const last = lane.gatherings.at(-1)
    if (last !== undefined && !last.isClosed) return last
    const opened = this.#newGathering(this.#options.monotonicMs(), false)
    lane.gatherings.push(opened)
    return opened
  }

  /** The gathering of all writes that are left of a failed one. They join it in one iteration of the event loop. It is sent at the end. */
  #retryOf(lane: Lane, failed: Gathering): Gathering {
    if (failed.retry !== undefined) return failed.retry
    failed.retry = this.#newGathering(failed.sinceMs, true)
    lane.gatherings.unshift(failed.retry)
    return failed.retry
  }

  #newGathering(sinceMs: number, isRetry: boolean): Gathering {
    const memory = this.#spareMemories.pop() ?? Buffer.allocUnsafeSlow(MEMORY_BYTES)
    const { traces } = this.#options
    return new Gathering(sinceMs, memory, isRetry, traces && new ChunkSpan(traces))
  }

  #gather<Scope>(lane: Lane, gathering: Gathering, rows: Rows<Scope>, span: Span | null): void {
    gathering.add(rows)
    this.#waiting += 1
    this.#mostWaiting = Math.max(this.#waiting, this.#mostWaiting)
    if (span !== null && rows.count > 0) gathering.span?.gather(span)
    this.#scheduleTurn(lane)
  }

  #scheduleTurn(lane: Lane): void {
    if (lane.isTurnScheduled) return
    lane.isTurnScheduled = true
    setImmediate(() => {
      lane.isTurnScheduled = false
      this.#sendDue(lane)
    })
  }

  #sendDue(lane: Lane): void {
    for (let next = lane.gatherings[0]; next !== undefined; next = lane.gatherings[0]) {
      const isDue = next.isClosed || (this.#isFast && this.#waiting >= this.#mostWaiting)
      const addsMax = isDue ? chunkLimits.addsInFlightMax + lane.shards - 1 : lane.shards
      if (lane.addsInFlight >= addsMax || (!isDue && this.#isPaced(lane))) return
      lane.gatherings.shift()
      lane.startedMs = this.#options.monotonicMs()
      this.#countRows(next.rows, lane.startedMs)
      void this.#send(lane, next)
    }
  }

  /** Whether the next add must wait. If so, sends when it need not. */
  #isPaced(lane: Lane): boolean {
    const { intervalMs, fastIntervalMs } = chunkLimits
    if (lane.addsInFlight === 0 && !this.#isFast) return false
    const waitMs = lane.startedMs + (this.#isFast ? fastIntervalMs : intervalMs) - this.#options.monotonicMs()
    if (waitMs < WAIT_MIN_MS) return false
    lane.pacer ??= setTimeout(() => {
      lane.pacer = undefined
      this.#sendDue(lane)
    }, waitMs)
    return true
  }

  get #isFast(): boolean {
    return this.#rowsPerS >= chunkLimits.fastRowsPerS
  }

  #countRows(rows: number, nowMs: number): void {
    const sinceMs = nowMs - this.#sentMs
    this.#rowsPerS = this.#rowsPerS * Math.exp(-sinceMs / RATE_MS) + rows * (1_000 / RATE_MS)
    this.#mostWaiting *= Math.exp(-sinceMs / MOST_WAITING_MS)
    this.#sentMs = nowMs
  }

  async #send(lane: Lane, gathering: Gathering): Promise<void> {
    const { span, records, sinceMs, stored } = gathering
    lane.addsInFlight += 1
    try {
      // Each attempt of a write has a new id, so that two different chunks never have the same id.
      const chunkId = this.#options.makeId()
      const chunk = await this.#pack(gathering, span?.sent(chunkId, gathering))
      const deadlineMs = sinceMs + chunkLimits.addDeadlineMs
      // A shard that gets it would count as failed.
      if (this.#options.monotonicMs() >= deadlineMs) throw new QueueUnavailableError('Redis is too slow')
      const recorded = { records, recordLimits: this.#recordLimits }
      const { shard, found } = await this.#queue.addTo(lane.shard, chunkId, chunk, deadlineMs, recorded)
      stored.resolve(found)
      span?.answered(found === undefined, shard)
    } catch (error) {
      span?.failed(error)
      stored.reject(error)
    } finally {
      lane.addsInFlight -= 1
      this.#waiting -= gathering.writes
      this.#sendDue(lane)
    }
  }

  async #pack(
    { rows, bytes, memory }: Gathering,
    traceparent: string | undefined,
  ): Promise<NewChunk | undefined> {
    if (rows === 0) return undefined
    const { memory: spare, ...packed } = await this.#packer.pack(memory, bytes)
    if (spare.length === MEMORY_BYTES && this.#spareMemories.length < SPARE_MEMORIES_MAX)
      this.#spareMemories.push(spare)
    return encodeChunk(packed, traceparent)
  }
}
