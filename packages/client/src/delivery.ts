import { utf8Bytes } from './encode.ts'
import { Batch, type ClockTimes, type EntryCounts, noEntries } from './batch.ts'
import type { EntryError, QueuedEntry } from './entry.ts'
import { type HookCaller, type Settlement, SluiceError } from './hooks.ts'
import type { Settings } from './options.ts'
import { type Platform, startTimer, type Timer } from './platform.ts'
import { Queue } from './queue.ts'
import type { Failure, Outcome } from './responses.ts'
import { RetryPolicy } from './retry.ts'
import { send } from './send.ts'
import type { RecoveredRecord, Spool } from './spool.ts'

export const persistences = ['retry', 'try-once', 'give-up'] as const

/**
 * What is done with entries that are not acknowledged. `try-once`: they are sent, but not after a failure, and not during a pause. `give-up`:
 * only requests in flight are awaited.
 */
export type Persistence = (typeof persistences)[number]

/** Clocks of machines are corrected by less than this. The idempotency window has a reserve for it. */
const CLOCK_AHEAD_MS_MAX = 60_000

/** A disk that cannot be read now may work later: too many open files, for example. */
const DISK_RETRY_MS = 30_000

type Ending = Pick<Settlement, 'outcome'> & Partial<Omit<Settlement, 'outcome' | 'entries' | 'rejected'>>

/** What becomes of some batches, and of the halves of those that are split. */
export interface Watch {
  readonly batches: Set<Batch>
  readonly counts: EntryCounts
}

/**
 * Sends batches: several at a time, each until it is settled.
 *
 *     add ──▶ open ──▶ full ──┐
 *              │ due          │ #pump, when a request may start       #settle
 *              └──────────────┴─────────────▶ in flight ───────────▶ settled
 *                                    #pump ▲   │   │                    ▲
 *     #recover ────────▶ waiting ──────────┘   │   └─▶ split ───────────┘ with its halves, which are delayed
 *                                          ▲   │ #delay                 │
 *                                          └─ delayed ──────────────────┘ overflow, or given up by a close
 *
 * - open, full and waiting: in the queue, not tried yet. An open batch takes entries; it is due when it is full or old enough, or after a flush.
 * - in flight: an attempt is being made, the preparation in the spool included.
 * - delayed: in the queue until `retryAtMs`, after a failure. Its key and its body stay the same.
 * - split: too large for one request. Its halves are batches of their own.
 * - settled: accepted or rejected by the API, dropped, or kept in the spool for the next process. The hooks are called.
 *
 * A batch that is in the spool may be unloaded from memory while it is in the queue.
 */
export class Delivery {
  readonly counts: EntryCounts = { ...noEntries }
  failedAttempts = 0
  readonly queue: Queue
  readonly retry: RetryPolicy
  readonly watches = new Set<Watch>()
  /** Called whenever entries were settled, a problem began, or a request ended. */
  readonly #listeners = new Set<() => void>()
  readonly #settings: Settings
  readonly #platform: Platform
  readonly #hooks: HookCaller
  readonly spool: Spool | undefined
  readonly #inFlight = new Map<Batch, AbortController>()
  /** The only request in flight that was started while nothing succeeds. */
  #probe: Batch | undefined
  #timer: Timer | undefined
  #isPumpScheduled = false
  #persistence: Persistence = 'retry'
  isClosing = false
  #isAborted = false
  #hasReceivedResponse = false
  #last = { wallMs: Number.NaN, timestamp: '' }

  constructor(settings: Settings, platform: Platform, hooks: HookCaller) {
    this.#settings = settings
    this.#platform = platform
    this.#hooks = hooks
    this.retry = new RetryPolicy(settings, platform)
    this.queue = new Queue(settings, platform)
    this.spool = settings.spool
    this.spool?.open({
      onRecovered: (records) => this.#recover(records),
      onLost: (entries) => {
        this.counts.dropped += entries
        hooks.call('onDropped', [], 'unreadable')
      },
      onError: (message, cause) => {
        const reason = cause instanceof Error ? `: ${cause.message}` : ''
        hooks.call('onError', new SluiceError('spool', `the spool ${message}${reason}`, { cause }))
      },
    })
  }

  get requestsInFlight(): number {
    return this.#inFlight.size
  }

