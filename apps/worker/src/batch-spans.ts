import { describeError, type FrameInserter, queryIds } from '@sluice/clickhouse'
import { parseTraceparent, type Span, type SpanContext, type Traces } from '@sluice/traces'
import { type Batch, type BatchInRepair, rowsOf, type Stage } from './batch.ts'

/** Spans of inserts per batch. One that is inserted in parts may need thousands of inserts; all of them are counted. */
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

type OpenStage = Exclude<Stage, { readonly at: 'done' }>

/** Makes the spans of a shard's batches. */
export interface ShardSpans {
  /** Runs a step of a batch. Its result and its error are those of `run`. */
  step(stage: OpenStage, run: () => Promise<Stage>): Promise<Stage>
}

/**
 * Makes the spans of batches with traced chunks, and of their inserts. A batch gathers chunks of several traces, so its span begins a trace
 * of its own, with links to them.
 *
 * For each batch: none → open (a new batch is inserted, or a repair has loaded the batch) → ended, when the batch is finished or must wait.
 * The next repair opens another span.
 */
export class BatchSpans {
  readonly #traces: Traces
  readonly #monotonicMs: () => number
  /** By the id of the batch. A worker has few batches in work, and no span is open while a batch waits. */
  readonly #open = new Map<string, OpenBatch>()

  /** @param monotonicMs the clock of `performance.now()` */
  constructor(traces: Traces, monotonicMs: () => number) {
    this.#traces = traces
    this.#monotonicMs = monotonicMs
  }

  ofShard(shard: number): ShardSpans {
    return { step: (stage, run) => this.#step(shard, stage, run) }
  }

  /** The same inserter. Its inserts of batches with a span have one, too. */
  inserter(
    inserter: Pick<FrameInserter, 'insert' | 'isRunning'>,
  ): Pick<FrameInserter, 'insert' | 'isRunning'> {
    return {
      insert: (frames, token, givenId?: string) => {
        const queryId = givenId ?? queryIds.rows(token)
        const run = (): Promise<void> => inserter.insert(frames, token, queryId)
        const [batchId = ''] = token.split('/', 1)
        const open = this.#open.get(batchId)
        return open === undefined ? run() : this.#insert(open, { frames, token, queryId }, run)
      },
      isRunning: (token) => inserter.isRunning(token),
    }
  }

  async #step(shard: number, stage: OpenStage, run: () => Promise<Stage>): Promise<Stage> {
    const id = batchIdOf(stage)
    if (stage.at === 'claimed') this.#begin(stage.batch, { shard, startMs: stage.sinceMs, repair: 0 })
    const startMs = this.#monotonicMs()
    try {
      const next = await run()
      if (next.at === 'loaded' || next.at === 'rejected') this.#beginRepair(next.batch, shard, startMs)
      else if (next.at !== 'stored') this.#end(id, next.at)
      return next
    } catch (error) {
      this.#end(id, 'failed', error)
      throw error
    }
  }

  /** A batch that was rejected as a whole has its span already. */
  #beginRepair(batch: BatchInRepair, shard: number, startMs: number): void {
    if (!this.#open.has(batch.id)) this.#begin(batch, { shard, startMs, repair: batch.repair })
  }

  #begin(batch: Batch, { shard, startMs, repair }: { shard: number; startMs: number; repair: number }): void {
    const links = batch.chunks.flatMap(({ trace }) => contextOf(trace) ?? [])
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

  async #insert(open: OpenBatch, insert: Insert, run: () => Promise<void>): Promise<void> {
    open.inserts += 1
    if (open.inserts > INSERT_SPANS_MAX) return run()
    const span = this.#startInsert(open, insert)
    try {
      await run()
      span.end()
    } catch (error) {
      span.set({ [batchAttributes.error]: describeError(error) })
      span.end('error')
      throw error
    }
  }

  #startInsert({ span, batch }: OpenBatch, { frames, token, queryId }: Insert): Span {
    const isWhole = token === batch.id && frames.length === batch.chunks.length
    return this.#traces.start({
      name: 'insert',
      kind: 'client',
      startMs: this.#monotonicMs(),
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
  }
}

interface Insert {
  readonly frames: readonly Buffer[]
  readonly token: string
  readonly queryId: string
}

function batchIdOf(stage: OpenStage): string {
  if ('recovery' in stage) return stage.recovery.batchId
  return 'batch' in stage ? stage.batch.id : stage.stored.id
}

/** Of the span of a chunk. Undefined for a chunk without one. */
function contextOf(trace: string | undefined): SpanContext | undefined {
  return trace === undefined ? undefined : parseTraceparent(trace)
}
