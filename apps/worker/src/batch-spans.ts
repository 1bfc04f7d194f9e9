import { describeError } from '@sluice/clickhouse'
import { parseTraceparent, type Span, type Traces } from '@sluice/traces'
import { type Batch, batchIdOf, rowsOf, type Stage } from './batch.ts'
import type { Step, WorkerEventMap, WorkerEvents } from './worker-events.ts'

/** The attributes of the span of a batch. */
export const batchAttributes = {
  batchId: 'sluice.batch.id',
  chunks: 'sluice.batch.chunks',
  tracedChunks: 'sluice.batch.traced_chunks',
  rows: 'sluice.batch.rows',
  repair: 'sluice.batch.repair',
  inserts: 'sluice.batch.inserts',
  result: 'sluice.batch.result',
  shard: 'sluice.shard',
  error: 'error.type',
} as const

/** What one worker does with one batch without a pause. */
interface OpenBatch {
  readonly span: Span
  inserts: number
}

type Result = WorkerEventMap['step ended'][1]

/** The events must have the times of `performance.now()`. */
export function traceBatches(traces: Traces, events: Pick<WorkerEvents, 'on'>): void {
  const spans = new BatchSpans(traces)
  events.on('step started', (step) => spans.stepStarted(step))
  events.on('step ended', (step, result) => spans.stepEnded(step, result))
  events.on('query started', ({ token }) => spans.insertStarted(token))
}

/**
 * Makes the spans of batches with traced chunks. A batch gathers chunks of several traces, so its span begins a trace of its own, with links
 * to them.
 *
 * For each batch: none → open (a new batch is inserted, or a repair has loaded the batch) → ended, when the batch is finished or must wait.
 * The next repair opens another span.
 */
class BatchSpans {
  readonly #traces: Traces
  /** By the id of the batch. A worker has few batches in work, and no span is open while a batch waits. */
  readonly #open = new Map<string, OpenBatch>()

  constructor(traces: Traces) {
    this.#traces = traces
  }

  stepStarted({ from, shard }: Step): void {
    if (from.at === 'claimed') this.#begin(from.batch, shard, from.sinceMs, 0)
  }

  stepEnded({ from, shard, startedMs }: Step, result: Result): void {
    const id = batchIdOf(from)
    if ('error' in result) return this.#end(id, 'failed', result.error)
    const { to } = result
    if (to.at === 'loaded' || to.at === 'rejected') {
      // A batch that was rejected as a whole has its span already.
      if (!this.#open.has(id)) this.#begin(to.batch, shard, startedMs, to.batch.repair)
    } else if (to.at !== 'stored') this.#end(id, to.at)
  }

  #begin(batch: Batch, shard: number, startMs: number, repair: number): void {
    const links = batch.chunks.flatMap(({ trace }) => (trace && parseTraceparent(trace)) || [])
    if (links.length === 0) return
    const span = this.#traces.start({
      name: 'batch',
      kind: 'consumer',
      startMs,
      links,
      attributes: {
        [batchAttributes.batchId]: batch.id,
        [batchAttributes.chunks]: batch.chunks.length,
        [batchAttributes.tracedChunks]: links.length,
        [batchAttributes.rows]: rowsOf(batch),
        [batchAttributes.repair]: repair,
        [batchAttributes.shard]: shard,
      },
    })
    this.#open.set(batch.id, { span, inserts: 0 })
  }

  #end(batchId: string, result: Stage['at'] | 'failed', error?: unknown): void {
    const open = this.#open.get(batchId)
    if (open === undefined) return
    this.#open.delete(batchId)
    open.span.set({
      [batchAttributes.result]: result,
      [batchAttributes.inserts]: open.inserts,
      [batchAttributes.error]: error === undefined ? undefined : describeError(error),
    })
    open.span.end(result === 'failed' ? 'error' : undefined)
  }

  /** @param token that of the batch, or of a part of it: the id of the batch and what the part is */
  insertStarted(token = ''): void {
    const open = this.#open.get(token.split('/', 1)[0] ?? '')
    if (open !== undefined) open.inserts += 1
  }
}
