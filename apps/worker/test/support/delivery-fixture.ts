import { createLogger, Semaphore } from '@sluice/runtime'
import { BatchDelivery, type BatchDeliveryDependencies } from '../../src/batch-delivery.ts'
import { batchIdOf, type Recovery, type Stage } from '../../src/batch.ts'
import { Retrier } from '../../src/retrier.ts'
import { WorkerEvents } from '../../src/worker-events.ts'
import { TestClock } from './test-clock.ts'

type OpenStage = Exclude<Stage, { at: 'done' }>

/** What a step leads to. It throws if the step fails. */
export type Outcome = (stage: OpenStage) => Stage | Promise<Stage>

const rejection = new Error('rejected')

export const outcomes = {
  fails: (error: Error): Outcome => {
    return () => {
      throw error
    }
  },
  /** The step ends after a promise. */
  after:
    (promise: Promise<unknown>): Outcome =>
    (stage) =>
      promise.then(() => usual(stage)),
  waiting: (stage: OpenStage): Stage => ({ at: 'waiting', recovery: recoveryIn(stage) }),
  suspended: (stage: OpenStage): Stage => ({ at: 'suspended', recovery: recoveryIn(stage) }),
  /** ClickHouse rejects a new batch, or another worker has split a stored one. */
  recovering: (stage: OpenStage): Stage => {
    return { at: 'recovering', recovery: { ...newRecovery(batchIdOf(stage), [], 0), rejection } }
  },
  rejected: (stage: OpenStage): Stage => {
    return { ...loaded({ ...recoveryIn(stage), rejection }), at: 'rejected' }
  },
} as const

/** A shard's delivery, in which the test decides what each step leads to. Everything that is called is in `calls`, in order. */
export class DeliveryFixture {
  readonly clock = new TestClock()
  readonly stopping = new AbortController()
  givingUp = new AbortController()
  succeededAtMs = Number.NEGATIVE_INFINITY
  readonly calls: string[] = []
  /** The stages from which steps were made. */
  readonly stages: OpenStage[] = []
  /** The batches of chunks that are claimed already. Undefined for a chunk that was delivered. */
  readonly owners = new Map<string, string | undefined>()
  /** What happens to the next claims. Others succeed. */
  readonly claims: (() => Promise<void>)[] = []
  /** What the next steps lead to, by `BATCH STAGE`. Others lead to the next stage of the table. */
  readonly steps = new Map<string, Outcome[]>()
  /** Errors of the next requests to the consumer and to end a lease. Others succeed. */
  readonly errors = new Map<'requeue' | 'fail' | 'endLease', Error[]>()
  readonly repairPermits = new Semaphore(2, this.stopping.signal)
  readonly delivery: BatchDelivery
  #ids = 0

  constructor() {
    this.delivery = new BatchDelivery(this.#dependencies())
  }

  /** The calls that begin with one of these words. */
  only(...words: readonly string[]): string[] {
    return this.calls.filter((call) => words.some((word) => call.startsWith(word)))
  }

  /** The steps that were made, as `BATCH STAGE`. */
  get stepsMade(): string[] {
    return this.stages.map((stage) => `${batchIdOf(stage)} ${stage.at}`)
  }

  #dependencies(): BatchDeliveryDependencies {
    const logger = createLogger('test', 'silent')
    const { calls, clock, stopping, repairPermits } = this
    const { signal } = stopping
    const giveUpSignal = (): AbortSignal => this.givingUp.signal
    return {
      ledger: {
        claim: async (batchId, ids) => {
          calls.push(`claim ${batchId}: ${ids.join(' ')}`)
          await this.claims.shift()?.()
          return ids.map((id) => (this.owners.has(id) ? this.owners.get(id) : batchId))
        },
        renewLease: async (batchId, workerId) => void calls.push(`renew lease ${batchId} of ${workerId}`),
        endLease: async (batchId, workerId) =>
          this.#request('endLease', `end lease ${batchId} of ${workerId}`),
      },
      consumer: {
        requeue: async (ids, end) => this.#request('requeue', `requeue ${ids.join(' ')} to the ${end}`),
        fail: async (id, error) => this.#request('fail', `fail ${id}: ${error.message}`),
        forget: (ids) => {
          if (ids.length > 0) calls.push(`forget ${ids.join(' ')}`)
        },
      },
      stages: {
        step: async (stage) => {
          this.stages.push(stage)
          const outcome = this.steps.get(`${batchIdOf(stage)} ${stage.at}`)?.shift() ?? usual
          return outcome(stage)
        },
        recoveryOf: (batchId, chunkIds) => newRecovery(batchId, chunkIds, clock.nowMs()),
      },
      retrier: new Retrier({ logger, signal, clock, random: () => 0, events: new WorkerEvents() }),
      health: {
        get giveUpSignal() {
          return giveUpSignal()
        },
        hasSucceededSince: (ms) => this.succeededAtMs >= ms,
      },
      repairPermits,
      logger,
      clock,
      makeId: () => `new-${(this.#ids += 1)}`,
      workerId: 'me',
      signal,
    }
  }

  #request(request: 'requeue' | 'fail' | 'endLease', call: string): void {
    this.calls.push(call)
    const error = this.errors.get(request)?.shift()
    if (error !== undefined) throw error
  }
}

/** The stages of a batch whose inserts succeed. */
function usual(stage: OpenStage): Stage {
  if (stage.at === 'stored') return { at: 'done' }
  if ('batch' in stage) return { at: 'stored', stored: { id: batchIdOf(stage), members: [] }, repair: 0 }
  return loaded(stage.recovery)
}

function loaded(recovery: Recovery): Extract<Stage, { at: 'loaded' }> {
  return { at: 'loaded', recovery, batch: { id: recovery.batchId, chunks: [], splits: new Set(), repair: 1 } }
}

function newRecovery(batchId: string, chunkIds: readonly string[], unsettledUntilMs: number): Recovery {
  return { batchId, chunkIds, lastRepair: 0, unsettledUntilMs }
}

function recoveryIn(stage: OpenStage): Recovery {
  if (!('recovery' in stage)) throw new Error(`a ${stage.at} batch has no recovery`)
  return stage.recovery
}
