import { AssertionError } from 'node:assert'

/** The worker gives up work that it has begun. Its chunks are returned to the queue. */
export class RequeueError extends Error {
  override name = 'RequeueError'
  /** The end of the queue to which they return: the front, or behind all other chunks. */
  readonly end: 'front' | 'back'

  constructor(message: string, end: 'front' | 'back' = 'front') {
    super(message)
    this.end = end
  }
}

/** No retry can deliver the chunks. An operator must find out why. Their jobs are moved to the failed jobs. */
export class UndeliverableError extends Error {
  override name = 'UndeliverableError'
}

/** Whether another attempt cannot succeed: the worker gives up, an operator is needed, or the code has a defect. */
export function isFinal(error: unknown): boolean {
  return [RequeueError, UndeliverableError, TypeError, RangeError, ReferenceError, AssertionError].some(
    (type) => error instanceof type,
  )
}
