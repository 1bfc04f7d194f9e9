import { rowKey } from '@sluice/rows'
import type { Logger } from '@sluice/runtime'

/** A chunk has up to 2,000 requests. One line with all of them could be half a megabyte. */
export const REQUESTS_PER_LINE_MAX = 50

/** The rows of a request in a chunk. */
export interface TracedRequest {
  readonly requestId: string
  readonly entries: number
  /** The ids of an API process ascend. Only requests that were parsed in slices may have ids between those of others. */
  readonly firstEntryId: string
  readonly lastEntryId: string
}

/** Logs which requests are in which chunk, at level debug. Workers log the batch of each chunk. */
export class ChunkTrace {
  readonly #logger: Logger

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** @param text the rows of the request, each with its newline */
  describe(requestId: string, entries: number, text: Buffer): TracedRequest {
    const lastAt = text.lastIndexOf('\n', text.length - 2) + 1
    return { requestId, entries, firstEntryId: firstId(text), lastEntryId: firstId(text.subarray(lastAt)) }
  }

  /** Redis has the chunk. */
  added(chunkId: string, requests: readonly TracedRequest[]): void {
    for (const some of inLines(requests)) this.#logger.debug({ chunkId, requests: some }, 'chunk added')
  }

  /** Redis may or may not have the chunk. Its requests are rejected. */
  failed(chunkId: string, requests: readonly TracedRequest[], error: unknown): void {
    const reason = error instanceof Error ? error.name : 'unknown'
    for (const some of inLines(requests))
      this.#logger.debug({ chunkId, requests: some, reason }, 'chunk not acknowledged')
  }
}

/** Undefined if nothing would be logged, so that nothing is gathered for it. The level is that of the start of the process. */
export function chunkTrace(logger: Logger): ChunkTrace | undefined {
  return logger.isLevelEnabled('debug') ? new ChunkTrace(logger) : undefined
}

/** The id of the first row. It is before the columns that may be long. */
function firstId(text: Buffer): string {
  return rowKey(text.toString('latin1', 0, Math.min(text.length, KEY_BYTES_MAX))).id
}

/** More than the columns up to the id: a project id, a time, a date and an id. */
const KEY_BYTES_MAX = 256

function inLines(requests: readonly TracedRequest[]): TracedRequest[][] {
  const lines: TracedRequest[][] = []
  for (let from = 0; from < requests.length; from += REQUESTS_PER_LINE_MAX)
    lines.push(requests.slice(from, from + REQUESTS_PER_LINE_MAX))
  return lines
}
