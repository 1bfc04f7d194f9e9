import type { QueuedEntry } from '../entry.ts'
import type { HookCaller } from '../hook-caller.ts'
import type { DropReason } from '../hooks.ts'
import type { Settings } from '../options.ts'
import type { Platform } from '../platform.ts'
import { SluiceError } from '../sluice-error.ts'
import { startTimer, type Timer } from '../timers.ts'
import type { Answer, Failure, Misconfiguration } from './answers.ts'
import { Batch, type ClockTimes } from './batch.ts'
import { Changes } from './changes.ts'
import type { Memory } from './memory.ts'
import { postBatch } from './post.ts'
import { RetrySchedule } from './retry-schedule.ts'
import type { LastAttempt, Settlements } from './settlements.ts'
import { splitBatch } from './split-batch.ts'
import { Spooling } from './spooling.ts'
import { WaitingBatches } from './waiting-batches.ts'

/**
 * What is done with entries that are not acknowledged.
 *
 * - `retry`: they are sent until they are acknowledged.
 * - `try-once`: they are sent, but not after a failure, and not during a pause.
 * - `give-up`: only requests in flight are awaited.
 */
export type Persistence = 'retry' | 'try-once' | 'give-up'

/** Sends batches: several at a time, each until it is settled. */
export class Delivery {
  /** Happens whenever entries were settled, or a problem began. */
  readonly changes = new Changes()
  readonly #settings: Settings
  readonly #platform: Platform
  readonly #hooks: HookCaller
  readonly #settlements: Settlements
  readonly #schedule: RetrySchedule
  readonly #spooling: Spooling | undefined
  readonly #opened: Promise<void>
  readonly #waiting: WaitingBatches
  readonly #inFlight = new Set<Batch>()
  readonly #stop = new AbortController()
  /** Dropped batches, while room is made for an entry. */
  #overflowed: { readonly batch: Batch; readonly loading: Promise<void> | undefined }[] = []
  #failedAttempts = 0
  #timer: Timer | undefined
  #timerAtMs = Infinity
  #isPumpScheduled = false
  #persistence: Persistence = 'retry'
  #hasReceivedResponse = false
  #problem: SluiceError | undefined

