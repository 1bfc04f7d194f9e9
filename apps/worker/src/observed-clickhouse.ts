import type { FrameInserter, InsertOnceOptions, StoredRows } from '@sluice/clickhouse'
import type { InsertHealth } from './insert-health.ts'
import type { WorkerCounts } from './worker-counts.ts'

/** What a worker does at ClickHouse to insert a batch. */
export interface InsertSteps {
  readonly checkClock: () => Promise<void>
  readonly frameInserter: Pick<FrameInserter, 'insert'> & Partial<Pick<FrameInserter, 'isRunning'>>
  readonly storedRows: Pick<StoredRows, 'find'>
}

export interface ObservedClickHouse extends Omit<InsertSteps, 'checkClock'> {
  readonly beforeAttempt: InsertOnceOptions['beforeAttempt']
  /** Whether inserts succeed, without a batch. @throws if not */
  readonly insertNothing: () => Promise<void>
}

/** The same steps, counted. The worker's health learns which of them fail. */
export function observeSteps(
  health: Pick<InsertHealth, 'observe' | 'observeStep'>,
  counts: Pick<WorkerCounts, 'insert' | 'lookUp'>,
  { checkClock, frameInserter, storedRows }: InsertSteps,
): ObservedClickHouse {
  const insert: FrameInserter['insert'] = (...args) =>
    health.observe(() => counts.insert(() => frameInserter.insert(...args)))
  const beforeAttempt = (): Promise<void> => health.observeStep(checkClock)
  return {
    beforeAttempt,
    frameInserter: {
      insert,
      isRunning: async (token) => (await frameInserter.isRunning?.(token)) === true,
    },
    storedRows: { find: (frames) => health.observeStep(() => counts.lookUp(() => storedRows.find(frames))) },
    insertNothing: async () => {
      await beforeAttempt()
      await insert([], 'probe')
    },
  }
}
