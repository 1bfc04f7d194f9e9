import { QueueFullError, QueueUnavailableError } from '@sluice/queue'
import type { OverloadMonitor } from '../overload/overload-monitor.ts'
import { Problem, problems } from '../problems.ts'

const RETRY_AFTER_S = '1'
const PARTLY_STORED =
  'A part of the request is stored, and another part is not. Retry with the same idempotency key.'

/** The answer to a request whose entries could not be stored. Other errors are returned as they are. */
export function storeProblem(error: unknown, overload: Pick<OverloadMonitor, 'reject'>): unknown {
  if (error instanceof QueueFullError) return overload.reject('redis_memory')
  return error instanceof QueueUnavailableError ? queueUnavailable(RETRY_AFTER_S) : error
}

/**
 * The answer to a request if a part of it is stored, whatever stopped the rest: every other problem says that nothing is stored. A retry with
 * the idempotency key stores the rest. It waits as long as the cause asks for.
 *
 * @returns other errors as they are
 */
export function partlyStored(error: unknown, overload: Pick<OverloadMonitor, 'reject'>): unknown {
  const problem = storeProblem(error, overload)
  return problem instanceof Problem
    ? queueUnavailable(problem.headers['retry-after'] ?? RETRY_AFTER_S, PARTLY_STORED)
    : problem
}

function queueUnavailable(retryAfterS: string, detail: string = problems.queue_unavailable.detail): Problem {
  return new Problem('queue_unavailable', detail, {
    headers: { 'retry-after': retryAfterS },
  })
}