  constructor(settings: Settings, platform: Platform, hooks: HookCaller, settlements: Settlements) {
    this.#settings = settings
    this.#platform = platform
    this.#hooks = hooks
    this.#settlements = settlements
    this.#schedule = new RetrySchedule(settings, platform)
    this.#waiting = new WaitingBatches(settings, {
      create: (nowMs) => this.#createBatch(nowMs),
      onOverflow: (batch) => this.#overflowed.push({ batch, loading: this.#spooling?.drop(batch) }),
    })
    this.#spooling = settings.spool && new Spooling(settings.spool, platform, hooks)
    this.#opened = this.#spooling?.open((batches) => this.#recover(batches)) ?? Promise.resolve()
  }

  get memory(): Readonly<Pick<Memory, 'entries' | 'bytes'>> {
    return this.#waiting.memory
  }

  get requestsInFlight(): number {
    return this.#inFlight.size
  }

  get failedAttempts(): number {
    return this.#failedAttempts
  }

  /** Why the API rejects all requests, until it accepts one. */
  get problem(): SluiceError | undefined {
    return this.#problem
  }

  /** The batches that are not settled. */
  unsettled(): Batch[] {
    return [...this.#inFlight, ...this.#waiting.batches]
  }

  /** Resolves when a further batch or an entry of this size fits into the queue, or when none is taken any more. */
  async waitForRoom(bytes: number): Promise<void> {
    const { memory } = this.#waiting
    // An entry that never fits is dropped.
    const wanted = Math.min(bytes, this.#settings.queueBytesMax)
    while (!memory.hasRoomForBatch(wanted) && this.#persistence === 'retry') await this.changes.next()
  }

  add(entry: QueuedEntry): void {
    const hasRoom = this.#waiting.makeRoom(entry.bytes, (bytes) => this.#spooling?.hasRoomFor(bytes) ?? true)
    if (!hasRoom) this.#settlements.droppedEntry(entry, 'overflow')
    else if (this.#waiting.add(entry, this.#platform.monotonicMs())) this.#pumpSoon()
    this.#settleOverflowed()
  }

  /** Hooks are called when the queue is consistent again: they may log. */
  #settleOverflowed(): void {
    const overflowed = this.#overflowed
    if (overflowed.length === 0) return
    this.#overflowed = []
    for (const { batch, loading } of overflowed) void this.#settleDropped(batch, loading, 'overflow')
  }

  /** Adds a request that the caller made. It is sent as soon as possible. */
  addRequest(batch: Batch): void {
    if (this.#waiting.addRequest(batch)) this.#pumpSoon()
    else this.#settlements.dropped(batch, 'overflow')
    this.#settleOverflowed()
  }

  /** Sends everything in the queue, without waiting for more entries. */
  hurry(): void {
    this.#waiting.hurry()
    this.#pumpSoon()
  }

  setPersistence(persistence: Persistence): void {
    this.#persistence = persistence
    this.#pump()
    this.changes.happen()
  }

  /** Aborts the requests in flight, and sends nothing more. */
  abort(): void {
    this.#stop.abort()
    this.setPersistence('give-up')
  }

  /** Resolves when all records of the spool are written. Nothing must be added later. */
  async closeSpool(): Promise<void> {
    await this.#opened
    await this.#spooling?.close()
  }

  #createBatch(nowMs: number): Batch {
    const key = this.#platform.uuid()
    return new Batch(key, nowMs, { record: this.#spooling?.create(key) })
  }

  #recover(batches: readonly Batch[]): void {
    this.#waiting.addOldest(batches)
    this.#pumpSoon()
  }

  /** Once for all entries of a turn, and not within the call that logs. */
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
    const isPaused = nowMs < this.#schedule.pausedUntilMs
    if (this.#persistence === 'give-up' || (this.#persistence === 'try-once' && isPaused))
      return this.#giveUpWaiting()
    if (!isPaused) this.#startRequests(nowMs)
    this.#startTimer(nowMs)
  }

  #startRequests(nowMs: number): void {
    while (this.#inFlight.size < this.#settings.requestsInFlightMax) {
      const batch = this.#waiting.takeDue(nowMs)
      if (batch === undefined) return
      this.#inFlight.add(batch)
      void this.#send(batch)
    }
  }

  #giveUpWaiting(): void {
    const takeAny = (): Batch | undefined => this.#waiting.takeFirst(() => true)
    for (let batch = takeAny(); batch !== undefined; batch = takeAny()) this.#giveUp(batch)
  }

  #startTimer(nowMs: number): void {
    // The end of a request starts the next one.
    if (this.#inFlight.size >= this.#settings.requestsInFlightMax) return
    const atMs = Math.max(this.#waiting.nextAtMs(nowMs), this.#schedule.pausedUntilMs)
    if (atMs === Infinity || this.#timerAtMs <= atMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = atMs
    this.#timer = startTimer(() => {
      this.#timerAtMs = Infinity
      this.#pump()
    }, atMs - nowMs)
  }

  async #send(batch: Batch): Promise<void> {
    const wasLoaded = batch.isLoaded
    const isReady = (await this.#spooling?.prepare(batch)) ?? true
    if (!wasLoaded) this.#waiting.memory.add(batch)
    if (!isReady) this.#settle(batch, () => this.#settlements.dropped(batch, 'unreadable'))
    else if (this.#schedule.isTooLate(batch))
      this.#settle(batch, () => this.#settlements.dropped(batch, 'outcome-unknown'))
    else await this.#attempt(batch)
    this.#inFlight.delete(batch)
    this.#pump()
  }

  async #attempt(batch: Batch): Promise<void> {
    const { monotonicMs, wallMs } = this.#platform
    const startedAt = { monotonicMs: monotonicMs(), wallMs: wallMs() }
    batch.firstAttemptAtMs ??= startedAt.monotonicMs
    const { answer, hasResponse } = await postBatch(batch, this.#settings, this.#stop.signal, wallMs)
    this.#hasReceivedResponse ||= hasResponse
    await this.#handle(batch, answer, startedAt)
  }

  async #handle(batch: Batch, answer: Answer, startedAt: ClockTimes): Promise<void> {
    if (answer.kind === 'failed') return this.#handleFailure(batch, answer, startedAt)
    if (answer.kind === 'misconfigured') return this.#handleMisconfiguration(batch, answer)
    this.#schedule.succeed()
    this.#problem = undefined
    if (answer.kind === 'processed') {
      const { accepted, rejections } = answer
      return this.#settle(batch, () => this.#settlements.processed(batch, accepted, rejections))
    }
    if (answer.kind === 'too-large' && canSplit(batch)) return this.#split(batch)
    this.#settle(batch, () => this.#settlements.rejected(batch, answer.error))
  }

  #settle(batch: Batch, settle: () => void): void {
    this.#waiting.memory.release(batch)
    void this.#spooling?.remove(batch)
    settle()
    this.changes.happen()
  }

  async #settleDropped(batch: Batch, loading: Promise<void> | undefined, outcome: DropReason): Promise<void> {
    if (loading !== undefined) await loading
    this.#settlements.dropped(batch, outcome)
    this.changes.happen()
  }

  /** Ends a batch because the client is closing. */
  #giveUp(batch: Batch, last?: LastAttempt): void {
    this.#waiting.memory.release(batch)
    if (batch.record !== undefined) this.#settlements.kept(batch, last)
    else this.#settlements.dropped(batch, 'closed', last)
    this.changes.happen()
  }

  async #split(batch: Batch): Promise<void> {
    const parts = splitBatch(batch, (key) => this.#spooling?.create(key))
    for (const { record } of parts) await record?.written()
    void this.#spooling?.remove(batch)
    for (const part of parts) this.#waiting.delay(part)
  }

  async #handleFailure(batch: Batch, failure: Failure, startedAt: ClockTimes): Promise<void> {
    if (failure.mayBeStored) batch.uncertainSince ??= startedAt
    else await this.#spooling?.clearAttempt(batch)
    batch.failedAttempts += 1
    this.#failedAttempts += 1
    const delayMs = this.#schedule.fail(batch, failure.retryAfterMs)
    if (this.#persistence !== 'retry') return this.#giveUp(batch, failure)
    if (typeof delayMs !== 'number') {
      return this.#settle(batch, () => this.#settlements.dropped(batch, delayMs, failure))
    }
    this.#waiting.delay(batch)
    this.#hooks.onRetry({
      reason: failure.reason,
      status: failure.status,
      cause: failure.cause,
      attempt: batch.failedAttempts,
      delayMs,
      entries: batch.count,
      hasReceivedResponse: this.#hasReceivedResponse,
    })
  }

  async #handleMisconfiguration(batch: Batch, answer: Misconfiguration): Promise<void> {
    await this.#spooling?.clearAttempt(batch)
    batch.failedAttempts += 1
    this.#failedAttempts += 1
    this.#schedule.waitForOperator(batch)
    if (this.#persistence === 'retry') this.#waiting.delay(batch)
    else this.#giveUp(batch, { reason: answer.message, cause: undefined })
    if (this.#problem !== undefined) return
    const { status, message: reason } = answer
    const message = `${this.#settings.url} rejects all requests: ${reason}`
    this.#problem = new SluiceError('configuration', message, { status, reason })
    this.#hooks.onError(this.#problem)
    this.changes.happen()
  }
}

/** An attempt that may have succeeded must not be followed by others with other keys. */
function canSplit({ count, uncertainSince, onSettlement }: Batch): boolean {
  return count > 1 && uncertainSince === undefined && onSettlement === undefined
}
