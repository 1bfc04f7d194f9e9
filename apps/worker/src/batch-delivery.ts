import { describeError } from '@sluice/clickhouse'
import type { BatchLedger, ChunkConsumer, HeldChunk } from '@sluice/queue'
import { type Logger, type MonotonicClock, Semaphore, withTimeout } from '@sluice/runtime'
import type { BatchStages } from './batch-stages.ts'
import { idsOf, type Recovery, type Stage } from './batch.ts'
import type { InsertHealth } from './insert-health.ts'
import { workerLimits } from './limits.ts'
import { isFinal, RequeueError, type Retrier } from './retrier.ts'

export interface BatchDeliveryDependencies {
  readonly ledger: Pick<BatchLedger, 'claim' | 'renewLease' | 'endLease'>
  readonly consumer: Pick<ChunkConsumer, 'requeue' | 'fail' | 'forget'>
  readonly stages: Pick<BatchStages, 'step' | 'recoveryOf'>
  readonly retrier: Pick<Retrier, 'retry'>
  readonly health: Pick<InsertHealth, 'giveUpSignal' | 'hasSucceededSince'>
  /** Limits the repairs of all shards. */
  readonly repairPermits: Pick<Semaphore, 'run'>
  readonly logger: Logger
  readonly clock: MonotonicClock
  readonly makeId: () => string
  readonly workerId: string
  /** Aborted with a RequeueError when chunks that are not delivered must be requeued. */
  readonly signal: AbortSignal
}

type Claimed = Extract<Stage, { readonly at: 'claimed' }>

/** A stage from which a batch is repaired. */
type RepairStage = Extract<Stage, { readonly recovery: Recovery }>

/**
 * Delivers chunks to ClickHouse, each exactly once: takes each batch through the stages of `BatchStages`. A new batch has the insert slot
 * of the caller while it is inserted for the first time. Every other insert is a repair, with slots of their own, so that new batches
 * never wait for one.
 */
export class BatchDelivery {
  readonly #deps: BatchDeliveryDependencies
  /** Limits the repairs of this shard to one, so that a shard with many of them leaves slots to other shards. */
  readonly #shardRepairs: Semaphore
  /** The end of the last delivery of each batch that is in flight, by the batch's id. */
  readonly #inFlight = new Map<string, Promise<void>>()
  readonly #background = new Set<Promise<unknown>>()
  readonly #closing = new AbortController()
  /** The chunks of each batch in repair. */
  readonly #inRepair = new Set<readonly string[]>()

  constructor(dependencies: BatchDeliveryDependencies) {
    this.#deps = dependencies
    this.#shardRepairs = new Semaphore(1, dependencies.signal)
  }

  /** Batches that are not finished, apart from new ones in an insert slot. */
  get repairs(): number {
    return this.#inRepair.size
  }

  /** Held chunks that belong to these batches. */
  get chunksInRepair(): number {
    return this.#inRepair.values().reduce((sum, { length }) => sum + length, 0)
  }

  /**
   * Claims chunks as one new batch, except for those that belong to earlier batches, and inserts it. Resolves when the insert slot is
   * free again. The rest of the work goes on afterwards. Never rejects.
   */
  async deliver(chunks: readonly HeldChunk[]): Promise<void> {
    const claiming = this.#claim(chunks)
    const { claimMaxMs } = workerLimits
    // It never rejects, so it is late.
    const claimed = await withTimeout(claiming, claimMaxMs, this.#deps.clock).catch(() => 'late' as const)
    if (claimed === 'late')
      this.#inBackground(claiming.then((late) => late && this.#recover(late.batch.id, idsOf(late.batch))))
    else if (claimed !== undefined) await this.#deliverNew(claimed)
  }

  /** Returns the batches that wait, and resolves when no work is left. To be called after the last `deliver`. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.idle()
  }

  /** Resolves when no work is left. */
  async idle(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background)
  }

