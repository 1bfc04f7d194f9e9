import { type Logger, PeriodicTask, permitWrites, readClock, type RedisConnection } from '@sluice/runtime'
import { isNotConnectionError } from 'bullmq'
import { jobScript, renewLocksLua, requeueStalledLua } from './bullmq-internals.ts'
import type { QueueNames } from './queue-names.ts'

/** A job that this worker has locked. */
export interface LockedJob {
  readonly id: string
  /** The token of its lock. */
  readonly token: string
}

/** The locked jobs whose chunks this worker keeps in memory, by id. */
export class HeldJobs {
  readonly #jobs = new Map<string, LockedJob>()
  /** The jobs whose locks may have been released. */
  readonly #releasing = new Set<LockedJob>()

  get size(): number {
    return this.#jobs.size
  }

  /** @returns whether the job is new. Otherwise its lock had expired, and it was fetched a second time: it has a new token now. */
  add(job: LockedJob): boolean {
    const isNew = !this.#jobs.has(job.id)
    this.#jobs.set(job.id, job)
    return isNew
  }

  /** The jobs that are held, in the order of the ids. */
  of(ids: readonly string[]): LockedJob[] {
    return ids.flatMap((id) => this.#jobs.get(id) ?? [])
  }

  /** The jobs whose locks must be renewed. */
  get locked(): LockedJob[] {
    return [...this.#jobs.values()].filter((job) => !this.#releasing.has(job))
  }

  isLocked(job: LockedJob): boolean {
    return this.#jobs.get(job.id) === job && !this.#releasing.has(job)
  }

  /** Runs a step that releases the locks of jobs. They are no longer held if it resolves to true. After an error, Redis may not have run it. */
  async release(jobs: readonly LockedJob[], step: () => Promise<boolean>): Promise<boolean> {
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
    for (const id of ids) this.#jobs.delete(id)
  }
}

/** Locks are renewed this many times within their duration, so at least half of it is left at any time. */
const RENEWALS_PER_LOCK = 4
/** Locks per run of the script. Redis serves no other client meanwhile, for about a millisecond. */
const RENEWED_PER_RUN_MAX = 256
/** A crashed worker is detected by the second check after its lock has expired. */
const STALLED_CHECK_MAX_MS = 10_000
/** With its default of 1, BullMQ would fail a valid chunk whose workers crashed twice. */
const STALLED_COUNT_MAX = 1_000_000_000

/** ARGV: the duration of a lock in ms, the ids of the jobs, their tokens. Returns the ids of the locks that are lost. */
const RENEW = `
${renewLocksLua}
${permitWrites}
local count = (#ARGV - 2) / 2
local ids, tokens = {}, {}
for i = 1, count do ids[i], tokens[i] = ARGV[2 + i], ARGV[2 + count + i] end
return renewLocks(base, ids, tokens, ARGV[2])`

/** ARGV: how often a job may stall, the interval of the check in ms. */
const CHECK_STALLED = `
${requeueStalledLua}
${permitWrites}
${readClock}
requeueStalled(base, nowMs, ARGV[2], ARGV[3])`

export interface JobLocksOptions {
  readonly redis: RedisConnection
  readonly names: QueueNames
  readonly lockDurationMs: number
  readonly logger: Logger
}

/**
 * Renews the locks of the held jobs, and requeues jobs of workers that died. Its timers are monotonic, so the clock of the machine
 * may be set. Returns how to stop.
 */
export function keepLocks(
  { redis, names, lockDurationMs, logger }: JobLocksOptions,
  held: HeldJobs,
): () => void {
  const renew = jobScript<string[]>(redis, names, RENEW)
  const checkStalled = jobScript(redis, names, CHECK_STALLED)
  const stalledCheckMs = Math.min(STALLED_CHECK_MAX_MS, lockDurationMs)

  const renewAll = async (): Promise<void> => {
    const jobs = held.locked
    const lostIds = new Set<string>()
    for (let from = 0; from < jobs.length; from += RENEWED_PER_RUN_MAX) {
      const run = jobs.slice(from, from + RENEWED_PER_RUN_MAX)
      const [ids, tokens] = [run.map(({ id }) => id), run.map(({ token }) => token)]
      for (const id of await renew(lockDurationMs, ...ids, ...tokens)) lostIds.add(id)
    }
    const lost = jobs.filter((job) => lostIds.has(job.id) && held.isLocked(job))
    // Another worker may have the chunk now. The batch ledger keeps the two from inserting it twice.
    if (lost.length > 0) logger.warn({ chunks: lost.length, chunkId: lost[0]?.id }, 'locks lost')
  }
  const repeat = (intervalMs: number, failureMessage: string, run: () => Promise<unknown>): PeriodicTask =>
    new PeriodicTask(intervalMs, async () => {
      await run().catch((error: unknown) => {
        // Errors of the connection are logged by its owner.
        if (isNotConnectionError(error as Error)) logger.warn({ err: error }, failureMessage)
      })
    })
  const tasks = [
    repeat(lockDurationMs / RENEWALS_PER_LOCK, 'locks not renewed', renewAll),
    repeat(stalledCheckMs, 'stalled jobs not requeued', () =>
      checkStalled(STALLED_COUNT_MAX, stalledCheckMs),
    ),
  ]
  return () => {
    for (const task of tasks) task.stop()
  }
}
