import { encodeChunk, limits } from '@sluice/schema'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { QueueUnavailableError, type ChunkQueue } from '../chunks/chunk-queue.ts'
import { chunkLimits } from '../chunks/chunk-writer.ts'
import { OverloadedError } from '../overload/overloaded-error.ts'

/** The writer's limits. A commit has the bounds of a chunk, and its deadline: see `chunkLimits`. */
export const idempotentLimits = {
  /** While Redis stores a commit it serves nobody else: 2.5 ms at this number. */
  recordsPerCommitMax: 1_000,
  /** All that wait or are under way, in bytes: half of what the writer without keys may hold. */
  bytesWaitingMax: 32_000_000,
  /** More than a second of the highest load in single entries; requests without a row have no bytes to count. */
  recordsWaitingMax: 10_000,
} as const

// A request that is within its own limits must fit, as in the writer without keys.
if (idempotentLimits.bytesWaitingMax < limits.bodyBytesMax * 4)
  throw new Error('one request could never be accepted')
// A script hands the records' names to Redis by Lua's stack, which has room for 8,000.
if (idempotentLimits.recordsPerCommitMax > 7_000)
  throw new Error('a commit could have more records than Lua takes')

/** The rows of a request, and the record that is to be stored with them. */
export interface RecordedWrite {
  /** Which of the writer's queues the rows go to. */
  readonly shard: number
  /** The record's Redis key, in that queue's hash slot. */
  readonly name: string
  /** The record's text: no other write has the same. */
  readonly record: string
  readonly rows: number
  /** The rows, each a line in UTF-8. */
  readonly text: Buffer
}

/** The way to one queue. */
interface Lane {
  readonly queue: Pick<ChunkQueue, 'addRecorded'>
  /** Those that are not in a commit yet, in the order of their arrival. */
  readonly gathered: Waiting[]
  committing: Promise<void> | undefined
}

interface Waiting extends RecordedWrite {
  readonly sinceMs: number
  readonly resolve: (held: string) => void
  readonly reject: (error: unknown) => void
}

/**
 * Gathers the requests with idempotency keys, and commits their rows and records together: group commit, for each queue
 * by itself.
 *
 * Idle → a write waits for the end of the event loop's turn, for those that arrived with it. Committing (one commit under
 * way, or the last one was started less than `addIntervalMs` ago) → writes gather. A commit whose records are all new is
 * one step in Redis; those that are known drop out of it with what is known of them, and the rest is committed again.
 * A write whose record is under way already is not written: it waits for what becomes of the first.
 */
export class IdempotentWriter {
  readonly #lanes: readonly Lane[]
  readonly #makeId: () => string
  readonly #windowMs: number
  /** What becomes of each record that waits or is being committed, by its name. */
  readonly #underWay = new Map<string, Promise<string>>()
  #bytesWaiting = 0

  /**
   * @param makeId makes the job id of a chunk: unique, without colons
   * @param windowMs how long a record lives
   */
  constructor(queues: readonly Pick<ChunkQueue, 'addRecorded'>[], makeId: () => string, windowMs: number) {
    this.#lanes = queues.map((queue) => ({ queue, gathered: [], committing: undefined }))
    this.#makeId = makeId
    this.#windowMs = windowMs
  }

  /**
   * Resolves with the record that Redis has on disk under the name: this write's, once its rows are there as well; or
   * that of an earlier write, and then nothing of this one is stored.
   *
   * @throws OverloadedError, at once, when nothing was enqueued
   * @throws QueueUnavailableError when Redis did not answer in time; rows and record may be stored or not, but both alike
   */
  async write(write: RecordedWrite): Promise<string> {
    const underWay = this.#underWay.get(write.name)
    if (underWay !== undefined) return underWay
    const { bytesWaitingMax, recordsWaitingMax } = idempotentLimits
    if (
      this.#bytesWaiting + write.text.length > bytesWaitingMax ||
      this.#underWay.size >= recordsWaitingMax
    ) {
      throw new OverloadedError('bytes_in_flight', 'too much is waiting for Redis')
    }
    const lane = this.#lanes[write.shard]
    if (lane === undefined) throw new RangeError(`there is no shard ${write.shard}`)
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    lane.gathered.push({ ...write, sinceMs: performance.now(), resolve, reject })
    this.#underWay.set(write.name, promise)
    this.#bytesWaiting += write.text.length
    lane.committing ??= this.#commitAll(lane)
    return promise
  }

  /** Resolves when all that was written has been settled. */
  async drain(): Promise<void> {
    for (const { committing } of this.#lanes) await committing
  }

  get bytesWaiting(): number {
    return this.#bytesWaiting
  }

  /** Commits until nothing is left. */
  async #commitAll(lane: Lane): Promise<void> {
    await turn()
    while (lane.gathered.length > 0) {
      const startedMs = performance.now()
      await this.#commit(lane.queue, takeCommit(lane.gathered))
      const waitMs = startedMs + chunkLimits.addIntervalMs - performance.now()
      if (waitMs > 0) await sleep(waitMs)
    }
    lane.committing = undefined
  }

  async #commit(queue: Lane['queue'], members: readonly Waiting[]): Promise<void> {
    try {
      for (let left = members; left.length > 0;) left = await this.#tryCommit(queue, left)
    } catch (error) {
      // Those that were settled before it stay as they are.
      for (const { reject } of members) reject(error)
    } finally {
      for (const { name, text } of members) {
        this.#underWay.delete(name)
        this.#bytesWaiting -= text.length
      }
    }
  }

  /** @returns those that have to be committed without the others, which turned out to be known */
  async #tryCommit(queue: Lane['queue'], members: readonly Waiting[]): Promise<readonly Waiting[]> {
    const deadlineMs = (members[0]?.sinceMs ?? 0) + chunkLimits.addDeadlineMs
    if (performance.now() >= deadlineMs) throw new QueueUnavailableError('Redis is behind')
    const rows = members.reduce((sum, member) => sum + member.rows, 0)
    const text = Buffer.concat(members.map((member) => member.text))
    // With the id of its own that each attempt has, no two contents ever share one.
    const held = await queue.addRecorded(
      this.#makeId(),
      rows === 0 ? undefined : encodeChunk(rows, text),
      {
        records: members.map(({ name, record }) => ({ name, text: record })),
        windowMs: this.#windowMs,
      },
      deadlineMs,
    )
    return members.filter(({ record, resolve }, index) => {
      const found = held === undefined ? record : held[index]
      if (typeof found === 'string') resolve(found)
      return typeof found !== 'string'
    })
  }
}

/** Takes out what makes the next commit: the first that waits, and those after it that fit. */
function takeCommit(gathered: Waiting[]): Waiting[] {
  let rows = 0
  let bytes = 0
  let count = 0
  for (const waiting of gathered) {
    rows += waiting.rows
    bytes += waiting.text.length
    if (count > 0 && (rows > chunkLimits.rowsMax || bytes > chunkLimits.bytesMax)) break
    count += 1
    if (count === idempotentLimits.recordsPerCommitMax) break
  }
  return gathered.splice(0, count)
}
