import { deferred } from '../deferred.ts'
import type { QueuedEntry } from '../entry.ts'
import type { HookCaller } from '../hook-caller.ts'
import type { Settings } from '../options.ts'
import type { Platform } from '../platform.ts'
import type { SluiceError } from '../sluice-error.ts'
import { startTimer, type Timer } from '../timers.ts'
import { Attempts } from './attempts.ts'
import { Batch } from './batch.ts'
import { Changes } from './changes.ts'
import { Endings } from './endings.ts'
import type { Memory } from './memory.ts'
import { OperatorProblem } from './operator-problem.ts'
import type { Persistence } from './persistence.ts'
import { RetrySchedule } from './retry-schedule.ts'
import type { Settlements } from './settlements.ts'
import { Spooling } from './spooling.ts'
import { Stop } from './stop.ts'
import { type Preference, WaitingBatches } from './waiting-batches.ts'

/** How long a disk is waited for after the end of a close. Usually, a write takes a millisecond. */
const DISK_WAIT_MS = 500

/** Sends batches: several at a time, each until it is settled. */
export class Delivery {
  /** Happens whenever entries were settled, or a problem began. */
  readonly changes = new Changes()
  readonly #settings: Settings
  readonly #platform: Platform
  readonly #settlements: Settlements
  readonly #schedule: RetrySchedule
  readonly #problem: OperatorProblem
  readonly #spooling: Spooling | undefined
  readonly #opened: Promise<void>
  readonly #waiting: WaitingBatches
  readonly #endings: Endings
  readonly #attempts: Attempts
  readonly #inFlight = new Set<Batch>()
  /** The request that finds out whether the API works again. */
  #probe: Batch | undefined
  readonly #stop = new Stop()
  readonly #diskEnd = deferred<void>()
  /** Dropped batches, while room is made for an entry. */
  #overflowed: { readonly batch: Batch; readonly loading: Promise<unknown> | undefined }[] = []
  #timer: Timer | undefined
  #timerAtMs = Infinity
  #isPumpScheduled = false
  #persistence: Persistence = 'retry'

  constructor(settings: Settings, platform: Platform, hooks: HookCaller, settlements: Settlements) {
    this.#settings = settings
    this.#platform = platform
    this.#settlements = settlements
    this.#schedule = new RetrySchedule(settings, platform)
    this.#problem = new OperatorProblem(settings.url, hooks)
    this.#waiting = new WaitingBatches(settings, {
      create: (nowMs) => this.#createBatch(nowMs),
      onOverflow: (batch) => this.#overflowed.push({ batch, loading: this.#spooling?.drop(batch) }),
    })
    const spooling = settings.spool && new Spooling(settings.spool, platform, hooks)
    this.#spooling = spooling
    this.#endings = new Endings({
      memory: this.#waiting.memory,
      settlements,
      spooling,
      changes: this.changes,
      diskEnd: this.#diskEnd.promise,
    })
    this.#attempts = new Attempts({
      settings,
      platform,
      hooks,
      schedule: this.#schedule,
      problem: this.#problem,
      spooling,
      waiting: this.#waiting,
      endings: this.#endings,
      stop: this.#stop,
      persistence: () => this.#persistence,
    })
    this.#opened = spooling?.open((batches) => this.#recover(batches)) ?? Promise.resolve()
  }

  get memory(): Readonly<Pick<Memory, 'entries' | 'bytes'>> {
    return this.#waiting.memory
  }

  get requestsInFlight(): number {
    return this.#inFlight.size
  }

  get failedAttempts(): number {
    return this.#attempts.failed
  }

  /** Entries that are only in the spool. */
  get unloadedEntries(): number {
    return this.#waiting.unloadedEntries
  }

  /** Why the API rejects all requests, until it accepts one. */
  get problem(): SluiceError | undefined {
    return this.#problem.error
  }

  /** How many answers there were with such a problem. */
  get problemOccurrences(): number {
    return this.#problem.occurrences
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
    for (const { batch, loading } of overflowed) void this.#endings.dropLoaded(batch, loading, 'overflow')
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

  /** Makes one attempt to find out whether a problem of the configuration was solved, without waiting for its time. */
  tryAgain(): void {
    if (this.#problem.error !== undefined) this.#schedule.resume()
    for (const batch of this.#waiting.batches) if (batch.problems > 0) batch.retryAtMs = 0
  }

  /** Aborts the requests in flight, and sends nothing more. */
  abort(): void {
    this.#stop.happen()
    startTimer(() => this.#diskEnd.resolve(), DISK_WAIT_MS)
    this.setPersistence('give-up')
  }

  /** Resolves when all records of the spool are written, or the disk is not waited for any longer. Must be called after `abort`. */
  async closeSpool(): Promise<void> {
    const closed = this.#opened.then(() => this.#spooling?.close())
    await Promise.race([closed, this.#diskEnd.promise])
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
    while (this.#canStartRequest) {
      const batch = this.#waiting.takeDue(nowMs, this.#preference)
      if (batch === undefined) return
      this.#inFlight.add(batch)
      this.#probe = this.#isProbing ? batch : undefined
      if (this.#schedule.isFailing) this.#schedule.probeTurns.next()
      void this.#send(batch)
    }
  }

  /**
   * While nothing succeeds, one request at a time finds out whether the API works again: each could be stored without an answer, and could not be
   * repeated after the window.
   */
  get #isProbing(): boolean {
    return this.#problem.error !== undefined || this.#schedule.isFailing
  }

  get #canStartRequest(): boolean {
    if (this.#isProbing && this.#probe !== undefined) return false
    return this.#inFlight.size < this.#settings.requestsInFlightMax
  }

  get #preference(): Preference {
    // What was rejected before may be at fault itself.
    if (this.#problem.error !== undefined) return 'untried'
    if (!this.#schedule.isFailing) return 'failed'
    return this.#schedule.probeTurns.isOfUntried ? 'untried' : 'uncertain'
  }

  #giveUpWaiting(): void {
    const takeAny = (): Batch | undefined => this.#waiting.takeFirst(() => true)
    for (let batch = takeAny(); batch !== undefined; batch = takeAny()) this.#endings.giveUp(batch)
  }

  #startTimer(nowMs: number): void {
    // The end of a request starts the next one.
    if (!this.#canStartRequest) return
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
    await this.#attempts.make(batch)
    this.#inFlight.delete(batch)
    if (this.#probe === batch) this.#probe = undefined
    this.changes.happen()
    this.#pump()
  }
}
