import { idsOfBlocks } from '@sluice/rows'
import type { Logger } from '@sluice/runtime'
import { formatTraceparent, type Span, type Traces } from '@sluice/traces'
import type { RequestOrigin } from '../traces/request-traces.ts'

/** A chunk has up to 2,000 requests. One line with all of them could be half a megabyte. */
export const REQUESTS_PER_LINE_MAX = 50

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

/** The rows of a request in a chunk. */
export interface FollowedRequest {
  readonly requestId: string
  readonly entries: number
  /** The ids of an API process ascend. The ids of two requests interleave only if one was parsed in slices. */
  readonly firstEntryId: string
  readonly lastEntryId: string
}

/**
 * Shows which requests are in which chunk: in the log at level debug, and with spans. Workers log the batch of each chunk.
 *
 * @returns follows a new chunk. Undefined if nothing would be shown, so that nothing is gathered for it. The level counts at the start of
 *   the process
 */
export function followChunks(logger: Logger, traces?: Traces): (() => FollowedChunk) | undefined {
  const debug = logger.isLevelEnabled('debug') ? logger : undefined
  return debug === undefined && traces === undefined ? undefined : () => new FollowedChunk(debug, traces)
}

/**
 * The requests of one chunk. It gathers requests of several traces, so its span begins a trace of its own. It has links to the requests, and
 * they have links to it.
 */
export class FollowedChunk {
  readonly #logger: Logger | undefined
  readonly #traces: Traces | undefined
  readonly #requests: FollowedRequest[] = []
  readonly #spans: Span[] = []
  #chunkId = ''
  #span: Span | undefined

  constructor(logger: Logger | undefined, traces: Traces | undefined) {
    this.#logger = logger
    this.#traces = traces
  }

  /** @param blocks the rows of the request */
  gather({ id, span }: RequestOrigin, entries: number, blocks: Buffer): void {
    if (span !== null) this.#spans.push(span)
    if (this.#logger === undefined) return
    const ids = idsOfBlocks(blocks)
    const [firstEntryId = '', lastEntryId = ''] = [ids.at(0), ids.at(-1)]
    this.#requests.push({ requestId: id, entries, firstEntryId, lastEntryId })
  }

  /**
   * @param chunk with the time at which its first request arrived, on the clock of `performance.now()`, and its bytes before compression
   * @returns the traceparent of the chunk, if one of its requests is traced
   */
  sent(
    chunkId: string,
    { sinceMs, rows, bytes }: { readonly sinceMs: number; readonly rows: number; readonly bytes: number },
  ): string | undefined {
    this.#chunkId = chunkId
    if (this.#traces === undefined || this.#spans.length === 0) return undefined
    const span = this.#traces.start({
      name: 'chunk',
      kind: 'producer',
      startMs: sinceMs,
      links: this.#spans.map(({ context }) => context),
      attributes: {
        [chunkAttributes.chunkId]: chunkId,
        [chunkAttributes.rows]: rows,
        [chunkAttributes.bytes]: bytes,
        [chunkAttributes.requests]: this.#spans.length,
      },
    })
    for (const request of this.#spans) request.link(span.context)
    this.#span = span
    return formatTraceparent(span.context)
  }

  /** Redis has the chunk, or nothing was stored, because there were records already. */
  answered(isAdded: boolean, shard: number): void {
    if (isAdded) this.#log('chunk added')
    this.#span?.set({
      [chunkAttributes.result]: isAdded ? 'added' : 'not added',
      [chunkAttributes.shard]: shard,
    })
    this.#span?.end()
  }

  /** Redis may or may not have the chunk. Its requests are rejected. */
  failed(error: unknown): void {
    const reason = error instanceof Error ? error.name : 'unknown'
    this.#log('chunk not acknowledged', { reason })
    this.#span?.set({ [chunkAttributes.error]: reason })
    this.#span?.end('error')
  }

  #log(message: string, more: object = {}): void {
    for (let from = 0; from < this.#requests.length; from += REQUESTS_PER_LINE_MAX) {
      const requests = this.#requests.slice(from, from + REQUESTS_PER_LINE_MAX)
      this.#logger?.debug({ chunkId: this.#chunkId, requests, ...more }, message)
    }
  }
}
