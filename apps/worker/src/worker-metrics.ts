import { classifyInsertError } from '@sluice/clickhouse'
import { LabelledCounts, type Metrics, type ProcessReport, type RecentLag } from '@sluice/ops'
import { idTimeMs } from '@sluice/rows'
import type { WorkerEvents } from './worker-events.ts'

/** ClickHouse has hundreds of errors. Few of them happen in an installation, and few operations are retried. */
const LABELS_MAX = 50

/** An insert is given up after a minute without a response. */
const INSERT_BUCKETS_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
/** From a batch that did not wait to a backlog of a day. */
const LAG_BUCKETS_S = [0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400]

/** The state of a worker that metrics show. */
export interface WorkerState {
  readonly chunksHeld: () => number
  readonly isInserting: () => boolean
  /** The clock of the ids of chunks, ms since 1970. */
  readonly wallMs: () => number
  readonly monotonicMs: () => number
}

/**
 * Exports what a worker does. docs/metrics.md describes each metric.
 *
 * @returns what the worker reports: the lag of the chunks that were stored in the last minute, and the rows of confirmed batches
 */
export function exportWorker(
  metrics: Metrics,
  events: WorkerEvents,
  state: WorkerState,
): () => Pick<ProcessReport, 'lag' | 'counts'> {
  const { chunksHeld, isInserting, wallMs, monotonicMs } = state
  countEvents(metrics, events, monotonicMs)
  metrics.gauge({ name: 'sluice_worker_chunks_held', help: 'Chunks in hand.' }, chunksHeld)
  metrics.gauge({ name: 'sluice_worker_inserting', help: '0 while no insert of this worker succeeds.' }, () =>
    Number(isInserting()),
  )
  const recentLag = new LagWindow(monotonicMs)
  const lag = metrics.histogram(
    {
      name: 'sluice_lag_seconds',
      help: 'For each chunk: from the receipt of its first row to the moment at which its rows can be queried.',
    },
    LAG_BUCKETS_S,
  )
  events.on('batch stored', (chunks) => {
    const nowMs = wallMs()
    for (const { id } of chunks) {
      const seconds = Math.max(0, nowMs - idTimeMs(id)) / 1_000
      lag(seconds)
      recentLag.add(seconds)
    }
  })
  const counts = { stored: 0, deadLettered: 0 }
  const inserted = { name: 'sluice_rows_inserted_total', help: 'Rows of confirmed batches.' }
  metrics.counter(inserted, () => counts.stored)
  const deadLettered = { name: 'sluice_rows_dead_lettered_total', help: 'Rows that are dead letters.' }
  metrics.counter(deadLettered, () => counts.deadLettered)
  events.on('batch finished', ({ rows }) => {
    counts.stored += rows?.inserted ?? 0
    counts.deadLettered += rows?.deadLettered ?? 0
  })
  return () => ({ lag: recentLag.read(), counts: { ...counts } })
}

function countEvents(metrics: Metrics, events: WorkerEvents, monotonicMs: () => number): void {
  const counter = (name: string, help: string): (() => void) => {
    let count = 0
    metrics.counter({ name, help }, () => count)
    return () => void (count += 1)
  }
  const labelled = (name: string, help: string, label: string): LabelledCounts => {
    const counts = new LabelledCounts(LABELS_MAX)
    metrics.counter({ name, help, labels: [label] }, () => counts)
    return counts
  }
  events.on('repair started', counter('sluice_batches_recovered_total', 'Repairs of batches that began.'))
  events.on('range split', counter('sluice_batch_splits_total', 'Ranges of rows that were split.'))
  const viewFailed = counter('sluice_view_failures_total', 'Inserts whose rows a materialized view lacks.')
  events.on('stored despite error', viewFailed)
  const retries = labelled('sluice_retries_total', 'Failed steps that were retried.', 'step')
  events.on('attempt failed', (message) => retries.add(message))
  const lookedUp = counter('sluice_row_lookups_total', 'Queries for rows that may be stored.')
  const errors = labelled('sluice_insert_errors_total', 'Failed inserts and lookups.', 'code')
  const insertSeconds = metrics.histogram(
    { name: 'sluice_insert_duration_seconds', help: 'Each insert.', label: 'result', of: ['ok', 'error'] },
    INSERT_BUCKETS_S,
  )
  let inFlight = 0
  const inFlightMetric = 'sluice_worker_inserts_in_flight'
  metrics.gauge({ name: inFlightMetric, help: 'Inserts that wait for ClickHouse.' }, () => inFlight)
  events.on('query started', ({ kind }) => {
    if (kind === 'insert') inFlight += 1
    if (kind === 'lookup') lookedUp()
  })
  events.on('query ended', ({ kind, startedMs }, failure) => {
    if (kind === 'clock') return
    if (failure !== undefined) errors.add(classifyInsertError(failure.error).code)
    if (kind === 'lookup') return
    inFlight -= 1
    insertSeconds((monotonicMs() - startedMs) / 1_000, failure === undefined ? 'ok' : 'error')
  })
}

/** The lag covers this time, at least. */
const WINDOW_MS = 60_000
/** What is older is forgotten in parts of this length. */
const PART_MS = 5_000

/** The lag of the chunks that a worker has stored in the last minute. */
export class LagWindow {
  readonly #monotonicMs: () => number
  /** By the number of the part, the oldest first. */
  readonly #parts = new Map<number, { chunks: number; sumS: number; maxS: number }>()

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /** Counts a chunk. */
  add(seconds: number): void {
    const part = this.#forget()
    const { chunks, sumS, maxS } = this.#parts.get(part) ?? { chunks: 0, sumS: 0, maxS: 0 }
    this.#parts.set(part, { chunks: chunks + 1, sumS: sumS + seconds, maxS: Math.max(maxS, seconds) })
  }

  /** Undefined if no chunk was stored in the last minute. */
  read(): RecentLag | undefined {
    this.#forget()
    const parts = [...this.#parts.values()]
    if (parts.length === 0) return undefined
    const chunks = parts.reduce((sum, part) => sum + part.chunks, 0)
    const sumS = parts.reduce((sum, part) => sum + part.sumS, 0)
    return { chunks, meanS: round(sumS / chunks), maxS: round(Math.max(...parts.map((part) => part.maxS))) }
  }

  /** @returns the number of the present part */
  #forget(): number {
    const now = Math.floor(this.#monotonicMs() / PART_MS)
    for (const part of this.#parts.keys()) if (part < now - WINDOW_MS / PART_MS) this.#parts.delete(part)
    return now
  }
}

const round = (seconds: number): number => Math.round(seconds * 1_000) / 1_000
