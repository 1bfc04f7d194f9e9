import type { EntryError, QueuedEntry } from '../entry.ts'
import type { HookCaller } from '../hook-caller.ts'
import type { DropReason } from '../hooks.ts'
import type { Settings } from '../options.ts'
import type { Platform } from '../platform.ts'
import { SluiceError } from '../sluice-error.ts'
import { startTimer, type Timer } from '../timers.ts'
import type { Answer, EntryRejection, Failure } from './answers.ts'
import { delayMs } from './backoff.ts'
import { Batch } from './batch.ts'
import { BatchQueue } from './batch-queue.ts'
import { Pause } from './pause.ts'
import { postBatch } from './post.ts'

/**
 * What is done with entries that are not acknowledged.
 *
 * - `retry`: they are sent until they are acknowledged.
 * - `try-once`: they are sent, but not after a failure and not after a pause.
 * - `give-up`: only requests in flight are awaited.
 */
export type Persistence = 'retry' | 'try-once' | 'give-up'

/** A request that the API rejects for its key, project or address is retried after this time: a project may be enabled again. */
const MISCONFIGURED_RETRY_MS = 60_000

/** Counts since the client was created. */
export interface DeliveryCounts {
  accepted: number
  rejected: number
  dropped: number
  failedAttempts: number
}

/** Sends batches: several at a time, each until it is settled. */
export class Delivery {
  readonly #settings: Settings
  readonly #platform: Platform
  readonly #hooks: HookCaller
  readonly #queue: BatchQueue
  readonly #pause = new Pause()
  /** Batches that wait for their next attempt. */
  readonly #delayed = new Set<Batch>()
  readonly #inFlight = new Set<Batch>()
  readonly #stop = new AbortController()
  readonly #counts: DeliveryCounts = { accepted: 0, rejected: 0, dropped: 0, failedAttempts: 0 }
  readonly #changed = new Set<() => void>()
  #entries = 0
  #bytes = 0
  #timer: Timer | undefined
  #timerAtMs = Infinity
  #isPumpScheduled = false
  #persistence: Persistence = 'retry'
  #hasReceivedResponse = false
  #problem: SluiceError | undefined

  constructor(settings: Settings, platform: Platform, hooks: HookCaller) {
    this.#settings = settings
    this.#platform = platform
    this.#hooks = hooks
    this.#queue = new BatchQueue(settings, platform.uuid)
  }

  get counts(): Readonly<DeliveryCounts> {
    return this.#counts
  }

  get queued(): { readonly entries: number; readonly bytes: number; readonly requestsInFlight: number } {
    return { entries: this.#entries, bytes: this.#bytes, requestsInFlight: this.#inFlight.size }
  }

  /** Why the API rejects every request, until it accepts one. */
  get problem(): SluiceError | undefined {
    return this.#problem
  }

  get #hasRoom(): boolean {
    const { queueEntriesMax, queueBytesMax, batchEntriesMax, batchBytesMax } = this.#settings
    return this.#entries + batchEntriesMax <= queueEntriesMax && this.#bytes + batchBytesMax <= queueBytesMax
  }

