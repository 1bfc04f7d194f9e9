import { describeError } from '@sluice/clickhouse'
import { parseTraceparent, type Span, type Traces } from '@sluice/traces'
import { type Batch, batchIdOf, rowsOf, type Stage } from './batch.ts'
import type { WorkerEvents } from './worker-events.ts'

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

/**
 * Makes the spans of batches with traced chunks. A batch gathers chunks of several traces, so its span begins a trace of its own, with links
 * to them. The events must have the times of `performance.now()`.
 *
 * For each batch: none → open (a new batch is inserted, or a repair has loaded the batch) → ended, when the batch is finished or must wait.
 * The next repair opens another span.
 */
export function traceBatches(traces: Traces, events: Pick<WorkerEvents, 'on'>): void {
  /** By the id of the batch. A worker has few batches in work, and no span is open while a batch waits. */
  const open = new Map<string, { readonly span: Span; inserts: number }>()

  function begin(batch: Batch, shard: number, startMs: number, repair: number): void {
    const links = batch.chunks.flatMap(({ trace }) => (trace && parseTraceparent(trace)) || [])
    if (links.length === 0) return
    const attributes = {
      [batchAttributes.batchId]: batch.id,
      [batchAttributes.chunks]: batch.chunks.length,
      [batchAttributes.tracedChunks]: links.length,
      [batchAttributes.rows]: rowsOf(batch),
      [batchAttributes.repair]: repair,
      [batchAttributes.shard]: shard,
    }
    const span = traces.start({ name: 'batch', kind: 'consumer', startMs, links, attributes })
    open.set(batch.id, { span, inserts: 0 })
  }

  function end(batchId: string, result: Stage['at'] | 'failed', error?: unknown): void {
    const ended = open.get(batchId)
    if (ended === undefined) return
    open.delete(batchId)
    ended.span.set({
      [batchAttributes.result]: result,
      [batchAttributes.inserts]: ended.inserts,
      [batchAttributes.error]: error === undefined ? undefined : describeError(error),
    })
    ended.span.end(result === 'failed' ? 'error' : undefined)
  }

  events.on('step started', ({ from, shard }) => {
    if (from.at === 'claimed') begin(from.batch, shard, from.sinceMs, 0)
  })
  events.on('step ended', ({ from, shard, startedMs }, result) => {
    const id = batchIdOf(from)
    if ('error' in result) return end(id, 'failed', result.error)
    const { to } = result
    if (to.at === 'loaded' || to.at === 'rejected') {
      // A batch that was rejected as a whole has its span already.
      if (!open.has(id)) begin(to.batch, shard, startedMs, to.batch.repair)
    } else if (to.at !== 'stored') end(id, to.at)
  })
  // A token is the id of the batch. The token of a part also says which part it is.
  events.on('query started', ({ token = '' }) => {
    const inserting = open.get(token.split('/', 1)[0] ?? '')
    if (inserting !== undefined) inserting.inserts += 1
  })
}
