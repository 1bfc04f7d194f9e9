import { classifyInsertError } from '@sluice/clickhouse'
import type { HeldChunk } from '@sluice/queue'
import { idTimeMs } from '@sluice/rows'
import { LabelledCounts, type Metrics } from '@sluice/ops'
import { LagWindow } from './lag-window.ts'

/** ClickHouse has hundreds of errors. Few of them happen in an installation. */
const ERROR_CODES_MAX = 50
/** The code names a few operations that are retried. */
const RETRIED_STEPS_MAX = 20

/** Distributions that a worker measures. Durations are in seconds. */
export interface WorkerDistributions {
  readonly batchRows: (rows: number) => void
  readonly batchBytes: (bytes: number) => void
  readonly batchWait: (seconds: number) => void
  readonly insert: (seconds: number, result: 'ok' | 'error') => void
  readonly lag: (seconds: number) => void
}

const ignore = (): void => undefined
const noDistributions: WorkerDistributions = {
  batchRows: ignore,
  batchBytes: ignore,
  batchWait: ignore,
  insert: ignore,
  lag: ignore,
}

/** What a worker has done since the process started. */
export class WorkerCounts {
  readonly retries = new LabelledCounts(RETRIED_STEPS_MAX)
  /** Failed inserts and lookups, by code. */
  readonly insertErrors = new LabelledCounts(ERROR_CODES_MAX)
  insertsInFlight = 0
  lookups = 0
  recoveries = 0
  splits = 0
  rowsInserted = 0
  rowsDeadLettered = 0
  /** From the receipt of rows until they can be queried, in the last minute. */
  readonly recentLag: LagWindow
  readonly #distributions: WorkerDistributions
  readonly #wallMs: () => number
  readonly #monotonicMs: () => number

  /** @param wallMs the clock of the ids of chunks, ms since 1970 */
  constructor(
    distributions = noDistributions,
    wallMs: () => number = Date.now,
    monotonicMs: () => number = () => performance.now(),
  ) {
    this.#distributions = distributions
    this.#wallMs = wallMs
    this.#monotonicMs = monotonicMs
    this.recentLag = new LagWindow(monotonicMs)
  }

  /** Counts and measures an insert. @throws what it throws */
  async insert<T>(insert: () => Promise<T>): Promise<T> {
    const startedMs = this.#monotonicMs()
    const seconds = (): number => (this.#monotonicMs() - startedMs) / 1_000
    this.insertsInFlight += 1
    try {
      const result = await this.#step(insert)
      this.#distributions.insert(seconds(), 'ok')
      return result
    } catch (error) {
      this.#distributions.insert(seconds(), 'error')
      throw error
    } finally {
      this.insertsInFlight -= 1
    }
  }

  /** Counts a lookup of stored rows. @throws what it throws */
  lookUp<T>(lookUp: () => Promise<T>): Promise<T> {
    this.lookups += 1
    return this.#step(lookUp)
  }

  /** A batch was taken to be claimed, this long after its first chunk was fetched. */
  batchTaken(waitMs: number): void {
    this.#distributions.batchWait(waitMs / 1_000)
  }

  /** All rows of a batch can be queried from now on. */
  stored(chunks: readonly HeldChunk[]): void {
    const { batchRows, batchBytes, lag } = this.#distributions
    batchRows(chunks.reduce((sum, { rows }) => sum + rows, 0))
    batchBytes(chunks.reduce((sum, { bytes }) => sum + bytes, 0))
    const nowMs = this.#wallMs()
    for (const { id } of chunks) {
      const seconds = Math.max(0, nowMs - idTimeMs(id)) / 1_000
      lag(seconds)
      this.recentLag.add(seconds)
    }
  }

  async #step<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step()
    } catch (error) {
      this.insertErrors.add(classifyInsertError(error).code)
      throw error
    }
  }
}

/** A batch waits for at most `BATCH_WAIT_MS`, and then for an insert slot. */
const WAIT_BUCKETS_S = [0.05, 0.1, 0.25, 0.5, 0.75, 1, 2, 5, 10, 30, 60]
/** An insert is given up after a minute without an answer. */
const INSERT_BUCKETS_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
/** From a batch that did not wait to a backlog of a day. */
const LAG_BUCKETS_S = [0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400]
const ROWS_BUCKETS = [1, 10, 100, 1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000]
const BYTES_BUCKETS = [1_000, 10_000, 100_000, 1_000_000, 4_000_000, 16_000_000, 64_000_000]

/** @param wallMs the clock of the ids of chunks, ms since 1970 */
export function countWorker(metrics: Metrics, wallMs: () => number): WorkerCounts {
  return new WorkerCounts(
    {
      batchRows: metrics.histogram(
        { name: 'sluice_batch_rows', help: 'Rows of each batch that was stored.' },
        ROWS_BUCKETS,
      ),
      batchBytes: metrics.histogram(
        { name: 'sluice_batch_bytes', help: 'Bytes of its rows before compression.' },
        BYTES_BUCKETS,
      ),
      batchWait: metrics.histogram(
        {
          name: 'sluice_batch_wait_seconds',
          help: 'From the fetch of the first chunk of a batch to its claim.',
        },
        WAIT_BUCKETS_S,
      ),
      insert: metrics.histogram(
        {
          name: 'sluice_insert_duration_seconds',
          help: 'Each insert.',
          label: 'result',
          of: ['ok', 'error'],
        },
        INSERT_BUCKETS_S,
      ),
      lag: metrics.histogram(
        {
          name: 'sluice_lag_seconds',
          help: 'For each chunk: from the receipt of its first row to the moment at which its rows can be queried.',
        },
        LAG_BUCKETS_S,
      ),
    },
    wallMs,
  )
}

/** The state of a worker that metrics show. */
export interface WorkerState {
  readonly chunksHeld: () => number
  readonly isInserting: () => boolean
}

/** Exports the counts of a worker. docs/metrics.md describes each. */
export function exportWorker(metrics: Metrics, counts: WorkerCounts, state: WorkerState): void {
  const counters: readonly [name: string, help: string, read: () => number][] = [
    ['sluice_rows_inserted_total', 'Rows of confirmed batches.', () => counts.rowsInserted],
    ['sluice_rows_dead_lettered_total', 'Rows that are dead letters.', () => counts.rowsDeadLettered],
    ['sluice_batches_recovered_total', 'Repairs of batches that began.', () => counts.recoveries],
    ['sluice_batch_splits_total', 'Ranges of rows that were split.', () => counts.splits],
    ['sluice_row_lookups_total', 'Queries for rows that may be stored.', () => counts.lookups],
  ]
  for (const [name, help, read] of counters) metrics.counter({ name, help }, read)
  metrics.counter(
    { name: 'sluice_retries_total', help: 'Failed steps that were retried.', labels: ['step'] },
    () => counts.retries,
  )
  metrics.counter(
    { name: 'sluice_insert_errors_total', help: 'Failed inserts and lookups.', labels: ['code'] },
    () => counts.insertErrors,
  )
  const gauges: readonly [name: string, help: string, read: () => number][] = [
    ['sluice_worker_chunks_held', 'Chunks in hand.', state.chunksHeld],
    ['sluice_worker_inserts_in_flight', 'Inserts that wait for ClickHouse.', () => counts.insertsInFlight],
    [
      'sluice_worker_inserting',
      '0 while no insert of this worker succeeds.',
      () => Number(state.isInserting()),
    ],
  ]
  for (const [name, help, read] of gauges) metrics.gauge({ name, help }, read)
}