  /** The batches that are not settled. */
  unsettled(): Batch[] {
    return [...this.#inFlight, ...this.#delayed, ...this.#queue.batches]
  }

  /** Resolves when a further batch fits into the queue, or no entry is taken any more. */
  async waitForRoom(): Promise<void> {
    if (this.#hasRoom || this.#stop.signal.aborted) return
    await new Promise<void>((resolve) => {
      const unsubscribe = this.onChange(() => {
        if (!this.#hasRoom && !this.#stop.signal.aborted) return
        unsubscribe()
        resolve()
      })
    })
  }

  /** Calls back whenever entries were settled or a problem began. @returns a function that ends this */
  onChange(callback: () => void): () => void {
    this.#changed.add(callback)
    return () => this.#changed.delete(callback)
  }

  add(entry: QueuedEntry): void {
    if (!this.#makeRoom(entry)) return this.#drop([entry], 'overflow')
    this.#entries += 1
    this.#bytes += entry.bytes
    if (this.#queue.add(entry, this.#platform.monotonicMs())) this.#pumpSoon()
  }

  /** Counts an entry that was never queued. */
  countRejected(): void {
    this.#counts.rejected += 1
  }

  drop(entry: QueuedEntry, reason: DropReason): void {
    this.#drop([entry], reason)
  }

  /** Sends everything in the queue without waiting for more entries. */
  hurry(): void {
    for (const batch of this.#queue.batches) batch.isUrgent = true
    this.#pumpSoon()
  }

  setPersistence(persistence: Persistence): void {
    this.#persistence = persistence
    this.#pump()
  }

  /** Aborts the requests in flight, and gives everything up. */
  abort(): void {
    this.setPersistence('give-up')
    this.#stop.abort()
    this.#notify()
  }

  /** @returns whether the queue has room for an entry, after older ones were dropped if the policy says so */
  #makeRoom(entry: QueuedEntry): boolean {
    const { overflow, queueEntriesMax, queueBytesMax } = this.#settings
    while (this.#entries >= queueEntriesMax || this.#bytes + entry.bytes > queueBytesMax) {
      if (overflow === 'drop-newest') return false
      const oldest = this.#takeOldestWaiting()
      if (oldest === undefined) return false
      this.#giveUp(oldest, 'overflow', undefined)
    }
    return true
  }

  #takeOldestWaiting(): Batch | undefined {
    for (const batch of this.#delayed) {
      this.#delayed.delete(batch)
      return batch
    }
    return this.#queue.takeOldest()
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
    const isPaused = nowMs < this.#pause.untilMs
    if (this.#persistence === 'give-up' || (this.#persistence === 'try-once' && isPaused))
      return this.#giveUpWaiting()
    if (!isPaused) this.#startRequests(nowMs)
    this.#startTimer(nowMs)
  }

  #startRequests(nowMs: number): void {
    while (this.#inFlight.size < this.#settings.requestsInFlightMax) {
      const batch = this.#takeDelayed(nowMs) ?? this.#queue.take(nowMs)
      if (batch === undefined) return
      this.#inFlight.add(batch)
      void this.#attempt(batch)
    }
  }

  #giveUpWaiting(): void {
    for (let batch = this.#takeOldestWaiting(); batch !== undefined; batch = this.#takeOldestWaiting())
      this.#giveUp(batch, 'closed', undefined)
  }

  #takeDelayed(nowMs: number): Batch | undefined {
    for (const batch of this.#delayed) {
      if (batch.retryAtMs > nowMs) continue
      this.#delayed.delete(batch)
      return batch
    }
    return undefined
  }

  #startTimer(nowMs: number): void {
    // A request that ends starts the next one.
    if (this.#inFlight.size >= this.#settings.requestsInFlightMax) return
    let atMs = this.#queue.dueAtMs(nowMs)
    for (const { retryAtMs } of this.#delayed) atMs = Math.min(atMs, retryAtMs)
    if (atMs === Infinity) return
    atMs = Math.max(atMs, this.#pause.untilMs)
    if (this.#timerAtMs <= atMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = atMs
    this.#timer = startTimer(() => {
      this.#timerAtMs = Infinity
      this.#pump()
    }, atMs - nowMs)
  }

  async #attempt(batch: Batch): Promise<void> {
    const startedAtMs = this.#platform.monotonicMs()
    batch.firstAttemptAtMs ??= startedAtMs
    const { answer, hasResponse } = await postBatch(
      batch,
      this.#settings,
      this.#stop.signal,
      this.#platform.wallMs,
    )
    this.#hasReceivedResponse ||= hasResponse
    this.#inFlight.delete(batch)
    this.#handle(batch, answer, startedAtMs)
    this.#pump()
  }

  #handle(batch: Batch, answer: Answer, startedAtMs: number): void {
    switch (answer.kind) {
      case 'processed':
        this.#succeed()
        return this.#settleProcessed(batch, answer.accepted, answer.rejections)
      case 'rejected':
        this.#succeed()
        return this.#rejectAll(batch, answer.error)
      case 'too-large':
        this.#succeed()
        return this.#split(batch, answer.error)
      case 'misconfigured':
        return this.#waitForOperator(batch, answer.status, answer.message)
      case 'failed':
        if (answer.mayBeStored) batch.uncertainSinceMs ??= startedAtMs
        return this.#retryLater(batch, answer)
    }
  }

  #succeed(): void {
    this.#pause.succeed()
    this.#problem = undefined
  }

  #settleProcessed(batch: Batch, accepted: number, rejections: readonly EntryRejection[]): void {
    const rejected = batch.entries.length - accepted
    this.#settle(batch, { outcome: 'answered', accepted, rejected, reason: undefined })
    for (const { index, error } of rejections) {
      const entry = batch.entries[index]
      if (entry !== undefined) this.#hooks.onRejected({ entry: entry.json, error, tag: entry.tag })
    }
  }

