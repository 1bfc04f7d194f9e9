import type { EntryError, QueuedEntry } from './entry.ts'
import type { SluiceError } from './sluice-error.ts'

/** An entry that cannot be stored. A retry would not help. */
export interface Rejection {
  /** The entry as it was passed to the client, or as JSON text if it was sent. */
  readonly entry: unknown
  /** The first one that was found. */
  readonly error: EntryError
  /** The value that was passed to `send` or `sendJson`. */
  readonly tag: unknown
}

/**
 * Why entries were dropped.
 *
 * - `overflow`: the queue is full.
 * - `retries`: `retryForMs` has passed since the first attempt.
 * - `outcome-unknown`: an attempt may have succeeded, and its idempotency key is about to expire. A further attempt could store the entries
 *   twice.
 * - `closed`: the client was closed before they could be sent.
 * - `unreadable`: the spool cannot read them. The hook gets no entries.
 */
export type DropReason = 'overflow' | 'retries' | 'outcome-unknown' | 'closed' | 'unreadable'

/** A failed attempt that is followed by another one. */
export interface Retry {
  /** Human-readable. */
  readonly reason: string
  /** Undefined without a response. */
  readonly status: number | undefined
  /** What `fetch` threw. */
  readonly cause: unknown
  /** How many attempts have failed. */
  readonly attempt: number
  readonly delayMs: number
  readonly entries: number
  /** Whether this client has ever received a response. If not, the address may be wrong. */
  readonly hasReceivedResponse: boolean
}

/** An error of a rejected entry of a request. An entry may have several. */
export interface EntryRejection {
  /** The position of the entry in the request. */
  readonly index: number
  readonly error: EntryError
}

/** The end of a request with all its attempts. */
export interface Settlement {
  readonly entries: readonly QueuedEntry[]
  /** `kept`: left in the spool by `close`. */
  readonly outcome: 'answered' | 'rejected' | 'kept' | DropReason
  readonly accepted: number
  readonly rejected: number
  /** Which entries were rejected. */
  readonly rejections: readonly EntryRejection[]
  /** Why the request was rejected or given up, for people. */
  readonly reason: string | undefined
  /** What `fetch` threw in the last attempt. */
  readonly cause: unknown
}

/** Functions that the client calls. An exception in one of them is reported to `onError`, and has no other effect. */
export interface Hooks {
  /** Called for each entry that is invalid, as found by the client or by the API. Without it, `onError` is called for the first one. */
  readonly onRejected?: ((rejection: Rejection) => void) | undefined
  /** Called with entries that will not be sent. */
  readonly onDropped?: ((entries: readonly QueuedEntry[], reason: DropReason) => void) | undefined
  readonly onRetry?: ((retry: Retry) => void) | undefined
  /** Called with problems that need an operator, once until they are solved. Default: `console.error`. */
  readonly onError?: ((error: SluiceError) => void) | undefined
  /** Called when a request is over, before `onRejected` and `onDropped` for its entries. */
  readonly onSettled?: ((settlement: Settlement) => void) | undefined
}