  /** Now. Many entries have the same millisecond, and the conversion costs as much as a part of the JSON. */
  timestamp(): string {
    const wallMs = this.#platform.wallMs()
    if (wallMs !== this.#last.wallMs) this.#last = { wallMs, timestamp: new Date(wallMs).toISOString() }
    return this.#last.timestamp
  }

  /** Watches the batches that are not settled, until the watch is deleted. */
  watch(): Watch {
    const batches = new Set([...this.#inFlight.keys(), ...this.queue.batches])
    const watch = { batches, counts: { ...noEntries } }
    this.watches.add(watch)
    return watch
  }

  /** Resolves when a further batch or an entry of this size fits into the queue, or when none is taken any more. */
  waitForRoom(bytes: number): Promise<void> {
    return this.until(() => this.queue.hasRoomForBatch(bytes) || this.#persistence !== 'retry')
  }

  add(json: string, tag: unknown): void {
    const entry = { json, bytes: utf8Bytes(json), tag }
    if (this.isClosing || !this.queue.makeRoom(entry.bytes)) {
      this.counts.dropped += 1
      this.#hooks.call('onDropped', [entry], this.isClosing ? 'closed' : 'overflow')
    } else if (this.queue.add(entry)) this.#pumpSoon()
    this.#settleOverflowed()
  }

  /** Rejects an entry that never was in a batch. */
  reject(entry: unknown, error: EntryError, tag: unknown): void {
    this.counts.rejected += 1
    this.#hooks.call('onRejected', { entry, error, tag })
  }

  /** Sends everything in the queue, without waiting for more entries. */
  hurry(): void {
    this.queue.hurry()
    this.#pumpSoon()
  }

  setPersistence(persistence: Persistence): void {
    this.#persistence = persistence
    this.#pump()
    this.#change()
  }

  /** Aborts the requests in flight, and sends nothing more. */
  abort(): void {
    this.#isAborted = true
    for (const controller of this.#inFlight.values()) controller.abort(new Error('the client was closed'))
    this.spool?.abort()
    this.setPersistence('give-up')
  }

  #recover(records: readonly RecoveredRecord[]): void {
    const { monotonicMs, wallMs } = this.#platform
    const batches = records.map(({ idempotencyKey, record, entries, bytes, attemptedAtMs }) => {
      const batch = new Batch(idempotencyKey, monotonicMs(), record)
      batch.count = entries
      batch.bytes = bytes
      // If the clock was set back since, the age of the attempt is unknown. It counts as old.
      const isAhead = attemptedAtMs !== undefined && attemptedAtMs > wallMs() + CLOCK_AHEAD_MS_MAX
      if (attemptedAtMs !== undefined)
        batch.uncertainSince = { monotonicMs: monotonicMs(), wallMs: isAhead ? -Infinity : attemptedAtMs }
      return batch
    })
    this.queue.addOldest(batches)
    this.#pumpSoon()
  }

  /** Once for all calls in a row, and not within the call that logs. */
  #pumpSoon(): void {
    if (this.#isPumpScheduled) return
    this.#isPumpScheduled = true
    queueMicrotask(() => {
      this.#isPumpScheduled = false
      this.#pump()
    })
  }

  /** Starts the requests that can be started, and a timer for the next one. */
  #pump(): void {
    const nowMs = this.#platform.monotonicMs()
    const isPaused = nowMs < this.retry.pausedUntilMs
    if (this.#persistence === 'give-up' || (this.#persistence === 'try-once' && isPaused)) {
      let batch = this.queue.takeOldest()
      for (; batch !== undefined; batch = this.queue.takeOldest()) this.#giveUp(batch)
      return
    }
    while (this.#canStartRequest) {
      const batch = isPaused ? undefined : this.queue.takeDue(nowMs, this.retry.preference)
      if (batch === undefined) break
      const controller = new AbortController()
      this.#inFlight.set(batch, controller)
      this.#probe = this.retry.isProbing ? batch : undefined
      void this.#attempt(batch, controller)
    }
    clearTimeout(this.#timer)
    const atMs = Math.max(this.queue.nextAtMs(nowMs), this.retry.pausedUntilMs)
    // The end of a request starts the next one.
    if (atMs < Infinity && this.#canStartRequest) this.#timer = startTimer(() => this.#pump(), atMs - nowMs)
  }

  get #canStartRequest(): boolean {
    if (this.retry.isProbing && this.#probe !== undefined) return false
    return this.#inFlight.size < this.#settings.requestsInFlightMax
  }

  /** After an attempt, the batch is settled, split or delayed. Never rejects. */
  async #attempt(batch: Batch, controller: AbortController): Promise<void> {
    if (await this.#prepare(batch)) {
      const startedAt = { monotonicMs: this.#platform.monotonicMs(), wallMs: this.#platform.wallMs() }
      batch.firstAttemptAtMs ??= startedAt.monotonicMs
      const outcome = await send(batch, this.#settings, controller)
      this.#hasReceivedResponse ||= outcome.kind !== 'failed' || outcome.status !== undefined
      await this.#handle(batch, outcome, startedAt)
    }
    this.#inFlight.delete(batch)
    if (this.#probe === batch) this.#probe = undefined
    this.#change()
    this.#pump()
  }

  /** @returns whether the batch can be sent. Otherwise it is settled or delayed */
  async #prepare(batch: Batch): Promise<boolean> {
    const loaded = batch.isLoaded ? undefined : await batch.record?.load()
    if (Array.isArray(loaded)) this.queue.load(batch, loaded)
    // Everything that is needed to repeat the attempt is in the spool first, if the disk takes it.
    if (batch.isLoaded && (await batch.record?.markAttempt()) === false) batch.record = undefined
    if (this.#isAborted || (loaded === 'unreadable' && this.#persistence !== 'retry')) this.#giveUp(batch)
    else if (loaded === 'lost') this.#settle(batch, { outcome: 'unreadable' })
    else if (loaded === 'unreadable') {
      batch.retryAtMs = this.#platform.monotonicMs() + DISK_RETRY_MS
      this.queue.delay(batch)
    } else if (this.retry.isTooLate(batch)) this.#settle(batch, { outcome: 'outcome-unknown' })
    else return true
    return false
  }

  async #handle(batch: Batch, outcome: Outcome, startedAt: ClockTimes): Promise<void> {
    if (outcome.kind === 'failed') {
      batch.failedAttempts += 1
      this.failedAttempts += 1
      if (outcome.mayBeStored) batch.uncertainSince ??= startedAt
      if (batch.uncertainSince === undefined) await batch.record?.clearAttempt()
      return this.#retry(batch, outcome)
    }
    this.retry.succeed()
    if (outcome.kind === 'processed')
      this.#settle(batch, { outcome: 'answered', accepted: outcome.accepted, rejections: outcome.rejections })
    else if (outcome.kind === 'too-large' && batch.count > 1) await this.#split(batch)
    else this.#reject(batch, outcome.error)
  }

  #retry(batch: Batch, failure: Failure): void {
    const { reason, status, cause } = failure
    const known = this.retry.problem
    const nowMs = this.#platform.monotonicMs()
    const end = this.retry.fail(batch, failure, nowMs)
    const { problem } = this.retry
    // Before the batch is settled: the problem explains its end.
    if (problem !== undefined && problem !== known) this.#hooks.call('onError', problem)
    if (end === 'at-fault') {
      const message = `${reason}, ${batch.problems} times, while other requests succeeded`
      this.#reject(batch, { path: '', code: `http_${status}`, message })
    } else if (this.#persistence !== 'retry') this.#giveUp(batch, failure)
    else if (end !== undefined) this.#settle(batch, { outcome: end, reason, cause })
    else {
      this.queue.delay(batch)
      const delayMs = Math.round(batch.retryAtMs - nowMs)
      const [attempt, entries] = [batch.failedAttempts, batch.count]
      const hasReceivedResponse = this.#hasReceivedResponse
      this.#hooks.call('onRetry', { reason, status, cause, attempt, delayMs, entries, hasReceivedResponse })
    }
  }

  /**
   * Sends the halves of a batch on their own. Their keys follow from the key of the whole: if the process ends before the record of the whole
   * is removed, and the batch is split again, the API recognises the halves.
   */
  async #split(batch: Batch): Promise<void> {
    const middle = Math.ceil(batch.count / 2)
    const halves = [batch.entries.slice(0, middle), batch.entries.slice(middle)].map((entries, index) => {
      const key = `${batch.idempotencyKey}-${index + 1}`
      const half = new Batch(key, batch.openedAtMs, this.spool?.create(key))
      // Another process may have sent the halves before.
      half.uncertainSince = batch.uncertainSince
      half.whole = batch
      for (const entry of entries) half.add(entry)
      return half
    })
    for (const { record } of halves) await record?.written()
    // Otherwise the whole stays in the spool until its halves are acknowledged: the next process splits it again.
    if (halves.every(({ record }) => record?.isWritten === true)) {
      void batch.record?.remove()
      batch.record = undefined
    }
    this.#inFlight.delete(batch)
    for (const { batches } of this.watches)
      if (batches.delete(batch)) for (const half of halves) batches.add(half)
    for (const half of halves) this.queue.delay(half)
  }

  /** Settles a batch because the client is closing. What is in the spool stays there. */
  #giveUp(batch: Batch, { reason, cause }: Pick<Partial<Ending>, 'reason' | 'cause'> = {}): void {
    const { record } = batch
    this.queue.release(batch)
    const report = (): void =>
      this.#report(batch, { outcome: record?.isWritten === true ? 'kept' : 'closed', reason, cause })
    if (record?.isWritten === false) void record.written().then(report)
    else report()
  }

  /** Hooks are called when the queue is consistent again: they may log. */
  #settleOverflowed(): void {
    for (const batch of this.queue.overflowed.splice(0)) {
      const report = (loaded?: unknown): void => {
        if (Array.isArray(loaded)) batch.entries = loaded as QueuedEntry[]
        this.#report(batch, { outcome: 'overflow' })
      }
      if (batch.loading === undefined) report()
      else void batch.loading.then(report)
    }
  }

  /** Frees what a batch occupies, and reports its end. */
  #settle(batch: Batch, ending: Ending): void {
    this.queue.release(batch)
    void batch.record?.remove()
    this.#report(batch, ending)
  }

  #reject(batch: Batch, error: EntryError): void {
    const rejections = batch.entries.map((_, index) => ({ index, error }))
    this.#settle(batch, { outcome: 'rejected', rejections, reason: error.message })
  }

  /** Counts the end of a batch, and calls the hooks. */
  #report(batch: Batch, { outcome, accepted = 0, rejections = [], reason, cause }: Ending): void {
    const { entries, count } = batch
    const isResponse = outcome === 'answered' || outcome === 'rejected'
    const rejected = isResponse ? count - accepted : 0
    const settlement = { entries, outcome, accepted, rejected, rejections, reason, cause }
    this.#hooks.call('onSettled', settlement)
    this.#inFlight.delete(batch)
    const watches = [...this.watches].filter(({ batches }) => batches.delete(batch))
    for (const { counts } of [this, ...watches]) {
      counts.accepted += accepted
      counts.rejected += rejected
      if (!isResponse) counts[outcome === 'kept' ? 'kept' : 'dropped'] += count
    }
    for (let whole = isResponse ? batch.whole : undefined; whole !== undefined; { whole } = whole) {
      whole.count -= count
      if (whole.count === 0) void whole.record?.remove()
    }
    // The API lists several errors of one entry.
    const reported = new Set<number>()
    for (const { index, error } of rejections) {
      const entry = entries[index]
      if (entry === undefined || reported.has(index)) continue
      reported.add(index)
      this.#hooks.call('onRejected', { entry: entry.json, error, tag: entry.tag })
    }
    if (!isResponse && outcome !== 'kept') this.#hooks.call('onDropped', entries, outcome)
    this.#change()
  }

  #change(): void {
    for (const listener of this.#listeners) listener()
  }

  /**
   * Resolves when the condition holds after a change, or after the timeout. Not with promises of the batches: what waits for a promise stays
   * in memory until it is settled, and an outage may be long.
   */
  until(condition: () => boolean, timeoutMs = Infinity): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#listeners.delete(check)
        resolve()
      }
      const check = (): void => {
        if (condition()) end()
      }
      const timer = timeoutMs === Infinity ? undefined : startTimer(end, timeoutMs)
      this.#listeners.add(check)
      check()
    })
  }
}