  #rejectAll(batch: Batch, error: EntryError): void {
    const rejected = batch.entries.length
    this.#settle(batch, { outcome: 'rejected', accepted: 0, rejected, reason: error.message })
    for (const { json, tag } of batch.entries) this.#hooks.onRejected({ entry: json, error, tag })
  }

  #giveUp(batch: Batch, outcome: DropReason, reason: string | undefined): void {
    this.#settle(batch, { outcome, accepted: 0, rejected: 0, reason })
    this.#hooks.onDropped(batch.entries, outcome)
  }

  #settle(
    batch: Batch,
    settlement: {
      readonly outcome: 'answered' | 'rejected' | DropReason
      readonly accepted: number
      readonly rejected: number
      readonly reason: string | undefined
    },
  ): void {
    const { accepted, rejected } = settlement
    const dropped = batch.entries.length - accepted - rejected
    this.#release(batch)
    this.#counts.accepted += accepted
    this.#counts.rejected += rejected
    this.#counts.dropped += dropped
    this.#hooks.onSettled({ entries: batch.entries, ...settlement })
    batch.settle({ accepted, rejected, dropped })
    this.#notify()
  }

  #release(batch: Batch): void {
    this.#entries -= batch.entries.length
    this.#bytes -= batch.bytes
  }

  #drop(entries: readonly QueuedEntry[], reason: DropReason): void {
    this.#counts.dropped += entries.length
    this.#hooks.onDropped(entries, reason)
  }

  /** Sends the halves of a batch on their own. Each has a key of its own: nothing of the batch was stored. */
  #split(batch: Batch, error: EntryError): void {
    // An attempt that may have succeeded must not be followed by another key.
    if (batch.entries.length === 1 || batch.uncertainSinceMs !== undefined)
      return this.#rejectAll(batch, error)
    const middle = Math.ceil(batch.entries.length / 2)
    const parts = [batch.entries.slice(0, middle), batch.entries.slice(middle)].map(
      (entries) => new Batch(this.#platform.uuid(), batch.openedAtMs, entries),
    )
    for (const part of parts) this.#delayed.add(part)
    void Promise.all(parts.map(({ settled }) => settled)).then((results) =>
      batch.settle({
        accepted: results.reduce((sum, { accepted }) => sum + accepted, 0),
        rejected: results.reduce((sum, { rejected }) => sum + rejected, 0),
        dropped: results.reduce((sum, { dropped }) => sum + dropped, 0),
      }),
    )
  }

  #retryLater(batch: Batch, failure: Failure): void {
    const { random, monotonicMs } = this.#platform
    const nowMs = monotonicMs()
    batch.failedAttempts += 1
    this.#counts.failedAttempts += 1
    const { retryAfterMs } = failure
    const pauseMs = delayMs(this.#pause.countFailure(nowMs), retryAfterMs, random())
    this.#pause.extend(nowMs + pauseMs, retryAfterMs !== undefined)
    const waitMs = delayMs(batch.failedAttempts, retryAfterMs, random())
    batch.retryAtMs = nowMs + waitMs
    const end = this.#endOfRetries(batch)
    if (end !== undefined) return this.#giveUp(batch, end, failure.reason)
    this.#delayed.add(batch)
    this.#hooks.onRetry({
      reason: failure.reason,
      status: failure.status,
      cause: failure.cause,
      attempt: batch.failedAttempts,
      delayMs: Math.max(waitMs, pauseMs),
      entries: batch.entries.length,
      hasReceivedResponse: this.#hasReceivedResponse,
    })
  }

  /** Why there is no further attempt. */
  #endOfRetries({ retryAtMs, firstAttemptAtMs = 0, uncertainSinceMs }: Batch): DropReason | undefined {
    const { retryForMs, idempotencyWindowMs, requestTimeoutMs } = this.#settings
    if (this.#persistence !== 'retry') return 'closed'
    if (retryAtMs > firstAttemptAtMs + retryForMs) return 'retries'
    // The last attempt must arrive within the window. A sixth of it is for clocks that differ in speed, and for the proxies in between.
    const safeMs = (idempotencyWindowMs * 5) / 6 - requestTimeoutMs
    return uncertainSinceMs !== undefined && retryAtMs > uncertainSinceMs + safeMs
      ? 'outcome-unknown'
      : undefined
  }

  /** Keeps the entries, and tries one request now and then. */
  #waitForOperator(batch: Batch, status: number, message: string): void {
    const nowMs = this.#platform.monotonicMs()
    batch.failedAttempts += 1
    batch.retryAtMs = nowMs + MISCONFIGURED_RETRY_MS
    this.#counts.failedAttempts += 1
    this.#pause.extend(batch.retryAtMs, true)
    if (this.#persistence === 'retry') this.#delayed.add(batch)
    else this.#giveUp(batch, 'closed', message)
    if (this.#problem !== undefined) return
    this.#problem = new SluiceError(
      'configuration',
      `${this.#settings.url} rejects all requests: ${message}`,
      { status },
    )
    this.#hooks.onError(this.#problem)
    this.#notify()
  }

  #notify(): void {
    for (const callback of this.#changed) callback()
  }
}
