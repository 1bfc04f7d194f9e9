import type { QueuedEntry } from './entry.ts'

/**
 * Keeps the entries of batches until they are acknowledged, also if the process ends. `DiskSpool` of `@sluice/client/spool` is one. No method
 * throws or rejects, and none waits longer than some seconds for a disk that hangs.
 */
export interface Spool {
  /** Starts. Called once, before everything else. */
  open(events: SpoolEvents): void
  /** Whether it takes further entries of this size. */
  hasRoomFor(bytes: number): boolean
  /** @returns a record for a new batch. Undefined if the spool does not keep up: the batch is in memory only then */
  create(idempotencyKey: string): SpoolRecord | undefined
  /** Ends all waits in half a second: the client is closing. */
  abort(): void
  /** Leaves the records to the next process. Called after `abort`. Resolves when everything is written, or half a second after the abort. */
  close(): Promise<void>
}

/** Called at any time until the spool is closed. */
export interface SpoolEvents {
  /** The records of processes that have ended, oldest first. */
  readonly onRecovered: (records: readonly RecoveredRecord[]) => void
  /** Entries of such records cannot be read. */
  readonly onLost: (entries: number) => void
  /** Something could not be opened, read, written or removed. Called once until something succeeds. */
  readonly onError: (message: string, cause: unknown) => void
}

/** The entries of one batch. No method is called after `remove`. */
export interface SpoolRecord {
  /** Adds an entry, as JSON without line breaks and tabs. It is written soon. */
  add(json: string, bytes: number): void
  /** Whether all entries are written, and an end of the process would not lose them. */
  readonly isWritten: boolean
  /** Resolves when all entries are written, or cannot be written. */
  written(): Promise<void>
  /** The entries; `lost` if they are, or `unreadable` if a later call may succeed. */
  load(): Promise<QueuedEntry[] | 'lost' | 'unreadable'>
  /**
   * Writes all entries, and that an attempt may have been made to send them.
   *
   * @returns false if entries cannot be written. The record is removed then: the next process must not send a part of them with the key of all
   */
  markAttempt(): Promise<boolean>
  /** Removes the mark: no attempt has succeeded. */
  clearAttempt(): Promise<void>
  /** Its room is free at once, also while it is still being loaded. */
  remove(): Promise<void>
}

/** A record that another process left. */
export interface RecoveredRecord {
  readonly idempotencyKey: string
  readonly record: SpoolRecord
  readonly entries: number
  readonly bytes: number
  /** The time of day of the first attempt that may have succeeded. Undefined if there was none. */
  readonly attemptedAtMs: number | undefined
}
