import type { BatchLedger, BatchRecord } from './batch-ledger.ts'
import type { BatchSplitter, RefusedBatch } from './batch-splitter.ts'
import type { HeldChunk } from './collector.ts'
import { CompletionTracker } from './completion-tracker.ts'
import { describeError } from './insert-errors.ts'
import { workerLimits } from './limits.ts'
import type { Persistence } from './persistence.ts'
import type { Sender } from './sender.ts'
import type { Slots } from './slots.ts'

/** A batch that is written down, and that this process has the chunks of. */
interface HeldBatch extends RefusedBatch {
  /** Before it was written down or read, on the clock `now`. */
  readonly sinceMs: number
}

/**
 * What became of sending a batch as a whole: it is in ClickHouse, which refuses it as it is, or another worker has split it,
 * or may have taken it over.
 */
type WholeOutcome = 'inserted' | 'refused' | 'split' | 'overdue'

/** A written-down batch whose chunks are not all in the queue any more: somebody removed jobs by hand. */
export class BrokenBatchError extends Error {
  override name = 'BrokenBatchError'
}

export interface DeliveryDependencies {
  readonly ledger: Pick<BatchLedger, 'claim' | 'read' | 'confirm' | 'release'>
  readonly sender: Sender
  /** What inserts wait for, those of other shards among them. */
  readonly slots: Pick<Slots, 'run'>
  /** What recoveries wait for before they read the batch's chunks, so that memory holds a few of them at most. */
  readonly recovering: Pick<Slots, 'run'>
  readonly splitter: Pick<BatchSplitter, 'insert'>
  readonly persistence: Persistence
  /** The chunk of a job, by its id, while the job is in the queue. */
  readonly loadChunk: (id: string) => Promise<HeldChunk | undefined>
  readonly makeId: () => string
  /** Milliseconds, monotonic. */
  readonly now: () => number
  /** A new batch that has been on its way for this long may have been taken over, ms: from then on it is recovered. */
  readonly takeOverMs: number
}

/**
 * Brings chunks into ClickHouse, each exactly once.
 *
 * A chunk's way: in hand → claimed (its batch is written down) → sent → confirmed (ClickHouse said so, and that is
 * written down) → its job may complete. A chunk that turns out to belong to a batch already is recovered: what ClickHouse
 * has not of that whole batch is sent again.
 */
export class Delivery {
  readonly #deps: DeliveryDependencies
  /** Batches that are on their way in this process, by id: nobody here needs to recover one of them. */
  readonly #underWay = new Map<string, Promise<void>>()
  readonly #completions: CompletionTracker

