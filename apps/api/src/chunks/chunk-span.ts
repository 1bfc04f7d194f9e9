import { formatTraceparent, type Span, type Traces } from '@sluice/traces'

export const chunkAttributes = {
  chunkId: 'sluice.chunk.id',
  rows: 'sluice.chunk.rows',
  bytes: 'sluice.chunk.bytes',
  requests: 'sluice.chunk.traced_requests',
  result: 'sluice.chunk.result',
  shard: 'sluice.shard',
  error: 'error.type',
} as const

/** The span of a chunk, if one of its requests is traced. Its requests have several traces, so it begins one of its own, linked with them. */
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

  /** @returns the traceparent of the chunk, if one of its requests is traced */
  sent(
    chunkId: string,
    { sinceMs, rows, bytes }: Readonly<Record<'sinceMs' | 'rows' | 'bytes', number>>,
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
