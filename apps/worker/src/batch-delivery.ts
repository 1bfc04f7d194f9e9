import { describeError, type RowInserter } from '@sluice/clickhouse'
import type { BatchLedger, BatchRecord, HeldChunk } from '@sluice/queue'
import type { Logger } from '@sluice/runtime'
import type { Batch, BatchSplitter } from './batch-splitter.ts'
import { CompletionTracker } from './completion-tracker.ts'
import { attemptInsert } from './insert-attempt.ts'
import type { Retrier } from './retrier.ts'
import type { Semaphore } from './semaphore.ts'

/** Where a batch stands, as far as this worker knows. The words are those of docs/exactly-once.md. */
type Stage =
  /** Its record is to be read: another worker claimed it, or may have taken it over. */
  | { readonly at: 'recovering'; readonly batchId: string }
  /** To be inserted as a whole. */
  | { readonly at: 'claimed'; readonly batch: Batch }
  /** ClickHouse rejected it as a whole: to be inserted in parts. */
  | { readonly at: 'rejected'; readonly batch: Batch }
  /** ClickHouse has its rows: to be confirmed, unless another worker has split more of it than these ranges. */
  | { readonly at: 'stored'; readonly batch: Batch; readonly splits: ReadonlySet<string> }
  | { readonly at: 'done' }

/** Jobs of a claimed batch were removed from the queue by hand. */
export class BrokenBatchError extends Error {
  override name = 'BrokenBatchError'
}

export interface BatchDeliveryDependencies {
  readonly ledger: Pick<BatchLedger, 'claim' | 'read' | 'confirm' | 'release'>
  readonly rowInserter: Pick<RowInserter, 'prepare'>
  /** Limits the inserts of all shards. */
  readonly insertPermits: Pick<Semaphore, 'run'>
  /** Limits the recoveries that have their chunks in memory. */
  readonly recoveryPermits: Pick<Semaphore, 'run'>
  readonly splitter: Pick<BatchSplitter, 'insertByParts'>
  readonly retrier: Retrier
  readonly logger: Logger
  /** Reads a chunk by the id of its job, while the job is in the queue. */
  readonly loadChunk: (id: string) => Promise<HeldChunk | undefined>
  readonly makeId: () => string
  readonly monotonicMs: () => number
  /** How long after its claim a batch certainly belongs to this worker. Afterwards it is recovered. */
  readonly ownershipTrustedMs: number
}

/**
 * Inserts chunks into ClickHouse, each exactly once.
 *
 * | From       | Step                                   | To                                                               |
 * | ---------- | -------------------------------------- | ---------------------------------------------------------------- |
 * | claimed    | insert the whole batch                 | stored, rejected; recovering if another worker has it or split it |
 * | recovering | read the record, load the chunks       | claimed; rejected if it is split; done if it is confirmed         |
 * | rejected   | insert by parts                        | stored; done if another worker confirmed it                      |
 * | stored     | confirm                                | done; recovering if another worker split it                      |
 */
export class BatchDelivery {
  readonly #deps: BatchDeliveryDependencies
  /** Batches in flight in this process, by id. They need no recovery here. */
  readonly #inFlight = new Map<string, Promise<void>>()
  readonly #completions: CompletionTracker

