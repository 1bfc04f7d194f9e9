import { encodeChunk, type Chunk, QueueUnavailableError, type ShardedQueue } from '@sluice/queue'
import type { Rows } from '@sluice/row-scanner'
import { limits } from '@sluice/schema'
import type { Span } from '@sluice/traces'
import { OverloadedError } from '../overload/overloaded-error.ts'
import type { ChunkSpan, ChunkSpans } from '../traces/chunk-spans.ts'
import type { RequestOrigin } from '../traces/request-traces.ts'
import { AddPace } from './add-pace.ts'
import type { ChunkTrace, TracedRequest } from './chunk-trace.ts'
import { gatherIntervalMs, RowRate } from './row-rate.ts'

/** The limits of the writer. Sizes are those of rows before compression. */
export const chunkLimits = {
  /** More rows would only make recovery coarser. */
  rowsMax: 2_000,
  /** A chunk is compressed at once: 1 MB blocks the event loop for about 2 ms. One request may be larger. */
  bytesMax: 1_000_000,
  /**
   * Adds in flight with one shard. Each further shard allows one more, so that a shard that does not answer does not block the
   * others. With one add, Redis would be idle while the next chunk is packed. More adds only make chunks smaller.
   */
  addsInFlightMax: 3,
  /**
   * With several shards: while an add is in flight, the next one starts at the earliest this long after it, unless its chunk is full.
   * An add takes about 1 ms, so this is long enough to gather rows for one large chunk instead of a small one for each shard. It is
   * short enough that a shard that does not answer delays the others little.
   */
  overlapIntervalMs: 4,
  /** All rows that wait or are in flight: about a second of the highest load. Above it, requests are rejected. */
  bytesWaitingMax: 64_000_000,
  /** Time from a request's arrival at the writer to Redis' answer. The contract allows two seconds. */
  addDeadlineMs: 1_800,
} as const

// A request within its own limits must fit: each row adds the server's fields, and escapes may double the text.
if (chunkLimits.bytesWaitingMax < limits.bodyBytesMax * 4)
  throw new Error('bytesWaitingMax is too small for the largest request')

/**
 * The memory for one chunk. It holds a full chunk, and most requests that are larger than one. While Redis does not answer, many
 * small chunks can reserve up to six times the bytes that wait. The part that is not written to is not resident.
 */
const MEMORY_BYTES = 1.25 * chunkLimits.bytesMax
/** A steady load uses one or two. The others are for bursts. */
const SPARE_MEMORIES_MAX = 4

/** Rows whose request is not followed. */
const unknownOrigin: RequestOrigin = { id: '', span: null }

/** What follows requests into chunks. */
export interface ChunkFollowers {
  /** Undefined if requests are not logged. */
  readonly trace?: ChunkTrace | undefined
  /** Undefined if requests have no spans. */
  readonly spans?: ChunkSpans | undefined
}

/** The rows of the next chunk, as one text. */
class Gathering {
  rows = 0
  bytes = 0
  memory: Buffer
  /** Settles with its add. All requests of the chunk share this promise. */
  readonly written = Promise.withResolvers<void>()
  /** When its first request arrived. */
  readonly sinceMs: number
  /** Its requests. Empty unless they are logged. */
  readonly requests: TracedRequest[] = []
  /** The spans of its requests. Undefined while no request has one: without traces, a chunk costs no array and a request one branch. */
  spans: Span[] | undefined

  constructor(sinceMs: number, memory: Buffer) {
    this.sinceMs = sinceMs
    this.memory = memory
  }

  add<Scope>(rows: Rows<Scope>): void {
    const bytes = this.bytes + rows.byteLength
    if (bytes > this.memory.length) {
      const larger = Buffer.allocUnsafeSlow(bytes)
      larger.set(this.text)
      this.memory = larger
    }
    rows.copyTo(this.memory, this.bytes)
    this.rows += rows.count
    this.bytes = bytes
  }

  /** The rows, in the memory passed to the constructor unless they did not fit. */
  get text(): Buffer {
    return this.memory.subarray(0, this.bytes)
  }

  get isFull(): boolean {
    return this.rows >= chunkLimits.rowsMax || this.bytes >= chunkLimits.bytesMax
  }
}

/**
 * Gathers the rows of concurrent requests into chunks (group commit).
 *
 * - Idle (no add is in flight): a write waits until the end of the event loop's turn, so that writes that arrived in the same turn
 *   are sent with it.
 * - Busy (an add is in flight, or the next one must wait): writes gather, and are sent when this ends. If they fill a chunk, they are
 *   sent at once, up to `addsInFlightMax`. If there are several shards, they are also sent after `overlapIntervalMs`.
 * - Full (`bytesWaitingMax`): writes are rejected.
 *
 * Under low load a write costs one round trip; under high load chunks are large. A write must wait although no add is in flight only if
 * all processes together add more chunks than Redis should handle (`AddPace`), or if this process has very many rows
 * (`gatherIntervalMs`).
 */
export class ChunkWriter {
  readonly #queue: Pick<ShardedQueue, 'add'>
  readonly #pace: AddPace
  readonly #rowRate = new RowRate()
  readonly #makeId: () => string
  readonly #monotonicMs: () => number
  readonly #shards: number
  readonly #trace: ChunkTrace | undefined
  readonly #spans: ChunkSpans | undefined
  /** Chunks that are not sent yet: the last one gathers rows, the others are full. */
  #gatherings: Gathering[] = []
  /** Memory of packed chunks, for reuse: allocating a buffer of this size per chunk triggers ten major GCs per second. */
  readonly #spareMemories: Buffer[] = []
  #addsInFlight = 0
  #bytesWaiting = 0
  #turnScheduled = false
  /** Set while rows wait for the pace. */
  #pacer: NodeJS.Timeout | undefined
  #idle: (() => void)[] = []

