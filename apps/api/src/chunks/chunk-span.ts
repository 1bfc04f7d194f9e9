import { formatTraceparent, type Span, type Traces } from '@sluice/traces'

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
 * The span of a chunk, if one of its requests is traced. It gathers requests of several traces, so its span begins a trace of its own. It has
 * links to the requests, and they have links to it.
 */
export class ChunkSpan {
  readonly #traces: Traces
  readonly #requests: Span[] = []
  #span: Span | undefined

  constructor(traces: Traces) {
    this.#traces = traces
  }

  gather(request: Span): void {
    this.#requests.push(request)
  }

  /**
   * @param chunk with the time at which its first request arrived, on the clock of `performance.now()`, and its bytes before compression
   * @returns the traceparent of the chunk, if one of its requests is traced
   */
  sent(
    chunkId: string,
    { sinceMs, rows, bytes }: { readonly sinceMs: number; readonly rows: number; readonly bytes: number },
  ): string | undefined {
    if (this.#requests.length === 0) return undefined
    const span = this.#traces.start({
      name: 'chunk',
      kind: 'producer',
      startMs: sinceMs,
      links: this.#requests.map(({ context }) => context),
      attributes: {
        [chunkAttributes.chunkId]: chunkId,
        [chunkAttributes.rows]: rows,
        [chunkAttributes.bytes]: bytes,
        [chunkAttributes.requests]: this.#requests.length,
      },
    })
    for (const request of this.#requests) request.link(span.context)
    this.#span = span
    return formatTraceparent(span.context)
  }

  /** Redis has the chunk, or nothing was stored, because there were records already. */
  answered(isAdded: boolean, shard: number): void {
    this.#span?.set({
      [chunkAttributes.result]: isAdded ? 'added' : 'not added',
      [chunkAttributes.shard]: shard,
    })
    this.#span?.end()
  }

  /** Redis may or may not have the chunk. Its requests are rejected. */
  failed(error: unknown): void {
    this.#span?.set({ [chunkAttributes.error]: error instanceof Error ? error.name : 'unknown' })
    this.#span?.end('error')
  }
}
