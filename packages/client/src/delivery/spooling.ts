import { deferred } from '../deferred.ts'
import type { QueuedEntry } from '../entry.ts'
import { utf8Bytes } from '../encoding/utf8.ts'
import type { HookCaller } from '../hook-caller.ts'
import type { Platform } from '../platform.ts'
import { SluiceError } from '../sluice-error.ts'
import { type RecoveredRecord, type Spool, type SpoolRecord, UnreadableError } from '../spool.ts'
import { startTimer } from '../timers.ts'
import { Batch } from './batch.ts'

/** Clocks of machines are corrected by less than this. The idempotency window has a reserve for it. */
const CLOCK_AHEAD_MS_MAX = 60_000

/** How long a request waits for the disk. A disk that is busy, or wakes up, takes a second or two. One that hangs must not stop all sending. */
const DISK_ANSWER_MS = 5_000

/**
 * Whether a batch can be sent: `lost` if its entries are, `unreadable` if they may be read later.
 */
export type Readiness = 'ready' | 'lost' | 'unreadable'

/** Keeps batches in a spool. If the spool fails, they are in memory only. */
export class Spooling {
  readonly #spool: Spool
  readonly #platform: Platform
  readonly #hooks: HookCaller
  /** Whether the last failure was reported, and nothing has succeeded since. */
  #isFailing = false
  /** How many operations have not ended in time, and may still end. */
  #overdue = 0

  constructor(spool: Spool, platform: Platform, hooks: HookCaller) {
    this.#spool = spool
    this.#platform = platform
    this.#hooks = hooks
  }

  /** @param onRecovered gets the batches of processes that have ended */
  async open(onRecovered: (batches: readonly Batch[]) => void): Promise<void> {
    try {
      await this.#spool.open({
        onRecovered: (records) => onRecovered(records.map((record) => this.#toBatch(record))),
        onError: (message, cause) => this.#report(message, cause),
      })
    } catch (error) {
      this.#report('cannot be opened', error)
    }
  }

  #toBatch(recovered: RecoveredRecord): Batch {
    const nowMs = this.#platform.monotonicMs()
    const batch = Batch.unloaded(recovered.idempotencyKey, nowMs, recovered)
    const { attemptedAtMs } = recovered
    if (attemptedAtMs !== undefined) {
      // The clock was set back since: the age of the attempt is unknown, so it counts as old.
      const isAhead = attemptedAtMs > this.#platform.wallMs() + CLOCK_AHEAD_MS_MAX
      batch.uncertainSince = { monotonicMs: nowMs, wallMs: isAhead ? -Infinity : attemptedAtMs }
    }
    return batch
  }

  create(idempotencyKey: string): SpoolRecord | undefined {
    return this.#spool.create(idempotencyKey)
  }

  hasRoomFor(bytes: number): boolean {
    return this.#spool.hasRoomFor(bytes)
  }

  /** Prepares a batch for an attempt: everything that is needed to repeat it is in the spool first, if the disk takes it. */
  async prepare(batch: Batch): Promise<Readiness> {
    const { record } = batch
    if (record === undefined) return 'ready'
    // Before the mark: without its entries, there is no attempt.
    const readiness = batch.isLoaded ? 'ready' : await this.load(batch)
    if (readiness !== 'ready') return readiness
    try {
      await this.#inTime(record.markAttempt())
      this.#isFailing = false
    } catch (error) {
      this.#report('cannot be written; entries are kept in memory only', error)
      // The next process must not send a part of the entries under the key of all.
      if (!record.isWritten) {
        const removed = this.remove(batch)
        batch.record = undefined
        await this.#inTime(removed).catch(() => undefined)
      }
    }
    return 'ready'
  }

  /** Reads the entries of a batch, unless this fails. */
  async load(batch: Batch): Promise<Readiness> {
    try {
      const texts = batch.record === undefined ? [] : await this.#inTime(batch.record.read())
      batch.load(texts.map(toQueuedEntry))
      return 'ready'
    } catch (error) {
      const isLost = error instanceof UnreadableError
      this.#report(isLost ? `cannot be read; ${batch.count} entries are lost` : 'cannot be read', error)
      return isLost ? 'lost' : 'unreadable'
    }
  }

  /** No attempt has succeeded. */
  async clearAttempt(batch: Batch): Promise<void> {
    const { record, uncertainSince } = batch
    if (record === undefined || uncertainSince !== undefined) return
    await this.#inTime(record.clearAttempt()).catch((error: unknown) =>
      this.#report('cannot be written', error),
    )
  }

  /** Resolves when all entries of a record are written, or cannot be written. */
  async written(record: SpoolRecord): Promise<void> {
    await this.#inTime(record.written()).catch((error: unknown) => this.#report('cannot be written', error))
  }

  async remove({ record }: Batch): Promise<void> {
    await record?.remove().catch((error: unknown) => this.#report('cannot remove a file', error))
  }

  /**
   * Removes a dropped batch, which makes room at once.
   *
   * @returns when its entries are loaded for the hooks; undefined if they are
   */
  drop(batch: Batch): Promise<unknown> | undefined {
    // The spool reads a record before it removes it.
    const loading = batch.isLoaded ? undefined : this.load(batch)
    void this.remove(batch)
    return loading
  }

  async close(): Promise<void> {
    await this.#spool.close().catch((error: unknown) => this.#report('cannot be closed', error))
  }

  /**
   * Waits for an operation of the disk, for a limited time. While one is overdue, others are not waited for.
   *
   * @throws if the operation fails, or does not end in time. It may still end later
   */
  async #inTime<Result>(operation: Promise<Result>): Promise<Result> {
    const { promise: end, resolve } = deferred<'late'>()
    const waitMs = this.#overdue > 0 ? 0 : DISK_ANSWER_MS
    const timer = startTimer(() => resolve('late'), waitMs)
    try {
      const result = await Promise.race([operation.then((value) => ({ value })), end])
      if (result !== 'late') return result.value
    } finally {
      clearTimeout(timer)
    }
    this.#overdue += 1
    const endOverdue = (): void => void (this.#overdue -= 1)
    operation.then(endOverdue, endOverdue)
    throw new Error(waitMs === 0 ? 'the disk does not answer' : `the disk did not answer within ${waitMs} ms`)
  }

  #report(message: string, cause: unknown): void {
    if (this.#isFailing) return
    this.#isFailing = true
    const reason = cause instanceof Error ? `: ${cause.message}` : ''
    this.#hooks.onError(new SluiceError('spool', `the spool ${message}${reason}`, { cause }))
  }
}

function toQueuedEntry(json: string): QueuedEntry {
  return { json, bytes: utf8Bytes(json), tag: undefined }
}
