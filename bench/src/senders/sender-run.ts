/** How a process with a client logs. */
export interface SenderRun {
  readonly url: string
  readonly apiKey: string
  /** `flood`: without ever waiting. `fill`: whenever the queue has room. */
  readonly pace: 'flood' | 'fill'
  readonly durationMs: number
  /** Undefined without a spool. */
  readonly spoolDirectory: string | undefined
}

/** What a run measured. */
export interface SenderFigures {
  readonly calls: number
  /** How long a call takes. */
  readonly callUs: number
  /** CPU time of the whole process per call: encoding, compression, requests, garbage collection. */
  readonly processUs: number
  readonly accepted: number
  readonly dropped: number
  /** Until everything was acknowledged or given up. */
  readonly elapsedMs: number
  readonly rssMaxBytes: number
}
