import { type ChunkQueue, encodeChunk, QueueUnavailableError, type RecordLimits } from '@sluice/queue'
import type { Owned, Rows } from '@sluice/row-scanner'
import { limits } from '@sluice/schema'
import type { Span } from '@sluice/traces'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { AddPace } from '../chunks/add-pace.ts'
import type { ChunkTrace } from '../chunks/chunk-trace.ts'
import { type ChunkFollowers, chunkLimits } from '../chunks/chunk-writer.ts'
import { OverloadedError } from '../overload/overloaded-error.ts'
import type { ChunkSpan, ChunkSpans } from '../traces/chunk-spans.ts'

/** The limits of the writer. A commit has the limits and the deadline of a chunk: see `chunkLimits`. */
export const idempotentLimits = {
  /**
   * Redis serves no other client while it stores a commit: 2 ms for this number of records, and 6 ms if each is of another project.
   */
  recordsPerCommitMax: 500,
  /** Bytes of all rows that wait or are in flight: half of the limit of the writer without keys. */
  bytesWaitingMax: 32_000_000,
  /** More than a second of the highest load in single entries. Requests without a row have no bytes to count. */
  recordsWaitingMax: 10_000,
} as const

// A request within its own limits must fit, as in the writer without keys.
if (idempotentLimits.bytesWaitingMax < limits.bodyBytesMax * 4)
  throw new Error('bytesWaitingMax is too small for the largest request')
// The script passes the names of the records to Redis on Lua's stack, which has room for 8,000 values.
if (idempotentLimits.recordsPerCommitMax > 7_000)
  throw new Error('recordsPerCommitMax is too large for the stack of Lua')

/** The project has no room for another record. Nothing of the write was stored. */
export class RecordQuotaError extends Error {
  override name = 'RecordQuotaError'
  /** After this time, one of the project's records expires. */
  readonly waitMs: number

  constructor(waitMs: number) {
    super('the quota of idempotency records is used up')
    this.waitMs = waitMs
  }
}

/** The rows of a request, and the record to be stored with them. */
export interface RecordedWrite {
  /** The index of the queue for the rows. */
  readonly shard: number
  /** The Redis key of the record, in the hash slot of that queue. */
  readonly name: string
  /** The Redis key of the quota of the project, in the same slot. */
  readonly quota: string
  /** The text of the record. No other write has the same. */
  readonly record: string
  readonly rows: Rows<Owned>
  /** Only to follow the request, as is its span. */
  readonly requestId: string
  readonly span?: Span | null
}

/** The writes to one queue. */
interface Lane {
  readonly queue: Pick<ChunkQueue, 'addRecorded'>
  readonly pace: AddPace
  /** Writes that are not in a commit yet, in the order of their arrival. */
  readonly gathered: Waiting[]
  committing: Promise<void> | undefined
}

interface Waiting extends RecordedWrite {
  readonly sinceMs: number
  readonly resolve: (held: string) => void
  readonly reject: (error: unknown) => void
}

/**
 * Gathers requests with idempotency keys, and commits their rows and records together: group commit, for each queue separately.
 *
 * Idle → a write waits for the end of the event loop's turn, for others that arrived with it. Committing (a commit is in flight, or
 * the pace makes the next one wait) → writes gather. A commit whose records are all new is one step in Redis.
 * If some exist already, their writes are settled with the existing records, and the rest is committed again. The same applies to
 * writes of a project whose quota is used up: they are rejected. A write whose record is already in flight is not written: it gets
 * the result of the first. A write without rows only looks its record up: the answer to it follows from its body, and it has nothing
 * that could be stored twice.
 */
export class IdempotentWriter {
  readonly #lanes: readonly Lane[]
  readonly #makeId: () => string
  readonly #recordLimits: RecordLimits
  readonly #trace: ChunkTrace | undefined
  readonly #spans: ChunkSpans | undefined
  /** The result of each record that waits or is being committed, by its name. */
  readonly #inFlight = new Map<string, Promise<string>>()
  #bytesWaiting = 0

