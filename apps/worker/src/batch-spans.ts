import { describeError } from '@sluice/clickhouse'
import { parseTraceparent, type Span, type Traces } from '@sluice/traces'
import { type Batch, batchIdOf, rowsOf, type Stage } from './batch.ts'
import type { Query, Step, WorkerEventMap, WorkerEvents } from './worker-events.ts'

/** Spans of inserts per batch. A batch that is inserted in parts may need thousands of inserts; all of them are counted. */
export const INSERT_SPANS_MAX = 20

/** The attributes of the spans of a batch and of its inserts. */
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
  system: 'db.system.name',
  operation: 'db.operation.name',
  table: 'db.collection.name',
  queryId: 'sluice.insert.query_id',
  token: 'sluice.insert.token',
  insertRows: 'sluice.insert.rows',
  insertBytes: 'sluice.insert.compressed_bytes',
} as const

/** What one worker does with one batch without a pause. */
interface OpenBatch {
  readonly span: Span
  readonly batch: Batch
  inserts: number
}

type Result = WorkerEventMap['step ended'][1]
type Insert = Extract<Query, { readonly kind: 'insert' }>

/** The events must have the times of `performance.now()`. */
export function traceBatches(traces: Traces, events: Pick<WorkerEvents, 'on'>): void {
  const spans = new BatchSpans(traces)
  events.on('step started', (step) => spans.stepStarted(step))
  events.on('step ended', (step, result) => spans.stepEnded(step, result))
  events.on('query started', (query) => query.kind === 'insert' && spans.insertStarted(query))
  events.on('query ended', (query, failure) => spans.insertEnded(query, failure))
}

/**
 * Makes the spans of batches with traced chunks, and of their inserts. A batch gathers chunks of several traces, so its span begins a trace
 * of its own, with links to them.
 *
 * For each batch: none → open (a new batch is inserted, or a repair has loaded the batch) → ended, when the batch is finished or must wait.
 * The next repair opens another span.
 */
class BatchSpans {
  readonly #traces: Traces
  /** By the id of the batch. A worker has few batches in work, and no span is open while a batch waits. */
  readonly #open = new Map<string, OpenBatch>()
  readonly #inserts = new Map<Query, Span>()

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
    this.#open.set(batch.id, { span, batch, inserts: 0 })
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

  insertStarted(insert: Insert): void {
    const { frames, token, queryId } = insert
    const open = this.#open.get(token.split('/', 1)[0] ?? '')
    if (open === undefined) return
    open.inserts += 1
    if (open.inserts > INSERT_SPANS_MAX) return
    const { span, batch } = open
    const isWhole = token === batch.id && frames.length === batch.chunks.length
    const child = this.#traces.start({
      name: 'insert',
      kind: 'client',
      startMs: insert.startedMs,
      parent: span.context,
      attributes: {
        [batchAttributes.system]: 'clickhouse',
        [batchAttributes.operation]: 'INSERT',
        [batchAttributes.table]: 'logs',
        [batchAttributes.queryId]: queryId,
        [batchAttributes.token]: token,
        // Nothing between the API and ClickHouse counts rows again, so the number is known of a whole batch only.
        [batchAttributes.insertRows]: isWhole ? rowsOf(batch) : undefined,
        [batchAttributes.insertBytes]: frames.reduce((sum, { length }) => sum + length, 0),
      },
    })
    this.#inserts.set(insert, child)
  }

  insertEnded(query: Query, failure: { readonly error: unknown } | undefined): void {
    const span = this.#inserts.get(query)
    this.#inserts.delete(query)
    if (failure !== undefined) span?.set({ [batchAttributes.error]: describeError(failure.error) })
    span?.end(failure && 'error')
  }
}
