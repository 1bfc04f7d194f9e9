import type { ClickHouseError, FrameInserter, InsertOnceOptions, StoredRows } from '@sluice/clickhouse'
import type { HeldChunk, StoredBatch } from '@sluice/queue'
import type { MonotonicClock } from '@sluice/runtime'
import { EventEmitter } from 'node:events'
import type { Stage } from './batch.ts'

/** A query that inserts rows, or that must precede an insert. */
export interface Query {
  readonly kind: 'insert' | 'lookup' | 'clock'
  readonly startedMs: number
  /** Of an insert. */
  readonly token?: string
}

/** One transition of `BatchStages`. */
export interface Step {
  readonly shard: number
  readonly from: Exclude<Stage, { readonly at: 'done' }>
  readonly startedMs: number
}

export interface WorkerEventMap {
  'step started': [step: Step]
  'step ended': [step: Step, result: { readonly to: Stage } | { readonly error: unknown }]
  'repair started': []
  'range split': []
  /** All rows of a batch can be queried from now on. */
  'batch stored': [chunks: readonly HeldChunk[]]
  'batch finished': [batch: StoredBatch]
  'query started': [query: Query]
  /** `failure` is undefined if the query has succeeded. */
  'query ended': [query: Query, failure: { readonly error: unknown } | undefined]
  /** ClickHouse has the rows of an insert although it answered with an error: a materialized view has failed, and lacks them. */
  'stored despite error': [error: ClickHouseError]
  /** An operation failed and is retried. */
  'attempt failed': [message: string]
}

/**
 * What happens in a worker. Metrics, traces and `InsertHealth` listen. Nothing that delivers rows depends on a listener. A listener must not
 * throw.
 */
export class WorkerEvents extends EventEmitter<WorkerEventMap> {}

export type Emit = Pick<WorkerEvents, 'emit'>

/** What a worker does at ClickHouse to insert a batch. */
export interface InsertQueries {
  /** Checks the clock. */
  readonly beforeAttempt: InsertOnceOptions['beforeAttempt']
  readonly frameInserter: Pick<FrameInserter, 'insert' | 'isRunning'>
  readonly storedRows: Pick<StoredRows, 'find'>
}

/** The same queries, with events. `insertNothing` rejects if inserts fail, and needs no batch. */
export function observeQueries(
  events: Emit,
  clock: Pick<MonotonicClock, 'nowMs'>,
  { frameInserter, storedRows, ...queries }: InsertQueries,
): InsertQueries & { readonly insertNothing: () => Promise<void> } {
  const run = async <T>(query: Query, send: () => Promise<T>): Promise<T> => {
    events.emit('query started', query)
    try {
      const result = await send()
      events.emit('query ended', query, undefined)
      return result
    } catch (error) {
      events.emit('query ended', query, { error })
      throw error
    }
  }
  const insert = (frames: readonly Buffer[], token: string, queryId?: string): Promise<void> =>
    run({ kind: 'insert', startedMs: clock.nowMs(), token }, () =>
      frameInserter.insert(frames, token, queryId),
    )
  const beforeAttempt = (): Promise<void> =>
    run({ kind: 'clock', startedMs: clock.nowMs() }, queries.beforeAttempt)
  return {
    beforeAttempt,
    frameInserter: { insert, isRunning: (token) => frameInserter.isRunning(token) },
    storedRows: {
      find: (rows) => run({ kind: 'lookup', startedMs: clock.nowMs() }, () => storedRows.find(rows)),
    },
    insertNothing: async () => {
      await beforeAttempt()
      await insert([], 'probe')
    },
  }
}
