import type { QueuedEntry } from './entry.ts'
import type { SpoolRecord } from './spool.ts'

export interface EntryCounts {
  /** Stored, or queued by the API. */
  accepted: number
  rejected: number
  dropped: number
  /** Left in the spool for the next process. */
  kept: number
}

export const noEntries: Readonly<EntryCounts> = { accepted: 0, rejected: 0, dropped: 0, kept: 0 }

/** A time, by both clocks: the monotonic one may stop while a computer sleeps, and the time of day may be changed. */
export interface ClockTimes {
  readonly monotonicMs: number
  readonly wallMs: number
}

/** The entries of one request, and what is known of its attempts. `Delivery` has its states. */
export class Batch {
  readonly idempotencyKey: string
  readonly openedAtMs: number
  /** Undefined if the batch is not in the spool. */
  record: SpoolRecord | undefined
  /** Empty while they are only in the spool. */
  entries: QueuedEntry[] = []
  /** Of a batch that was dropped while it was not loaded. */
  loading: ReturnType<SpoolRecord['load']> | undefined
  count = 0
  bytes = 0
  /** Whether to send it before it is full or due. */
  isUrgent = false
  failedAttempts = 0
  /** How many responses had a problem of the configuration, although other requests succeeded in between. */
  problems = 0
  /** How many requests had succeeded at the last of them. */
  successesAtProblem = -1
  firstAttemptAtMs: number | undefined
  /** When the first attempt began that may have succeeded without a response. */
  uncertainSince: ClockTimes | undefined
  retryAtMs = 0
  /** The batch that was split into this half and another one. Its `count` has the entries that are not acknowledged. */
  whole: Batch | undefined

  constructor(idempotencyKey: string, openedAtMs: number, record?: SpoolRecord) {
    this.idempotencyKey = idempotencyKey
    this.openedAtMs = openedAtMs
    this.record = record
  }

  get isLoaded(): boolean {
    return this.entries.length === this.count
  }

  /** Whether the entries may leave memory. */
  get canUnload(): boolean {
    return this.isLoaded && this.record?.isWritten === true
  }

  add(entry: QueuedEntry): void {
    this.entries.push(entry)
    this.count += 1
    this.bytes += entry.bytes
    this.record?.add(entry.json, entry.bytes)
  }
}
