import { type Chunk, encodeChunk, limits } from '@sluice/schema'
import { OverloadedError } from '../overload/overloaded-error.ts'
import { QueueUnavailableError, type ChunkQueue } from './chunk-queue.ts'

/** The writer's limits. Sizes are of rows, before compression. */
export const chunkLimits = {
  /** Past some 1,000 rows a chunk's own cost is below 1 µs a row; more only makes recovery coarser. */
  rowsMax: 2_000,
  /** One chunk is compressed in one go: 1 MB keeps the event loop for about 2 ms. One request may be larger. */
  bytesMax: 1_000_000,
  /**
   * Adds under way; with several queues one more for each, so that one that does not answer keeps nobody from the others.
   * One would leave Redis idle while the next chunk is packed; more only splits the chunks.
   */
  addsInFlightMax: 3,
  /**
   * From the start of one add to that of the next, unless a chunk is full. An add costs the API, Redis and the worker
   * together about 1 ms of CPU whatever it holds, so that hundreds a second of some 30 rows were half of the cost of a
   * single entry. Under low load nobody waits: the last add is longer ago than this.
   */
  addIntervalMs: 4,
  /** All that waits or is under way: about a second of the highest load. Over it, requests are refused. */
  bytesWaitingMax: 64_000_000,
  /** From a request's arrival at the writer to Redis' answer, ms: within the two seconds that the contract gives. */
  addDeadlineMs: 1_800,
} as const

// A request that is within its own limits must fit: each row adds the server's fields, escapes may double the text.
if (chunkLimits.bytesWaitingMax < limits.bodyBytesMax * 4)
  throw new Error('one request could never be accepted')

/**
 * A chunk and most of the requests that make it full. While Redis does not answer, chunks of many short rows reserve up to
 * six times of what waits; what is not written to is not resident.
 */
const MEMORY_BYTES = 1.25 * chunkLimits.bytesMax
/** A steady load uses one or two; the rest is for bursts. */
const SPARE_MEMORIES_MAX = 4

/** What gathers for the next chunk, as one text. */
class Gathering {
  rows = 0
  bytes = 0
  memory: Buffer
  /** Settles with its add: all who wait for it share one promise. */
  readonly written = Promise.withResolvers<void>()
  /** When its first request came. */
  readonly sinceMs: number

  constructor(sinceMs: number, memory: Buffer) {
    this.sinceMs = sinceMs
    this.memory = memory
  }

  add(rows: number, text: Buffer): void {
    const bytes = this.bytes + text.length
    if (bytes > this.memory.length) {
      const larger = Buffer.allocUnsafeSlow(bytes)
      larger.set(this.text)
      this.memory = larger
    }
    this.memory.set(text, this.bytes)
    this.rows += rows
    this.bytes = bytes
  }

  /** The rows, in the memory that it was given unless they did not fit. */
  get text(): Buffer {
    return this.memory.subarray(0, this.bytes)
  }

  get isFull(): boolean {
    return this.rows >= chunkLimits.rowsMax || this.bytes >= chunkLimits.bytesMax
  }
}

/**
 * Gathers the rows of concurrent requests into chunks: group commit.
 *
 * Idle (nothing is under way, or on one of several queues) → a write waits for the end of the event loop's turn, for
 * those that arrived with it, and is sent. Busy (up to `addsInFlightMax` adds under way, or one was started less than
 * `addIntervalMs` ago) → writes gather, and are sent when that is over, or when they fill a chunk and an add is free.
 * Full (`bytesWaitingMax`) → writes are refused. Low load so gets the latency of one round trip, and high load gets big chunks.
 */
export class ChunkWriter {
  readonly #queue: Pick<ChunkQueue, 'add'>
  readonly #makeId: () => string
  readonly #now: () => number
  readonly #queues: number
  /** Chunks in the making: the last one gathers, those before it are full. */
  #gatherings: Gathering[] = []
  /**
   * Memory of chunks that are packed, to be used again: Buffers of this size, made anew for each chunk, have V8 look
   * through the whole heap ten times a second.
   */
  readonly #spareMemories: Buffer[] = []
  #addsInFlight = 0
  #bytesWaiting = 0
  #turnScheduled = false
  #lastAddMs = Number.NEGATIVE_INFINITY
  /** Set while what gathers waits for its turn by the clock. */
  #pacer: NodeJS.Timeout | undefined
  #idle: (() => void)[] = []

