import {
  defineScript,
  type Logger,
  PeriodicTask,
  permitWrites,
  readClock,
  type RedisConnection,
  type RedisScript,
} from '@sluice/runtime'
import { isNotConnectionError } from 'bullmq'
import { renewLocksLua, requeueStalledLua } from './bullmq-internals.ts'
import type { QueueNames } from './queue-names.ts'

/** A job that this worker has locked. */
export interface HeldJob {
  readonly id: string
  /** The token of its lock. */
  readonly token: string
  /** Its size in bytes of base64. */
  readonly bytes: number
}

/** The jobs in hand, by id. */
export class HeldJobs {
  readonly #jobs = new Map<string, HeldJob>()
  /** The jobs whose locks may have been released. */
  readonly #releasing = new Set<HeldJob>()
  #bytes = 0

  get size(): number {
    return this.#jobs.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @returns whether the job is new. Otherwise its lock had expired, and it was fetched a second time: it has a new token now. */
  add(job: HeldJob): boolean {
    const isNew = !this.#jobs.has(job.id)
    this.forget([job.id])
    this.#jobs.set(job.id, job)
    this.#bytes += job.bytes
    return isNew
  }

  /** Those of the jobs that are in hand, in the order of the ids. */
  of(ids: readonly string[]): HeldJob[] {
    return ids.flatMap((id) => this.#jobs.get(id) ?? [])
  }

  /** The jobs whose locks must be renewed. */
  get locked(): HeldJob[] {
    return [...this.#jobs.values()].filter((job) => !this.#releasing.has(job))
  }

  isLocked(job: HeldJob): boolean {
    return this.#jobs.get(job.id) === job && !this.#releasing.has(job)
  }

  /**
   * Runs a step that releases the locks of jobs.
   *
   * @param step resolves to whether it released the locks. Only then the jobs are no longer in hand. After an error they still are:
   *   Redis may not have run the step
   */
  async release(jobs: readonly HeldJob[], step: () => Promise<boolean>): Promise<boolean> {
    for (const job of jobs) this.#releasing.add(job)
    try {
      const isReleased = await step()
      // A job that was fetched again meanwhile has a new lock.
      if (isReleased) this.forget(jobs.filter((job) => this.#jobs.get(job.id) === job).map(({ id }) => id))
      return isReleased
    } finally {
      for (const job of jobs) this.#releasing.delete(job)
    }
  }

  forget(ids: readonly string[]): void {
    for (const id of ids) {
      this.#bytes -= this.#jobs.get(id)?.bytes ?? 0
      this.#jobs.delete(id)
    }
  }
}

/** Locks are renewed this many times within their duration, so at least half of it is left at any time. */
const RENEWALS_PER_LOCK = 4
/** Locks per run of the script. Redis answers no other client meanwhile, for about a millisecond. */
const RENEWED_PER_RUN_MAX = 256
/** A crashed worker is detected by the second check after its lock has expired. */
const STALLED_CHECK_MAX_MS = 10_000
/** With its default of 1, BullMQ would fail a valid chunk whose workers crashed twice. */
const STALLED_COUNT_MAX = 1_000_000_000

/**
 * KEYS: the wait list, `absentKey`. ARGV: the beginning of the queue's keys, the duration of a lock in ms, the ids of the jobs, their
 * tokens.
 */
const RENEW = `
${renewLocksLua}
${permitWrites}
local count = (#ARGV - 2) / 2
local ids, tokens = {}, {}
for i = 1, count do ids[i], tokens[i] = ARGV[2 + i], ARGV[2 + count + i] end
return renewLocks(ARGV[1], ids, tokens, ARGV[2])`

/**
 * KEYS: the wait list, `absentKey`. ARGV: the beginning of the queue's keys, how often a job may stall, the interval of the check in ms.
 */
const CHECK_STALLED = `
${requeueStalledLua}
${permitWrites}
${readClock}
requeueStalled(ARGV[1], nowMs, ARGV[2], ARGV[3])`

export interface JobLocksOptions {
  readonly redis: RedisConnection
  readonly names: QueueNames
  readonly lockDurationMs: number
  readonly logger: Logger
}

/**
 * Renews the locks of the jobs in hand, and requeues jobs of workers that died. Its timers are monotonic, so the clock of the machine
 * may be set.
 */
export class JobLocks {
  readonly #options: JobLocksOptions
  readonly #jobs: HeldJobs
  readonly #renew: RedisScript<string[]>
  readonly #checkStalled: RedisScript<null>
  readonly #stalledCheckMs: number
  readonly #tasks: readonly PeriodicTask[]

  constructor(options: JobLocksOptions, jobs: HeldJobs) {
    const { redis, lockDurationMs } = options
    this.#options = options
    this.#jobs = jobs
    this.#renew = defineScript(redis, RENEW)
    this.#checkStalled = defineScript(redis, CHECK_STALLED)
    this.#stalledCheckMs = Math.min(STALLED_CHECK_MAX_MS, lockDurationMs)
    this.#tasks = [
      new PeriodicTask(lockDurationMs / RENEWALS_PER_LOCK, () =>
        this.#guard('locks not renewed', () => this.#renewAll()),
      ),
      new PeriodicTask(this.#stalledCheckMs, () =>
        this.#guard('stalled jobs not requeued', () => this.#requeueStalled()),
      ),
    ]
  }

  /** From now on the locks expire. */
  stop(): void {
    for (const task of this.#tasks) task.stop()
  }

  async #renewAll(): Promise<void> {
    const { logger } = this.#options
    const jobs = this.#jobs.locked
    const lost: HeldJob[] = []
    for (let from = 0; from < jobs.length; from += RENEWED_PER_RUN_MAX)
      lost.push(...(await this.#renewRun(jobs.slice(from, from + RENEWED_PER_RUN_MAX))))
    // Another worker may have the chunk now. The batch ledger keeps the two from inserting it twice.
    if (lost.length > 0) logger.warn({ chunks: lost.length, chunkId: lost[0]?.id }, 'locks lost')
  }

  /** @returns the jobs whose locks are lost */
  async #renewRun(jobs: readonly HeldJob[]): Promise<HeldJob[]> {
    const { names, lockDurationMs } = this.#options
    const lost = await this.#renew(
      [names.waitKey, names.absentKey],
      [names.jobKey(''), lockDurationMs, ...jobs.map(({ id }) => id), ...jobs.map(({ token }) => token)],
    )
    const ids = new Set(lost)
    return jobs.filter((job) => ids.has(job.id) && this.#jobs.isLocked(job))
  }

  async #requeueStalled(): Promise<void> {
    const { names } = this.#options
    await this.#checkStalled(
      [names.waitKey, names.absentKey],
      [names.jobKey(''), STALLED_COUNT_MAX, this.#stalledCheckMs],
    )
  }

  /** Never rejects. */
  async #guard(failureMessage: string, run: () => Promise<void>): Promise<void> {
    try {
      await run()
    } catch (error) {
      // Errors of the connection are logged by its owner.
      if (isNotConnectionError(error as Error)) this.#options.logger.warn({ err: error }, failureMessage)
    }
  }
}