  constructor(dependencies: BatchDeliveryDependencies) {
    this.#deps = dependencies
    const { ledger, logger } = dependencies
    this.#completions = new CompletionTracker((batchId, members) => {
      // After a failure the record only lives longer than necessary.
      ledger.release(batchId, members).catch((error: unknown) => {
        logger.warn({ batchId, reason: describeError(error) }, 'batch not released')
      })
    })
  }

  /** To be called when the job of a chunk is completed. */
  completed(chunkId: string): void {
    this.#completions.completed(chunkId)
  }

  /**
   * Delivers chunks as one new batch, except for those that belong to earlier batches.
   *
   * @returns the result of each chunk, by its id; a promise may reject with RequeueError or BrokenBatchError
   * @throws RequeueError
   */
  async deliver(chunks: readonly HeldChunk[]): Promise<ReadonlyMap<string, Promise<void>>> {
    const { ledger, retrier, makeId, monotonicMs } = this.#deps
    const id = makeId()
    const sinceMs = monotonicMs()
    // A batch has each chunk once, however often it was fetched.
    const chunksById = new Map(chunks.map((chunk) => [chunk.id, chunk]))
    const ids = [...chunksById.keys()]
    const owners = await retrier.retry('batch not claimed', () => ledger.claim(id, ids))
    const claimed = [...chunksById.values()].filter((_chunk, index) => owners[index] === id)
    const batch: Batch = { id, chunks: claimed, splits: new Set(), wasSent: false, sinceMs }
    const outcomes = new Map<string, Promise<void>>()
    for (const [index, chunkId] of ids.entries()) {
      const owner = owners[index]
      // Without an owner, the chunk was delivered earlier.
      outcomes.set(chunkId, owner === undefined ? Promise.resolve() : this.#outcomeOf(owner, batch))
    }
    return outcomes
  }

  #outcomeOf(batchId: string, claimed: Batch): Promise<void> {
    const inFlight = this.#inFlight.get(batchId)
    if (inFlight !== undefined) return inFlight
    const done = (batchId === claimed.id ? this.#insertNew(claimed) : this.#recover(batchId)).finally(() =>
      this.#inFlight.delete(batchId),
    )
    this.#inFlight.set(batchId, done)
    return done
  }

  async #insertNew(batch: Batch): Promise<void> {
    for (let stage = await this.#insertWhole(batch); stage.at !== 'done'; stage = await this.#step(stage))
      if (stage.at === 'recovering') return this.#recover(batch.id)
    return undefined
  }

  #recover(batchId: string): Promise<void> {
    return this.#deps.recoveryPermits.run(() => this.#advance({ at: 'recovering', batchId }))
  }

  async #advance(from: Stage): Promise<void> {
    for (let stage = from; stage.at !== 'done';) stage = await this.#step(stage)
  }

  #step(stage: Exclude<Stage, { at: 'done' }>): Promise<Stage> {
    if (stage.at === 'recovering') return this.#load(stage.batchId)
    if (stage.at === 'claimed') return this.#insertWhole(stage.batch)
    if (stage.at === 'rejected') return this.#insertByParts(stage.batch)
    return this.#confirm(stage.batch, stage.splits)
  }

  async #load(id: string): Promise<Stage> {
    const { retrier, logger, monotonicMs } = this.#deps
    const sinceMs = monotonicMs()
    const record = await this.#readUnconfirmed(id)
    if (record === undefined) return { at: 'done' }
    const chunks = await retrier.retry('chunks not read', () => this.#loadMembers(record))
    if (chunks === undefined) {
      // Jobs only disappear after their batch is confirmed: another worker has confirmed it since the record was read.
      if ((await this.#readUnconfirmed(id)) === undefined) return { at: 'done' }
      throw new BrokenBatchError(`the queue does not have all chunks of batch ${id}`)
    }
    logger.info({ batchId: id, chunks: chunks.length }, 'recovering a batch')
    const { splits } = record
    return {
      at: splits.size > 0 ? 'rejected' : 'claimed',
      batch: { id, chunks, splits, wasSent: true, sinceMs },
    }
  }

  async #loadMembers({ members }: BatchRecord): Promise<HeldChunk[] | undefined> {
    const chunks = await Promise.all(members.map((id) => this.#deps.loadChunk(id)))
    const present = chunks.filter((chunk) => chunk !== undefined)
    return present.length === members.length ? present : undefined
  }

  async #insertWhole(batch: Batch): Promise<Stage> {
    const { rowInserter, insertPermits, retrier } = this.#deps
    const frames = batch.chunks.map(({ frame }) => frame)
    const insert = rowInserter.prepare(frames, batch.id, batch.wasSent)
    return retrier.retry<Stage>('batch not inserted', async () => {
      if (batch.wasSent) {
        // Other workers may have the batch as well. Once one of them has split it, it must not be sent as a whole.
        const record = await this.#readUnconfirmed(batch.id)
        if (record === undefined) return { at: 'stored', batch, splits: batch.splits }
        if (record.splits.size > 0) return { at: 'recovering', batchId: batch.id }
      }
      return insertPermits.run(async () => {
        if (this.#mayBeTakenOver(batch)) return { at: 'recovering', batchId: batch.id }
        const { at } = await attemptInsert(
          () => insert.run(),
          (failure) => failure !== 'transient',
        )
        return at === 'stored' ? { at, batch, splits: batch.splits } : { at: 'rejected', batch }
      })
    })
  }

  /** After a long wait, many attempts, or a freeze of this process, another worker may have fetched the chunks of a new batch. */
  #mayBeTakenOver({ wasSent, sinceMs }: Batch): boolean {
    return !wasSent && this.#deps.monotonicMs() - sinceMs > this.#deps.ownershipTrustedMs
  }

  async #insertByParts(batch: Batch): Promise<Stage> {
    const splits = await this.#deps.splitter.insertByParts(batch)
    return splits === undefined ? { at: 'done' } : { at: 'stored', batch, splits }
  }

  async #confirm({ id, chunks, sinceMs }: Batch, splits: ReadonlySet<string>): Promise<Stage> {
    const { ledger, retrier, logger, monotonicMs } = this.#deps
    const chunkIds = chunks.map((chunk) => chunk.id)
    const isConfirmed = await retrier.retry('batch not confirmed', () =>
      ledger.confirm(id, chunkIds, splits.size),
    )
    // Another worker has consumed a token of this batch: an insert that ClickHouse confirmed here may have been ignored.
    if (!isConfirmed) return { at: 'recovering', batchId: id }
    this.#completions.expect(id, chunkIds)
    const rows = chunks.reduce((sum, chunk) => sum + chunk.rows, 0)
    const durationMs = Math.round(monotonicMs() - sinceMs)
    logger.debug({ batchId: id, rows, chunks: chunks.length, durationMs }, 'inserted a batch')
    return { at: 'done' }
  }

  /** The record of a batch that is not confirmed. A released batch was confirmed. */
  async #readUnconfirmed(batchId: string): Promise<BatchRecord | undefined> {
    const { ledger, retrier } = this.#deps
    const record = await retrier.retry('batch not read', () => ledger.read(batchId))
    return record?.state === 'confirmed' ? undefined : record
  }
}