  /**
   * @param makeId makes the job id of a chunk: unique, without colons
   * @param queues how many queues `queue` stands for
   * @param now the clock of `performance.now()`, which the queue's deadlines are on
   */
  constructor(
    queue: Pick<ChunkQueue, 'add'>,
    makeId: () => string,
    queues = 1,
    now: () => number = () => performance.now(),
  ) {
    this.#queue = queue
    this.#makeId = makeId
    this.#queues = queues
    this.#now = now
  }

  /**
   * Resolves once Redis has the rows on disk.
   *
   * @param rows how many rows `text` holds, each a line in UTF-8
   * @param text copied before this returns
   * @throws OverloadedError when there is no room: at once for that of this process, later for Redis'; nothing was enqueued
   * @throws QueueUnavailableError when Redis did not confirm in time; the rows may or may not be enqueued
   */
  async write(rows: number, text: Buffer): Promise<void> {
    if (this.#bytesWaiting + text.length > chunkLimits.bytesWaitingMax) {
      throw new OverloadedError('bytes_in_flight', 'too much is waiting for Redis')
    }
    let gathering = this.#gatherings.at(-1)
    if (gathering === undefined || gathering.isFull) {
      gathering = new Gathering(
        this.#now(),
        this.#spareMemories.pop() ?? Buffer.allocUnsafeSlow(MEMORY_BYTES),
      )
      this.#gatherings.push(gathering)
    }
    gathering.add(rows, text)
    this.#bytesWaiting += text.length
    this.#scheduleTurn()
    await gathering.written.promise
  }

  /** Resolves when all that was written has been confirmed or refused. */
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
      this.#sendWhatIsDue()
    })
  }

  #sendWhatIsDue(): void {
    for (let next = this.#gatherings[0]; next !== undefined; next = this.#gatherings[0]) {
      const addsMax = next.isFull ? chunkLimits.addsInFlightMax + this.#queues - 1 : this.#queues
      if (this.#addsInFlight >= addsMax || (!next.isFull && this.#isPaced())) return
      this.#gatherings.shift()
      this.#lastAddMs = this.#now()
      void this.#send(next)
    }
  }

  /** Whether the last add is too recent; if so, comes back when it is not. */
  #isPaced(): boolean {
    const waitMs = this.#lastAddMs + chunkLimits.addIntervalMs - this.#now()
    if (waitMs <= 0) return false
    if (this.#pacer === undefined) {
      this.#pacer = setTimeout(() => {
        this.#pacer = undefined
        this.#sendWhatIsDue()
      }, waitMs)
    }
    return true
  }

  #pack({ rows, text, memory }: Gathering): Chunk {
    const chunk = encodeChunk(rows, text)
    if (memory.length === MEMORY_BYTES && this.#spareMemories.length < SPARE_MEMORIES_MAX) {
      this.#spareMemories.push(memory)
    }
    return chunk
  }

  async #send(gathering: Gathering): Promise<void> {
    const { bytes, written, sinceMs } = gathering
    this.#addsInFlight += 1
    try {
      const deadlineMs = sinceMs + chunkLimits.addDeadlineMs
      if (this.#now() >= deadlineMs) throw new QueueUnavailableError('Redis is behind')
      await this.#queue.add(this.#makeId(), this.#pack(gathering), deadlineMs)
      written.resolve()
    } catch (error) {
      written.reject(error)
    } finally {
      this.#addsInFlight -= 1
      this.#bytesWaiting -= bytes
      if (this.#bytesWaiting === 0) for (const resolve of this.#idle.splice(0)) resolve()
      this.#sendWhatIsDue()
    }
  }
}
