import { backoffMs, type Logger } from '@sluice/runtime'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BatchLedger, BatchRecord } from './batch-ledger.ts'
import type { HeldChunk } from './collector.ts'
import { describeError } from './insert-errors.ts'
import { CompletionTracker } from './completion-tracker.ts'
import type { Inserter } from './inserter.ts'
import { workerLimits } from './limits.ts'

/** The process is stopping: the chunk was not delivered, and must go back to the queue. */
export class HandBackError extends Error {
  override name = 'HandBackError'
}

/** A written-down batch whose chunks are not all in the queue any more. Somebody removed jobs by hand. */
export class BrokenBatchError extends Error {
  override name = 'BrokenBatchError'
}

export interface DeliveryDependencies {
  readonly ledger: Pick<BatchLedger, 'claim' | 'read' | 'confirm' | 'release'>
  readonly inserter: Pick<Inserter, 'insert'>
  /** The chunk of a job, by its id, while the job is in the queue. */
  readonly loadChunk: (id: string) => Promise<HeldChunk | undefined>
  readonly makeId: () => string
  readonly logger: Logger
  /** Aborted when no more tries shall be made. */
  readonly signal: AbortSignal
}

/**
 * Brings chunks into ClickHouse, each exactly once.
 *
 * A chunk's way: in hand → claimed (its batch is written down) → sent → confirmed (ClickHouse said so, and that is
 * written down) → its job may complete. A chunk that turns out to belong to a batch already is recovered: that whole
 * batch is inserted again, with its own token and content, which adds nothing if it had landed.
 */
export class Delivery {
  readonly #deps: DeliveryDependencies
  /** Batches that are on their way in this process, by id: nobody here needs to recover one of them. */
  readonly #underWay = new Map<string, Promise<void>>()
  readonly #completions: CompletionTracker
  #lastFailure: string | undefined

  constructor(dependencies: DeliveryDependencies) {
    this.#deps = dependencies
    this.#completions = new CompletionTracker((batchId, members) => {
      // Without it the batch is remembered for longer than it need be, and nothing else.
      dependencies.ledger.release(batchId, members).catch((error: unknown) => {
        dependencies.logger.warn({ batchId, reason: describeError(error) }, 'batch not released')
      })
    })
  }

  /** To be called when a chunk's job is completed. */
  completed(chunkId: string): void {
    this.#completions.completed(chunkId)
  }

  /** Why the last try to insert failed, until one succeeds. */
  get lastFailure(): string | undefined {
    return this.#lastFailure
  }

  /**
   * Delivers chunks: as one new batch, but for those that belong to earlier batches.
   *
   * @returns for each of the chunks what became of it, under its id; a promise may reject with HandBackError
   */
  async deliver(chunks: readonly HeldChunk[]): Promise<ReadonlyMap<string, Promise<void>>> {
    const batchId = this.#deps.makeId()
    const ids = chunks.map(({ id }) => id)
    const owners = await this.#untilDone('batch not written down', () =>
      this.#deps.ledger.claim(batchId, ids),
    )
    const fresh = chunks.filter((_chunk, index) => owners[index] === batchId)
    const outcomes = new Map<string, Promise<void>>()
    for (const [index, id] of ids.entries()) {
      const owner = owners[index] ?? batchId
      const run = owner === batchId ? () => this.#insert(batchId, fresh) : () => this.#recover(owner)
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
    const record = await this.#untilDone('batch not read', () => this.#deps.ledger.read(batchId))
    // A forgotten batch is one whose jobs were all completed.
    if (record === undefined || record.state === 'inserted') return
    const chunks = await this.#untilDone('chunks not read', () => this.#loadMembers(record))
    if (chunks === undefined) {
      const now = await this.#untilDone('batch not read', () => this.#deps.ledger.read(batchId))
      if (now === undefined || now.state === 'inserted') return
      throw new BrokenBatchError(`chunks of the batch ${batchId} are gone from the queue`)
    }
    this.#deps.logger.info({ batchId, chunks: chunks.length }, 'recovering a batch')
    await this.#insert(batchId, chunks)
  }

  async #loadMembers({ members }: BatchRecord): Promise<HeldChunk[] | undefined> {
    const chunks = await Promise.all(members.map((id) => this.#deps.loadChunk(id)))
    const present = chunks.filter((chunk) => chunk !== undefined)
    return present.length === members.length ? present : undefined
  }

  async #insert(batchId: string, chunks: readonly HeldChunk[]): Promise<void> {
    const frames = chunks.map(({ frame }) => frame)
    const startedMs = performance.now()
    await this.#untilDone('insert failed', () => this.#deps.inserter.insert(frames, batchId))
    const ids = chunks.map(({ id }) => id)
    await this.#untilDone('batch not confirmed', () => this.#deps.ledger.confirm(batchId, ids))
    this.#completions.expect(batchId, ids)
    this.#lastFailure = undefined
    const rows = chunks.reduce((sum, chunk) => sum + chunk.rows, 0)
    const durationMs = Math.round(performance.now() - startedMs)
    this.#deps.logger.debug({ batchId, rows, chunks: chunks.length, durationMs }, 'inserted a batch')
  }

  /** Tries again, with backoff, until it is done or the process stops. */
  async #untilDone<T>(complaint: string, run: () => Promise<T>): Promise<T> {
    const { signal, logger } = this.#deps
    for (let attempt = 1; ; attempt += 1) {
      if (signal.aborted) throw new HandBackError('stopping')
      try {
        return await run()
      } catch (error) {
        const retryInMs = backoffMs(attempt, workerLimits.retry, Math.random())
        const reason = describeError(error)
        this.#lastFailure = `${complaint}: ${reason}`
        logger.warn({ reason, attempt, retryInMs }, complaint)
        await sleep(retryInMs, undefined, { signal }).catch(() => undefined)
      }
    }
  }
}
