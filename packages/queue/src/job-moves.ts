import { readClock, type RedisConnection } from '@sluice/runtime'
import { delayJobLua, finisherLua, jobScript, requeuerLua } from './bullmq-internals.ts'
import type { LockedJob } from './held-jobs.ts'
import type { QueueNames } from './queue-names.ts'

/** Jobs per run of a script. Redis serves no other client meanwhile, for about two milliseconds. */
const MOVED_PER_RUN_MAX = 64

/** The end of the wait list to which jobs return. Jobs at the front are the next ones to be fetched. */
export type QueueEnd = 'front' | 'back'

/**
 * ARGV: '1' for the back of the list; the ids of the jobs; the tokens of their locks. BullMQ's script pushes a job to the front. From
 * there it is moved to the back, unless it was there before.
 */
const REQUEUE = `
${requeuerLua}
local requeue = newRequeuer(base)
local count = (#ARGV - 2) / 2
for i = 3, 2 + count do
  local isHeld = redis.call('GET', base .. ARGV[i] .. ':lock') == ARGV[i + count]
  requeue(ARGV[i], ARGV[i + count])
  if isHeld and ARGV[2] == '1' and redis.call('LINDEX', KEYS[1], -1) == ARGV[i] then
    redis.call('RPOPLPUSH', KEYS[1], KEYS[1])
  end
end`

/** ARGV: the delay in ms, the id of the job, the token of its lock. */
const DELAY = `
${delayJobLua}
${readClock}
delayJob(base, nowMs, ARGV[3], ARGV[4], ARGV[2])`

/**
 * ARGV: the id of the job, the token of its lock, the reason, the stack traces as JSON. Returns 1 if the job is failed now, also if an
 * earlier run has moved it.
 */
const FAIL = `
${finisherLua}
${readClock}
newFinisher(base, nowMs, 'failed')(ARGV[2], ARGV[3], ARGV[4], ARGV[5])
return redis.call('ZSCORE', base .. 'failed', ARGV[2]) and 1 or 0`

/**
 * Moves active jobs to other states, also while Redis is above its `maxmemory`. A job is left unchanged if its lock has expired or another
 * worker has locked it, so each step may be repeated.
 */
export function jobMover(redis: RedisConnection, names: QueueNames) {
  const requeueRun = jobScript<null>(redis, names, REQUEUE)
  const delayJob = jobScript<null>(redis, names, DELAY)
  const failJob = jobScript<number>(redis, names, FAIL)
  return {
    /** The jobs keep their order. */
    async requeue(jobs: readonly LockedJob[], end: QueueEnd): Promise<void> {
      // The job that is pushed to the front last is the first in the queue.
      const inOrder = end === 'front' ? jobs.toReversed() : jobs
      for (let from = 0; from < inOrder.length; from += MOVED_PER_RUN_MAX) {
        const run = inOrder.slice(from, from + MOVED_PER_RUN_MAX)
        const [ids, tokens] = [run.map(({ id }) => id), run.map(({ token }) => token)]
        await requeueRun(end === 'back' ? 1 : 0, ...ids, ...tokens)
      }
    },
    async delay({ id, token }: LockedJob, delayMs: number): Promise<void> {
      await delayJob(delayMs, id, token)
    },
    /** The job stays in Redis with the error, until an operator handles it. @returns false if it was left unchanged */
    async fail({ id, token }: LockedJob, error: Error): Promise<boolean> {
      const stacktrace = JSON.stringify(error.stack === undefined ? [] : [error.stack])
      return (await failJob(id, token, error.message, stacktrace)) === 1
    },
  }
}