  constructor(dependencies: DeliveryDependencies) {
    this.#deps = dependencies
    const { ledger, persistence } = dependencies
    this.#completions = new CompletionTracker((batchId, members) => {
      // Without it the batch is remembered for longer than it need be, and nothing else.
      ledger.release(batchId, members).catch((error: unknown) => {
        persistence.logger.warn({ batchId, reason: describeError(error) }, 'batch not released')
      })
    })
  }

  /** To be called when a chunk's job is completed. */
  completed(chunkId: string): void {
    this.#completions.completed(chunkId)
  }

  /**
   * Delivers chunks: as one new batch, but for those that belong to earlier batches.
   *
   * @returns what becomes of each of the chunks, by its id; a promise may reject with HandBackError
   * @throws HandBackError
   */
  async deliver(chunks: readonly HeldChunk[]): Promise<ReadonlyMap<string, Promise<void>>> {
    const { ledger, persistence, makeId, now } = this.#deps
    const batchId = makeId()
    const sinceMs = now()
    // A batch holds a chunk once, however often it was given to this worker.
    const chunksById = new Map(chunks.map((chunk) => [chunk.id, chunk]))
    const ids = [...chunksById.keys()]
    const owners = await persistence.untilDone('batch not written down', () => ledger.claim(batchId, ids))
    const fresh = [...chunksById.values()].filter((_chunk, index) => owners[index] === batchId)
    const outcomes = new Map<string, Promise<void>>()
    for (const [index, id] of ids.entries()) {
      const owner = owners[index] ?? ''
      if (owner === '') {
        outcomes.set(id, Promise.resolve())
        continue
      }
      const run =
        owner === batchId
          ? () => this.#insert({ batchId, chunks: fresh, splits: new Set(), sinceMs, settledMs: undefined })
          : () => this.#deps.recovering.run(() => this.#recover(owner))
      outcomes.set(id, this.#underWay.get(owner) ?? this.#start(owner, run))
    }
    return outcomes
  }

  #start(batchId: string, run: () => Promise<void>): Promise<void> {
    const done = run().finally(() => this.#underWay.delete(batchId))
    this.#underWay.set(batchId, done)
    return done
  }

  async #recover(batchId: string): Promise<void> {
    const { now } = this.#deps
    const sinceMs = now()
    const settledMs = sinceMs + workerLimits.landingMaxMs
    const record = await this.#readPending(batchId)
    if (record === undefined) return
    const chunks = await this.#deps.persistence.untilDone('chunks not read', () => this.#loadMembers(record))
    if (chunks === undefined) {
      // They are completed one by one after the batch was confirmed: it was, just now.
      if ((await this.#readPending(batchId)) === undefined) return
      throw new BrokenBatchError(`chunks of the batch ${batchId} are gone from the queue`)
    }
    this.#deps.persistence.logger.info({ batchId, chunks: chunks.length }, 'recovering a batch')
    await this.#insert({ batchId, chunks, splits: record.splits, sinceMs, settledMs })
  }

  async #loadMembers({ members }: BatchRecord): Promise<HeldChunk[] | undefined> {
    const chunks = await Promise.all(members.map((id) => this.#deps.loadChunk(id)))
    const present = chunks.filter((chunk) => chunk !== undefined)
    return present.length === members.length ? present : undefined
  }

  async #insert(batch: HeldBatch): Promise<void> {
    const { batchId, chunks, splits, sinceMs } = batch
    const { ledger, recovering, persistence, splitter, now } = this.#deps
    const outcome = splits.size > 0 ? 'refused' : await this.#insertWhole(batch)
    if (outcome === 'overdue') return recovering.run(() => this.#recover(batchId))
    if (outcome === 'split') return this.#recover(batchId)
    if (outcome === 'refused' && !(await splitter.insert(batch))) return
    const ids = chunks.map(({ id }) => id)
    await persistence.untilDone('batch not confirmed', () => ledger.confirm(batchId, ids))
    this.#completions.expect(batchId, ids)
    const rows = chunks.reduce((sum, chunk) => sum + chunk.rows, 0)
    const durationMs = Math.round(now() - sinceMs)
    persistence.logger.debug({ batchId, rows, chunks: chunks.length, durationMs }, 'inserted a batch')
  }

  async #insertWhole({ batchId, chunks, sinceMs, settledMs }: HeldBatch): Promise<WholeOutcome> {
    const { sender, slots, persistence, now, takeOverMs } = this.#deps
    const isOurs = settledMs === undefined
    const frames = chunks.map(({ frame }) => frame)
    const send = sender.tries(frames, batchId, settledMs)
    let outcome: WholeOutcome = 'inserted'
    const refusal = await persistence.untilDoneOrRefused(
      'batch not inserted',
      async () => {
        if (!isOurs) {
          // Others may have it as well. Once one of them has split it, it is never sent as a whole again.
          const record = await this.#readPending(batchId)
          if (record === undefined) return
          if (record.splits.size > 0) {
            outcome = 'split'
            return
          }
        }
        await slots.run(async () => {
          // After a long wait, many tries, or a freeze of this process, another worker may have it.
          if (isOurs && now() - sinceMs > takeOverMs) outcome = 'overdue'
          else await send()
        })
      },
      (failure) => failure !== 'transient',
    )
    return refusal === undefined ? outcome : 'refused'
  }

  /** The batch as it is written down, while it may not be inserted. One that is forgotten was inserted. */
  async #readPending(batchId: string): Promise<BatchRecord | undefined> {
    const { ledger, persistence } = this.#deps
    const record = await persistence.untilDone('batch not read', () => ledger.read(batchId))
    return record?.state === 'inserted' ? undefined : record
  }
}