  /**
   * @param makeId makes the job id of a chunk: unique, without colons
   * @param windowMs the lifetime of a record
   * @param recordsPerProjectMax how many records a project has at a time; each queue gets an equal share
   */
  constructor(
    queues: readonly Pick<ChunkQueue, 'addRecorded' | 'addsPerS'>[],
    makeId: () => string,
    {
      windowMs,
      recordsPerProjectMax,
      trace,
      spans,
    }: { windowMs: number; recordsPerProjectMax: number } & ChunkFollowers,
  ) {
    this.#lanes = queues.map((queue) => ({
      queue,
      pace: new AddPace(queue, () => performance.now()),
      gathered: [],
      committing: undefined,
    }))
    this.#makeId = makeId
    this.#trace = trace
    this.#spans = spans
    this.#recordLimits = { windowMs, recordsMax: Math.floor(recordsPerProjectMax / queues.length) }
  }

  /**
   * Resolves with the record that Redis has on disk under the name: that of this write, with its rows; or that of an earlier write,
   * in which case nothing of this one is stored. The record of a write without rows is returned, but not stored.
   *
   * @throws RecordQuotaError if the project has no room for the record; nothing was enqueued
   * @throws OverloadedError at once if this process has no room; nothing was enqueued
   * @throws QueueFullError if Redis has no room; nothing was enqueued
   * @throws QueueUnavailableError if Redis did not answer in time; rows and record are both stored, or both not
   */
  async write(write: RecordedWrite): Promise<string> {
    const inFlight = this.#inFlight.get(write.name)
    if (inFlight !== undefined) return inFlight
    const { bytesWaitingMax, recordsWaitingMax } = idempotentLimits
    if (
      this.#bytesWaiting + write.rows.byteLength > bytesWaitingMax ||
      this.#inFlight.size >= recordsWaitingMax
    ) {
      throw new OverloadedError('bytes_in_flight', 'too many bytes are waiting for Redis')
    }
    const lane = this.#lanes[write.shard]
    if (lane === undefined) throw new RangeError(`there is no shard ${write.shard}`)
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    lane.gathered.push({ ...write, sinceMs: performance.now(), resolve, reject })
    this.#inFlight.set(write.name, promise)
    this.#bytesWaiting += write.rows.byteLength
    lane.committing ??= this.#commitAll(lane)
    return promise
  }

  /** Resolves when all writes are settled. */
  async drain(): Promise<void> {
    for (const { committing } of this.#lanes) await committing
  }

  get bytesWaiting(): number {
    return this.#bytesWaiting
  }

  /** Commits until no write is left. */
  async #commitAll(lane: Lane): Promise<void> {
    await turn()
    while (lane.gathered.length > 0) {
      const waitMs = lane.pace.waitMs()
      if (waitMs > 0) await sleep(waitMs)
      lane.pace.start()
      await this.#commit(lane.queue, takeCommit(lane.gathered))
    }
    lane.committing = undefined
  }

  async #commit(queue: Lane['queue'], members: readonly Waiting[]): Promise<void> {
    try {
      for (let left = members; left.length > 0;) left = await this.#tryCommit(queue, left)
    } catch (error) {
      // This has no effect on writes that are already settled.
      for (const { reject } of members) reject(error)
    } finally {
      for (const { name, rows } of members) {
        this.#inFlight.delete(name)
        this.#bytesWaiting -= rows.byteLength
      }
    }
  }

  #startSpan(
    chunkId: string,
    members: readonly Waiting[],
    rows: number,
    bytes: number,
  ): ChunkSpan | undefined {
    if (this.#spans === undefined) return undefined
    const requests = members.flatMap(({ span, rows: { count } }) => (count > 0 ? (span ?? []) : []))
    if (requests.length === 0) return undefined
    return this.#spans.start({ chunkId, sinceMs: members[0]?.sinceMs ?? 0, rows, bytes, requests })
  }

  /** @returns the writes that must be committed again, without those whose records exist already */
  async #tryCommit(queue: Lane['queue'], members: readonly Waiting[]): Promise<readonly Waiting[]> {
    const deadlineMs = (members[0]?.sinceMs ?? 0) + chunkLimits.addDeadlineMs
    if (performance.now() >= deadlineMs) throw new QueueUnavailableError('Redis is too slow')
    const { count, text } = concatenate(members)
    // Each attempt has a new id, so that two different chunks never have the same id.
    const chunkId = this.#makeId()
    const span = count === 0 ? undefined : this.#startSpan(chunkId, members, count, text.length)
    const adding = queue.addRecorded(
      chunkId,
      count === 0 ? undefined : encodeChunk(count, text, span?.traceparent),
      {
        records: members.map(({ name, quota, record, rows }) => ({
          name,
          quota,
          text: rows.count === 0 ? undefined : record,
        })),
        recordLimits: this.#recordLimits,
      },
      deadlineMs,
    )
    if (this.#trace !== undefined) void traceAdd(this.#trace, chunkId, members, text, adding)
    if (span !== undefined) void endSpan(span, members[0]?.shard, adding)
    const found = await adding
    return members.filter(({ record, resolve, reject }, index) => {
      const result = found === undefined ? record : found[index]
      if (typeof result === 'string') resolve(result)
      else if (typeof result === 'number') reject(new RecordQuotaError(result))
      else return true
      return false
    })
  }
}

/** With records that exist already, nothing is added under this id. Never rejects. */
async function traceAdd(
  trace: ChunkTrace,
  chunkId: string,
  members: readonly Waiting[],
  text: Buffer,
  adding: Promise<unknown>,
): Promise<void> {
  let at = 0
  const requests = members.flatMap(({ requestId, rows }) => {
    if (rows.count === 0) return []
    const from = at
    at += rows.byteLength
    return [trace.describe(requestId, rows.count, text.subarray(from, at))]
  })
  try {
    if ((await adding) === undefined) trace.added(chunkId, requests)
  } catch (error) {
    trace.failed(chunkId, requests, error)
  }
}

/** Never rejects. */
async function endSpan(span: ChunkSpan, shard: number | undefined, adding: Promise<unknown>): Promise<void> {
  try {
    span.ended((await adding) === undefined ? 'added' : 'not added', shard)
  } catch (error) {
    span.failed(error)
  }
}

function concatenate(members: readonly Waiting[]): { count: number; text: Buffer } {
  const text = Buffer.allocUnsafe(members.reduce((sum, { rows }) => sum + rows.byteLength, 0))
  let count = 0
  let at = 0
  for (const { rows } of members) {
    rows.copyTo(text, at)
    at += rows.byteLength
    count += rows.count
  }
  return { count, text }
}

/** Removes the writes of the next commit from `gathered`: the first one, and those after it that fit. */
function takeCommit(gathered: Waiting[]): Waiting[] {
  let rows = 0
  let bytes = 0
  let count = 0
  for (const waiting of gathered) {
    rows += waiting.rows.count
    bytes += waiting.rows.byteLength
    if (count > 0 && (rows > chunkLimits.rowsMax || bytes > chunkLimits.bytesMax)) break
    count += 1
    if (count === idempotentLimits.recordsPerCommitMax) break
  }
  return gathered.splice(0, count)
}
