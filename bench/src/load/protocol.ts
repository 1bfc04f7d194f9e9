import type { RequestShare } from '../scenarios.ts'

/** What the load generator's process is told, and what it answers. One command is under way at a time. */
export type Command =
  | ({ readonly kind: 'prepare' } & Preparation)
  | ({ readonly kind: 'run' } & (ClosedLoop | OpenLoop))

export interface Preparation {
  /** Where requests are posted to. */
  readonly url: string
  readonly apiKey: string
  readonly requests: readonly RequestShare[]
  /** A folder of log files to take the messages from. */
  readonly corpus: string | undefined
  readonly seed: number
}

/** Each connection sends its next request when it has the answer to the last one: as much as the system takes. */
export interface ClosedLoop {
  readonly loop: 'closed'
  readonly connections: number
  readonly durationMs: number
  /** Ends the run earlier, once so many entries were accepted. */
  readonly entriesMax: number | undefined
}

/** Requests are due at times that do not depend on the answers, as those of many independent clients are. */
export interface OpenLoop {
  readonly loop: 'open'
  readonly connections: number
  readonly durationMs: number
  readonly entriesPerS: number
}

export type Answer =
  | { readonly kind: 'prepared'; readonly facts: PoolFacts }
  | { readonly kind: 'progress'; readonly progress: Progress }
  | { readonly kind: 'finished'; readonly result: LoadResult }
  | { readonly kind: 'failed'; readonly message: string }

/** What the pre-built requests are like. */
export interface PoolFacts {
  readonly requests: number
  readonly entries: number
  /** Of the JSON as it is sent. */
  readonly bytesPerEntry: number
}

/** How many entries of this run were acknowledged by a time. */
export interface Progress {
  /** Milliseconds since the epoch, with fractions. */
  readonly atMs: number
  readonly accepted: number
}

export interface LoadResult {
  /** When the first request was sent, in milliseconds since the epoch. */
  readonly startedAtMs: number
  /** How long requests were sent. */
  readonly windowMs: number
  /** Entries acknowledged within the window. */
  readonly acceptedInWindow: number
  /** Entries acknowledged at all: those of the window, and of requests that were under way at its end. */
  readonly accepted: number
  /** Entries that were due in the window. Closed loop: those that were sent. */
  readonly due: number
  /** Those of them that found no free connection in the window, and so were never sent. */
  readonly unsent: number
  /** Requests that were not answered with 202, by their status; `none` got no answer. */
  readonly refused: Readonly<Record<string, number>>
  /** The end of the first answer that was not a 202. */
  readonly refusal?: string | undefined
  /**
   * From when a request was due to its answer. In an open loop this includes the wait for a free connection and for the
   * generator itself, so a system that stalls cannot hide it (no coordinated omission). In a closed loop a request is
   * due when it is sent.
   */
  readonly latencyMs: Percentiles
  /** CPU time that the generator itself took. */
  readonly cpuMs: number
}

export interface Percentiles {
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}
