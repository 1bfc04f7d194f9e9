import { describeError, type RowInserter } from '@sluice/clickhouse'
import type { BatchLedger, ChunkConsumer } from '@sluice/queue'
import type { Logger, MonotonicClock } from '@sluice/runtime'
import { strict as assert } from 'node:assert'
import type { PartsResult } from './batch-splitter.ts'
import {
  type Batch,
  type BatchInRepair,
  framesOf,
  idsOf,
  rowsOf,
  type Recovery,
  type Stage,
} from './batch.ts'
import type { WorkerConfig } from './config.ts'
import type { InsertHealth } from './insert-health.ts'
import { workerLimits } from './limits.ts'
import { isFinal, rejectionOf, type Retrier, UndeliverableError } from './retrier.ts'
import type { Emit, Step } from './worker-events.ts'

export interface BatchStagesDependencies {
  readonly ledger: Pick<BatchLedger, 'read' | 'beginRepair'>
  readonly consumer: Pick<ChunkConsumer, 'load' | 'finish'>
  readonly rowInserter: Pick<RowInserter, 'prepare'>
  readonly insertByParts: (batch: BatchInRepair, recovery: Recovery) => Promise<PartsResult>
  readonly retrier: Pick<Retrier, 'retry'>
  readonly health: Pick<InsertHealth, 'giveUpSignal'>
  readonly events: Emit
  /** The number of the shard, for events. */
  readonly shard: number
  readonly logger: Logger
  readonly clock: Pick<MonotonicClock, 'nowMs'>
  /** The name of this process in leases. */
  readonly workerId: string
  readonly config: Pick<WorkerConfig, 'LOCK_DURATION_MS'>
}

/**
 * The state machine of a batch. Each step is one transition:
 *
 * | From       | Step                                     | To                                                                       |
 * | ---------- | ---------------------------------------- | ------------------------------------------------------------------------ |
 * | claimed    | insert all rows                          | stored; recovering if it is rejected or another worker may have it       |
 * | recovering | read the record, begin a repair, load it | loaded; rejected if it is split or was rejected; waiting; stored         |
 * | loaded     | look up its rows, insert the missing     | stored; rejected; waiting                                                |
 * | rejected   | insert by parts                          | stored; suspended; waiting                                               |
 * | stored     | confirm, complete the jobs, release      | done; recovering if another repair has begun                             |
 *
 * `BatchDelivery` decides when a step is made, and what follows an error. After an error, a step can be repeated from `recovering`.
 */
export class BatchStages {
  readonly #deps: BatchStagesDependencies

  constructor(dependencies: BatchStagesDependencies) {
    this.#deps = dependencies
  }

  /** @throws RequeueError if the process stops, or the worker gives up inserting; errors of Redis and ClickHouse */
  async step(from: Step['from']): Promise<Stage> {
    const { events, shard, clock } = this.#deps
    const step = { shard, from, startedMs: clock.nowMs() }
    events.emit('step started', step)
    try {
      const to = await this.#leave(from)
      events.emit('step ended', step, { to })
      return to
    } catch (error) {
      events.emit('step ended', step, { error })
      throw error
    }
  }

