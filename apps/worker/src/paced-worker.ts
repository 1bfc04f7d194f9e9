import { isNotConnectionError, type Processor, Worker, type WorkerOptions } from 'bullmq'
import { setTimeout as delay } from 'node:timers/promises'
import { workerLimits } from './limits.ts'

const limits = workerLimits.fetch

/**
 * A BullMQ worker that fetches by the clock, all that has gathered in one go.
 *
 * BullMQ's own loop fetches one job after the other, each as soon as it comes. With `appendfsync always` each is a wait
 * for the disk, in which Redis confirms nothing to anybody; what is fetched in one go is one wait. All else is BullMQ's:
 * locks, stalled jobs, what becomes of a job. It runs from the start until it is closed, and cannot be paused.
 */
export class PacedWorker<Data> extends Worker<Data, void> {
  readonly #inHand = new Set<Promise<unknown>>()
  readonly #closed = new AbortController()
  #fetches = 0

  constructor(name: string, processor: Processor<Data, void>, options: Omit<WorkerOptions, 'autorun'>) {
    // BullMQ would run it before this class has its fields.
    super(name, processor, { ...options, autorun: false })
    void this.run()
  }

  /** Without the second connection on which BullMQ's own loop waits: closing and completing would wait for it as well. */
  protected override createBackend(): void {
    this.backend = this.backendFactory(this.name, this.opts, {})
  }

  override async run(): Promise<void> {
    this.running = true
    await this.startStalledCheckTimer()
    this.lockManager.start()
    this.mainLoopRunning = this.#fetchUntilClosed()
    await this.mainLoopRunning
    this.running = false
  }

  override close(force?: boolean): Promise<void> {
    this.#closed.abort()
    return super.close(force)
  }

  /** Resolves when what was fetched is done with as well. */
  async #fetchUntilClosed(): Promise<void> {
    // One more than came last time tells whether more is waiting.
    let wanted = 1
    while (!this.#closed.signal.aborted) {
      const room = Math.max(0, this.concurrency - this.#inHand.size)
      const asked = Math.min(wanted, room, limits.jobsMax)
      const fetched = await this.#fetch(asked)
      if (fetched === 'refused') {
        await this.#rest(limits.restAfterRefusalMs)
      } else if (asked > 0 && fetched === asked) {
        wanted = 2 * asked
      } else {
        wanted = fetched + 1
        await this.#rest(fetched > 0 || room === 0 ? limits.intervalMs : limits.idleIntervalMs)
      }
    }
    await Promise.all(this.#inHand)
  }

  /** Fetches up to so many jobs, and has them processed. Resolves when Redis has answered for all of them. */
  async #fetch(count: number): Promise<number | 'refused'> {
    const results = await Promise.allSettled(Array.from({ length: count }, () => this.#fetchOne()))
    const refusal = results.find((result) => result.status === 'rejected')
    if (refusal === undefined)
      return results.filter((result) => result.status === 'fulfilled' && result.value).length
    const error = refusal.reason as Error
    // What is wrong with a connection is said where it was made.
    if (isNotConnectionError(error)) this.emit('error', error)
    return 'refused'
  }

  /** @returns whether there was one */
  async #fetchOne(): Promise<boolean> {
    this.#fetches += 1
    const token = `${this.id}:${this.#fetches}`
    const job = await this.moveToActive(token)
    if (job === undefined) return false
    const processed: Promise<unknown> = this.processJob(job, token, () => false).finally(() =>
      this.#inHand.delete(processed),
    )
    this.#inHand.add(processed)
    return true
  }

  async #rest(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#closed.signal }).catch(() => undefined)
  }
}
