/** Keeps the entries of batches until they are acknowledged, also if the process ends. `DiskSpool` is one. */
export interface Spool {
  /**
   * Starts. Called once, before everything else.
   *
   * @param events are called at any time until the spool is closed
   */
  open(events: SpoolEvents): Promise<void>
  /** Whether it takes further entries of this size. */
  hasRoomFor(bytes: number): boolean
  /**
   * Creates a record for a new batch. Its entries may be added before the spool is open. Does not throw.
   *
   * @returns undefined if the spool does not keep up. The batch is in memory only then
   */
  create(idempotencyKey: string): SpoolRecord | undefined
  /** Resolves when everything was written. The records that were not removed are left to the next process. */
  close(): Promise<void>
}

/** The entries of a record are lost. */
export class UnreadableError extends Error {
  override name = 'UnreadableError'
}

export interface SpoolEvents {
  /** The records of processes that have ended, oldest first. */
  readonly onRecovered: (records: readonly RecoveredRecord[]) => void
  /** Something could not be opened, read, written or removed. */
  readonly onError: (message: string, cause: unknown) => void
}

/** The entries of one batch. No method is called after `remove`. */
export interface SpoolRecord {
  /** Adds an entry, as JSON text of one line. It is written soon. Does not throw. */
  add(json: string, bytes: number): void
  /** Whether all entries are written, and an end of the process would not lose them. */
  readonly isWritten: boolean
  /** Resolves when all entries are written, or cannot be written. */
  written(): Promise<void>
  /**
   * Resolves when all entries are written, and that an attempt may have been made to send them.
   *
   * Rejects if one of these cannot be written. What was written before stays.
   */
  markAttempt(): Promise<void>
  /** Removes the mark: no attempt has succeeded. */
  clearAttempt(): Promise<void>
  /** The entries, as JSON text. Rejects with an `UnreadableError` if they are lost, and with another error if a later call may succeed. */
  read(): Promise<string[]>
  /** Its room is free at once, also while it is still being read. */
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