  #leave(stage: Step['from']): Promise<Stage> {
    if (stage.at === 'claimed') return this.#insertNew(stage.batch, stage.sinceMs)
    if (stage.at === 'loaded') return this.#insertMissing(stage.recovery, stage.batch)
    if (stage.at === 'rejected') return this.#insertParts(stage.recovery, stage.batch)
    if (stage.at === 'stored') return this.#finish(stage)
    return this.#load(stage.recovery)
  }

  /** Retries while the batch certainly belongs to this worker. */
  async #insertNew(batch: Batch, sinceMs: number): Promise<Stage> {
    const { retrier, health, clock, config, rowInserter } = this.#deps
    // The consumer renews each lock before half of it has passed, so a frozen worker still owns its jobs for the other half.
    const ownershipTrustedMs = config.LOCK_DURATION_MS / 2
    assert(batch.chunks.length > 0 && batch.splits.size === 0)
    const recovery = (): Recovery => this.recoveryOf(batch.id, idsOf(batch))
    // Another worker that sends single rows of the batch has begun a repair before: see `lastRepair`.
    let unsettledUntilMs = 0
    const onUnanswered = (): number => (unsettledUntilMs = this.#settledAtMs())
    const insert = rowInserter.prepare(framesOf(batch), batch.id, false, onUnanswered)
    return retrier.retry<Stage>(
      'batch not inserted',
      async () => {
        // After a long wait, many attempts, or a freeze of this process, another worker may have fetched the chunks.
        if (clock.nowMs() - sinceMs > ownershipTrustedMs) return { at: 'recovering', recovery: recovery() }
        const rejection = await rejectionOf(() => insert.run())
        if (rejection === undefined) return this.#stored(batch, 0)
        return { at: 'recovering', recovery: { ...recovery(), rejection, unsettledUntilMs } }
      },
      () => health.giveUpSignal,
    )
  }

  /** The recovery of a batch that another worker may be inserting. */
  recoveryOf(batchId: string, chunkIds: readonly string[]): Recovery {
    return { batchId, chunkIds, lastRepair: 0, unsettledUntilMs: this.#settledAtMs() }
  }

  /** Until then, an attempt that fails now without a response may still commit. */
  #settledAtMs(): number {
    return this.#deps.clock.nowMs() + workerLimits.insertLingerMaxMs
  }

  async #load(from: Recovery): Promise<Stage> {
    const { ledger, consumer, logger, events, workerId } = this.#deps
    const { batchId, chunkIds, rejection } = from
    const record = await ledger.read(batchId)
    if (record?.state !== 'claimed') return confirmed(batchId, record?.members ?? chunkIds)
    const known = this.#after(from, record.repairs, from.lastRepair)
    // While it waits, it begins no repair: the other worker would wait for that one, and neither would ever send anything.
    if (this.#mustWait(known, record.splits)) return waiting(known)
    const repair = await ledger.beginRepair(batchId, workerId)
    if (repair === undefined) return { at: 'waiting', recovery: known }
    const recovery = this.#after(known, repair.number, known.lastRepair + 1)
    if (this.#mustWait(recovery, repair.splits)) return waiting(recovery)
    const chunks = await consumer.load(record.members)
    if (chunks === undefined) {
      // Jobs only disappear after their batch is confirmed: another worker has confirmed it since the record was read.
      const now = await ledger.read(batchId)
      if (now?.state !== 'claimed') return confirmed(batchId, record.members)
      throw new UndeliverableError(`the queue does not have all chunks of batch ${batchId}`)
    }
    events.emit('repair started')
    logger.info({ batchId, chunks: chunks.length }, 'recovering a batch')
    const { number, splits } = repair
    const batch: BatchInRepair = { id: batchId, chunks, splits, repair: number }
    return { at: rejection || splits.size > 0 ? 'rejected' : 'loaded', recovery, batch }
  }

  /**
   * The recovery after the last repair of the batch. If it is not the expected one, another worker has begun it, and may have sent parts.
   */
  #after(recovery: Recovery, lastRepair: number, expected: number): Recovery {
    const unsettledUntilMs = lastRepair > expected ? this.#settledAtMs() : recovery.unsettledUntilMs
    return { ...recovery, lastRepair, unsettledUntilMs }
  }

  /**
   * Parts of a split batch may be in flight. The token of a rejected row cannot be consumed, so only after some time it is certain that no
   * earlier attempt will store it.
   */
  #mustWait({ unsettledUntilMs }: Recovery, splits: ReadonlySet<string>): boolean {
    return splits.size > 0 && this.#deps.clock.nowMs() < unsettledUntilMs
  }

  async #insertMissing(recovery: Recovery, batch: BatchInRepair): Promise<Stage> {
    assert(batch.splits.size === 0)
    const { rowInserter, logger } = this.#deps
    let { unsettledUntilMs } = recovery
    const onUnanswered = (): number => (unsettledUntilMs = this.#settledAtMs())
    const insert = rowInserter.prepare(framesOf(batch), batch.id, true, onUnanswered)
    try {
      const rejection = await rejectionOf(() => insert.run())
      if (rejection === undefined) return this.#stored(batch, batch.repair)
      return { at: 'rejected', recovery: { ...recovery, rejection, unsettledUntilMs }, batch }
    } catch (error) {
      if (unsettledUntilMs === recovery.unsettledUntilMs || isFinal(error)) throw error
      logger.warn({ batchId: batch.id, reason: describeError(error) }, 'batch not inserted')
      return { at: 'waiting', recovery: { ...recovery, unsettledUntilMs } }
    }
  }

  async #insertParts(recovery: Recovery, batch: BatchInRepair): Promise<Stage> {
    const result = await this.#deps.insertByParts(batch, recovery)
    if (result.at === 'confirmed') return confirmed(batch.id, idsOf(batch))
    return result.at === 'stored' ? this.#stored(batch, batch.repair, result.deadLettered) : result
  }

  /** @param deadLettered how many of its rows are dead letters */
  #stored(batch: Batch, repair: number, deadLettered = 0): Stage {
    this.#deps.events.emit('batch stored', batch.chunks)
    const rows = { inserted: rowsOf(batch) - deadLettered, deadLettered }
    return { at: 'stored', stored: { id: batch.id, members: idsOf(batch), rows }, repair }
  }

  async #finish({ stored: batch, repair }: Extract<Stage, { at: 'stored' }>): Promise<Stage> {
    const { consumer, retrier, events } = this.#deps
    const { id: batchId, members } = batch
    const isFinished = await retrier.retry('batch not finished', () => consumer.finish(batch, repair))
    // Another worker may have consumed a token of this batch: an insert that ClickHouse acknowledged here may have been ignored.
    if (!isFinished) return { at: 'recovering', recovery: this.recoveryOf(batchId, members) }
    events.emit('batch finished', batch)
    return { at: 'done' }
  }
}

function waiting(recovery: Recovery): Stage {
  return { at: 'waiting', recovery, untilMs: recovery.unsettledUntilMs }
}

/** A record that does not exist was released after its confirmation. */
function confirmed(batchId: string, members: readonly string[]): Stage {
  return { at: 'stored', stored: { id: batchId, members }, repair: undefined }
}