  /**
   * @param makeId makes the job id of a chunk: unique, without colons
   * @param shards the number of shards behind `queue`
   * @param monotonicMs the clock of the queue's deadlines
   */
  constructor(
    queue: Pick<ShardedQueue, 'add' | 'addsPerS'>,
    makeId: () => string,
    shards = 1,
    monotonicMs: () => number = () => performance.now(),
    { trace, spans }: ChunkFollowers = {},
  ) {
    this.#queue = queue
    this.#pace = new AddPace(queue, monotonicMs)
    this.#makeId = makeId
    this.#shards = shards
    this.#monotonicMs = monotonicMs
    this.#trace = trace
    this.#spans = spans
  }

  /**
   * Resolves when Redis has the rows on disk.
   *
   * @param rows copied before this returns
   * @param origin only to follow the request
   * @throws OverloadedError at once if this process has no room; nothing was enqueued
   * @throws QueueFullError if Redis has no room; nothing was enqueued
   * @throws QueueUnavailableError if Redis did not answer in time; the rows may or may not be enqueued
   */
  async write<Scope>(rows: Rows<Scope>, origin: RequestOrigin = unknownOrigin): Promise<void> {
    if (this.#bytesWaiting + rows.byteLength > chunkLimits.bytesWaitingMax) {
      throw new OverloadedError('bytes_in_flight', 'too many bytes are waiting for Redis')
    }
    let gathering = this.#gatherings.at(-1)
    if (gathering === undefined || gathering.isFull) {
      gathering = new Gathering(
        this.#monotonicMs(),
        this.#spareMemories.pop() ?? Buffer.allocUnsafeSlow(MEMORY_BYTES),
      )
      this.#gatherings.push(gathering)
    }
    gathering.add(rows)
    if (this.#trace !== undefined) {
      const text = gathering.text.subarray(-rows.byteLength)
      gathering.requests.push(this.#trace.describe(origin.id, rows.count, text))
    }
    if (origin.span !== null) (gathering.spans ??= []).push(origin.span)
    this.#bytesWaiting += rows.byteLength
    this.#scheduleTurn()
    await gathering.written.promise
  }

  /** Resolves when all writes are settled. */
  async drain(): Promise<void> {
    if (this.#bytesWaiting > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  get bytesWaiting(): number {
    return this.#bytesWaiting
  }

  #scheduleTurn(): void {
    if (this.#turnScheduled) return
    this.#turnScheduled = true
    setImmediate(() => {
      this.#turnScheduled = false
      this.#sendDue()
    })
  }

  #sendDue(): void {
    for (let next = this.#gatherings[0]; next !== undefined; next = this.#gatherings[0]) {
      const addsMax = next.isFull ? chunkLimits.addsInFlightMax + this.#shards - 1 : this.#shards
      if (this.#addsInFlight >= addsMax || (!next.isFull && this.#isPaced())) return
      this.#gatherings.shift()
      this.#pace.start()
      this.#rowRate.record(next.rows, this.#monotonicMs())
      void this.#send(next)
    }
  }

  /** Whether the next add must wait. If so, sends when it need not. */
  #isPaced(): boolean {
    const overlapMs = this.#addsInFlight === 0 ? 0 : chunkLimits.overlapIntervalMs
    const waitMs = this.#pace.waitMs(Math.max(overlapMs, gatherIntervalMs(this.#rowRate.perS)))
    if (waitMs === 0) return false
    if (this.#pacer === undefined) {
      this.#pacer = setTimeout(() => {
        this.#pacer = undefined
        this.#sendDue()
      }, waitMs)
    }
    return true
  }

  #pack({ rows, text, memory }: Gathering, traceparent: string | undefined): Chunk {
    const chunk = encodeChunk(rows, text, traceparent)
    if (memory.length === MEMORY_BYTES && this.#spareMemories.length < SPARE_MEMORIES_MAX) {
      this.#spareMemories.push(memory)
    }
    return chunk
  }

  #startSpan(chunkId: string, { spans, sinceMs, rows, bytes }: Gathering): ChunkSpan | undefined {
    if (spans === undefined) return undefined
    return this.#spans?.start({ chunkId, sinceMs, rows, bytes, requests: spans })
  }

  async #send(gathering: Gathering): Promise<void> {
    const { bytes, written, sinceMs, requests } = gathering
    let chunkId = ''
    let span: ChunkSpan | undefined
    this.#addsInFlight += 1
    try {
      const deadlineMs = sinceMs + chunkLimits.addDeadlineMs
      if (this.#monotonicMs() >= deadlineMs) throw new QueueUnavailableError('Redis is too slow')
      chunkId = this.#makeId()
      span = this.#startSpan(chunkId, gathering)
      const shard = await this.#queue.add(chunkId, this.#pack(gathering, span?.traceparent), deadlineMs)
      this.#trace?.added(chunkId, requests)
      written.resolve()
      span?.ended('added', shard)
    } catch (error) {
      this.#trace?.failed(chunkId, requests, error)
      span?.failed(error)
      written.reject(error)
    } finally {
      this.#addsInFlight -= 1
      this.#bytesWaiting -= bytes
      if (this.#bytesWaiting === 0) for (const resolve of this.#idle.splice(0)) resolve()
      this.#sendDue()
    }
  }
}
