import { formatTraceparent, type Span, type Traces } from '@sluice/traces'

/** A chunk with at least one traced request. */
export interface TracedChunk {
  readonly chunkId: string
  /** When its first request arrived, on the clock of `performance.now()`. */
  readonly sinceMs: number
  readonly rows: number
  /** Of its rows, before compression. */
  readonly bytes: number
  /** The spans of its traced requests. */
  readonly requests: readonly Span[]
}

/** How an add has ended: the chunk is in the queue, or nothing was stored, because there were records already. */
type AddResult = 'added' | 'not added'

/** The span of a chunk, from its first request to the answer of Redis. */
export interface ChunkSpan {
  /** For `encodeChunk`. */
  readonly traceparent: string
  /** @param shard undefined if it is not known */
  ended(result: AddResult, shard: number | undefined): void
  failed(error: unknown): void
}

/** The attributes of a chunk's span. */
export const chunkAttributes = {
  chunkId: 'sluice.chunk.id',
  rows: 'sluice.chunk.rows',
  bytes: 'sluice.chunk.bytes',
  requests: 'sluice.chunk.traced_requests',
  result: 'sluice.chunk.result',
  shard: 'sluice.shard',
  error: 'error.type',
} as const

/**
 * Makes the spans of chunks. A chunk gathers requests of several traces, so its span begins a trace of its own. It has links to the
 * requests, and they have links to it.
 */
export class ChunkSpans {
  readonly #traces: Traces

  constructor(traces: Traces) {
    this.#traces = traces
  }

  start({ chunkId, sinceMs, rows, bytes, requests }: TracedChunk): ChunkSpan {
    const span = this.#traces.start({
      name: 'chunk',
      kind: 'producer',
      startMs: sinceMs,
      links: requests.map(({ context }) => context),
      attributes: {
        [chunkAttributes.chunkId]: chunkId,
        [chunkAttributes.rows]: rows,
        [chunkAttributes.bytes]: bytes,
        [chunkAttributes.requests]: requests.length,
      },
    })
    for (const request of requests) request.link(span.context)
    return {
      traceparent: formatTraceparent(span.context),
      ended: (result, shard) => {
        span.set({ [chunkAttributes.result]: result, [chunkAttributes.shard]: shard })
        span.end()
      },
      failed: (error) => {
        span.set({ [chunkAttributes.error]: error instanceof Error ? error.name : 'unknown' })
        span.end('error')
      },
    }
  }
}
