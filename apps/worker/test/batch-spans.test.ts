import { RecordedTraces } from '@sluice/harness/recorded-traces'
import { beforeEach, describe, expect, it } from 'vitest'
import { traceBatches } from '../src/batch-spans.ts'
import type { Batch, BatchInRepair, Recovery, Stage } from '../src/batch.ts'
import { RequeueError } from '../src/retrier.ts'
import { type Step, WorkerEvents } from '../src/worker-events.ts'
import { makeChunk } from './support/chunks.ts'

const context = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }
const trace = `00-${context.traceId}-${context.spanId}-01`

const chunks = [{ ...makeChunk('a'), trace }, makeChunk('b'), { ...makeChunk('c'), trace: 'x'.repeat(55) }]
const batch: Batch = { id: 'B', chunks, splits: new Set() }
const inRepair: BatchInRepair = { ...batch, repair: 3 }
const recovery: Recovery = {
  batchId: 'B',
  chunkIds: ['a', 'b', 'c'],
  lastRepair: 2,
  unsettledUntilMs: 0,
}
const claimed = { at: 'claimed', batch, sinceMs: 5 } as const
const recovering = { at: 'recovering', recovery } as const
const loaded = { at: 'loaded', recovery, batch: inRepair } as const
const rejected = { at: 'rejected', recovery, batch: inRepair } as const
const stored = { at: 'stored', stored: { id: 'B', members: ['a', 'b', 'c'] }, repair: 0 } as const
const waiting = { at: 'waiting', recovery } as const

let traces: RecordedTraces
let events: WorkerEvents
beforeEach(() => {
  traces = new RecordedTraces()
  events = new WorkerEvents()
  traceBatches(traces, events)
})

/** A step with this result, during which the inserts have these tokens. */
function step(from: Step['from'], result: Stage | Error, ...tokens: string[]): void {
  const made = { shard: 4, from, startedMs: 6 }
  events.emit('step started', made)
  for (const token of tokens) {
    const query = { kind: 'insert', startedMs: 6, token } as const
    events.emit('query started', query)
    events.emit('query ended', query, undefined)
  }
  events.emit('step ended', made, result instanceof Error ? { error: result } : { to: result })
}

// test/traces.system.test.ts checks the spans of requests, chunks and batches together.

describe('a new batch', () => {
  it('with a traced chunk has a span with a link to it', () => {
    step(claimed, stored, 'B')
    const [span, ...others] = traces.spans
    expect([others, span?.ended]).toEqual([[], undefined])
    step(stored, { at: 'done' })
    expect(span?.options).toMatchObject({ name: 'batch', kind: 'consumer', startMs: 5 })
    expect(span?.links).toMatchObject([context])
    expect(span?.attributes).toMatchObject({ 'sluice.batch.traced_chunks': 1, 'sluice.batch.rows': 3 })
    expect(span?.ended).toBe('ok')
  })

  it('without a traced chunk has no span', () => {
    const untraced = { ...batch, chunks: chunks.slice(1) }
    step({ ...claimed, batch: untraced }, stored, 'B')
    step(stored, { at: 'done' })
    expect(traces.spans).toEqual([])
  })

  it('that fails has a span with the error', () => {
    step(claimed, new RequeueError('stopping'))
    expect(traces.spans[0]?.attributes).toMatchObject({ 'sluice.batch.result': 'failed' })
    expect(traces.spans[0]?.attributes['error.type']).toContain('stopping')
    expect(traces.spans[0]?.ended).toBe('error')
  })
})

it('each repair has a span, which counts its inserts, by parts too', () => {
  step(recovering, loaded)
  step(loaded, waiting, 'B')
  step(recovering, loaded)
  step(loaded, rejected, 'B')
  step(rejected, stored, 'B/0-1', 'B/1-3')
  step(stored, { at: 'done' })
  const results = ['result', 'repair', 'inserts'].map((name) => `sluice.batch.${name}`)
  expect(traces.named('batch').map(({ attributes }) => results.map((name) => attributes[name]))).toEqual([
    ['waiting', 3, 1],
    ['done', 3, 3],
  ])
})
