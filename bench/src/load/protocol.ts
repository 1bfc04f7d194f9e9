import type { BodyFormat, RequestShare } from './scenarios.ts'

/** Messages to the load generator's process. It executes one command at a time. */
export type Command =
  | ({ readonly kind: 'prepare' } & Preparation)
  | ({ readonly kind: 'run' } & (ClosedLoop | OpenLoop))

export interface Preparation {
  /** Where requests are posted to. */
  readonly url: string
  readonly apiKey: string
  readonly requests: readonly RequestShare[]
  /** Default: json. */
  readonly format?: BodyFormat
  readonly seed: number
}

/** Each connection sends its next request when it has the response to the last one: the highest load the system accepts. */
export interface ClosedLoop {
  readonly loop: 'closed'
  readonly connections: number
  readonly durationMs: number
}

/** Requests are due at times that do not depend on the responses, as with many independent clients. */
export interface OpenLoop {
  readonly loop: 'open'
  readonly connections: number
  readonly durationMs: number
  readonly entriesPerS: number
}

/** Messages from the load generator's process. Every command gets a result or an error, and any number of `progress` before it. */
export interface Reply {
  readonly progress?: Progress
  readonly result?: PoolFacts | LoadResult
  readonly error?: string
}

/** The size of the prepared requests. */
export interface PoolFacts {
  readonly requests: number
  readonly entries: number
  /** Bytes of bodies as sent. */
  readonly bytesPerEntry: number
}

/** What this run has measured until a time. */
export interface Progress {
  /** Milliseconds since the epoch, with fractions. */
  readonly atMs: number
  /** Entries that were acknowledged. */
  readonly accepted: number
  /** The longest time until a response. */
  readonly slowestMs: number
}

export interface LoadResult {
  /** When the first request was sent, in milliseconds since the epoch. */
  readonly startedAtMs: number
  /** How long requests were sent. */
  readonly windowMs: number
  /** Entries acknowledged within the window. */
  readonly acceptedInWindow: number
  /** All acknowledged entries, including the entries of requests in flight at the end of the window. */
  readonly accepted: number
  /** Entries that were due in the window. In a closed loop: entries sent. */
  readonly due: number
  /** Due entries that found no free connection in the window and were never sent. */
  readonly unsent: number
  /** Requests without a 202, by status. `none` means that no response came. */
  readonly rejected: Readonly<Record<string, number>>
  /** The end of the first response that was not a 202. */
  readonly rejection?: string | undefined
  /**
   * From when a request was due until its response. In an open loop this includes the wait for a free connection and delays
   * of the generator, so stalls of the system are counted fully (no coordinated omission). In a closed loop a request is
   * due when it is sent.
   */
  readonly latencyMs: Percentiles
  /** CPU time that the generator used. */
  readonly cpuMs: number
}

interface Percentiles {
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

/** Entries acknowledged per second of the window. */
export function acceptedPerS({ acceptedInWindow, windowMs }: LoadResult): number {
  return (acceptedInWindow / windowMs) * 1_000
}

/** The requests without a 202, as a string: `3 × 503, 1 × none`. Empty if there are none. */
export function describeRejected({ rejected }: LoadResult): string {
  return Object.entries(rejected)
    .map(([status, count]) => `${count} × ${status}`)
    .join(', ')
}