  /** @returns the new batch, if any of the chunks belongs to it */
  async #claim(chunks: readonly HeldChunk[]): Promise<Claimed | undefined> {
    const { ledger, consumer, retrier, clock, makeId } = this.#deps
    const id = makeId()
    const sinceMs = clock.nowMs()
    const ids = chunks.map((chunk) => chunk.id)
    let owners: readonly (string | undefined)[]
    try {
      owners = await retrier.retry('batch not claimed', () => ledger.claim(id, ids))
    } catch (error) {
      await this.#giveBack(ids, error)
      return undefined
    }
    // Without an owner, the chunk was delivered earlier.
    consumer.forget(ids.filter((_id, index) => owners[index] === undefined))
    const others = Map.groupBy(ids, (_id, index) => owners[index])
    others.delete(id)
    for (const [batchId, chunkIds] of others) if (batchId !== undefined) this.#recover(batchId, chunkIds)
    const own = chunks.filter((_chunk, index) => owners[index] === id)
    if (own.length === 0) return undefined
    return { at: 'claimed', batch: { id, chunks: own, splits: new Set() }, sinceMs }
  }

  async #deliverNew(claimed: Claimed): Promise<void> {
    const chunkIds = idsOf(claimed.batch)
    const inserting = this.#deps.stages.step(claimed)
    this.#enter(claimed.batch.id, chunkIds, async () => this.#advance(await inserting, chunkIds))
    await inserting.catch(() => undefined)
  }

  #recover(batchId: string, chunkIds: readonly string[]): void {
    this.#enter(batchId, chunkIds, () => {
      const recovery = this.#deps.stages.recoveryOf(batchId, chunkIds)
      return this.#advance({ at: 'recovering', recovery }, chunkIds)
    })
  }

  /** Runs a delivery of a batch, after the delivery in flight, if any. */
  #enter(batchId: string, chunkIds: readonly string[], run: () => Promise<void>): void {
    const previous = this.#inFlight.get(batchId)
    const delivery: Promise<void> = (previous === undefined ? run() : previous.then(run))
      .catch((error: unknown) => this.#giveBack(chunkIds, error))
      .finally(() => {
        if (this.#inFlight.get(batchId) === delivery) this.#inFlight.delete(batchId)
      })
    this.#inFlight.set(batchId, delivery)
    this.#inBackground(delivery)
  }

  async #advance(from: Stage, chunkIds: readonly string[]): Promise<void> {
    const open = await this.#finish(from)
    if (open === undefined) return
    this.#inRepair.add(chunkIds)
    await this.#repairUntilDone(open).finally(() => this.#inRepair.delete(chunkIds))
  }

  /** Finishes a batch that is stored. @returns the stage from which it must be repaired; undefined if it is done */
  async #finish(from: Stage): Promise<RepairStage | undefined> {
    let stage = from
    while (stage.at === 'stored') stage = await this.#deps.stages.step(stage)
    return 'recovery' in stage ? stage : undefined
  }

  async #repairUntilDone(from: RepairStage): Promise<void> {
    const { health, clock, repairPermits } = this.#deps
    // A worker that has given up may make one attempt, as a probe.
    const giveUp = health.giveUpSignal.aborted ? undefined : health.giveUpSignal
    for (let open: RepairStage | undefined = from; open !== undefined;) {
      const stage: RepairStage = open
      const repair = (): Promise<Stage> => {
        if (giveUp?.aborted === true) throw new RequeueError('this worker cannot insert')
        return this.#repair(stage)
      }
      const ended = await this.#shardRepairs.run(() => repairPermits.run(repair))
      open = await this.#finish(ended)
      if (open !== ended) continue
      const startedMs = clock.nowMs()
      await this.#waitBeforeRetry(open)
      // Perhaps another worker can insert the rows. This one may fetch them again, so they return behind all other chunks.
      if (open.at === 'suspended' && !health.hasSucceededSince(startedMs - workerLimits.giveUpMs))
        throw new RequeueError('ClickHouse accepts no rows', 'back')
      if (health.giveUpSignal.aborted) throw new RequeueError('this worker cannot insert', 'back')
    }
  }

  /** Makes steps until the batch is stored or must wait. A failed step leaves the slot to others, and the batch is recovered again. */
  async #repair(from: RepairStage): Promise<Stage> {
    const { stages, ledger, logger, workerId } = this.#deps
    const ended = new AbortController()
    let stage: Stage = from
    let { recovery } = from
    const { batchId } = recovery
    void this.#keepLease(batchId, ended.signal)
    try {
      do {
        stage = await stages.step(stage)
        if ('recovery' in stage) recovery = stage.recovery
      } while (stage.at === 'recovering' || stage.at === 'loaded' || stage.at === 'rejected')
      return stage
    } catch (error) {
      if (isFinal(error)) throw error
      logger.warn({ batchId, reason: describeError(error) }, 'batch not repaired')
      return { at: 'waiting', recovery }
    } finally {
      ended.abort()
      // If this fails, the lease expires.
      await ledger.endLease(batchId, workerId).catch(() => undefined)
    }
  }

  /** Renews the lease that the first step of a repair takes. Never rejects. */
  async #keepLease(batchId: string, ended: AbortSignal): Promise<void> {
    const { ledger, clock, workerId } = this.#deps
    for (;;) {
      await clock.sleep(workerLimits.leaseRenewalMs, ended)
      if (ended.aborted) return
      await ledger.renewLease(batchId, workerId).catch(() => undefined)
    }
  }

  #inBackground(work: Promise<unknown>): void {
    const tracked = work.finally(() => this.#background.delete(tracked))
    this.#background.add(tracked)
  }

  async #waitBeforeRetry(stage: RepairStage): Promise<void> {
    const { clock, signal, health } = this.#deps
    const retryMs = stage.at === 'suspended' ? workerLimits.suspendedRetryMs : workerLimits.repairRetryMs
    const untilMs = stage.at === 'waiting' ? (stage.untilMs ?? 0) : 0
    const waitMs = Math.max(retryMs, untilMs - clock.nowMs())
    const stopping = AbortSignal.any([signal, this.#closing.signal])
    await clock.sleep(waitMs, AbortSignal.any([stopping, health.giveUpSignal]))
    if (stopping.aborted) throw new RequeueError('stopping')
  }

  /** Returns chunks that cannot be delivered here to the queue, or, after an error that no retry resolves, to the failed jobs. */
  async #giveBack(chunkIds: readonly string[], error: unknown): Promise<void> {
    const { consumer, logger } = this.#deps
    try {
      if (error instanceof RequeueError) {
        await consumer.requeue(chunkIds, error.end)
      } else {
        const reason = error instanceof Error ? error : new Error(String(error))
        for (const id of chunkIds) await consumer.fail(id, reason)
      }
    } catch (cause) {
      logger.warn({ err: cause, chunks: chunkIds.length }, 'chunks left to the stalled check')
      consumer.forget(chunkIds)
    }
  }
}
