import { limits } from '@sluice/schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem, problems } from '../problems.ts'
import { type Amount, minus, nothing, plus, positive } from '../rate-limits/rate-limit.ts'

/** Charges a part of the cost of a request, or its whole cost after a part of it. @throws Problem `rate_limited` */
export async function pay(request: FastifyRequest, cost: Amount): Promise<void> {
  const { allowance, paid } = request
  if (allowance === null) return
  await (paid === null ? allowance.take(cost) : allowance.raise(paid, cost))
  request.paid = cost
}

/** Charges a request whose body was rejected: its bytes cost as much work as those of an accepted one. Updates the headers of the answer. */
export function settle(error: unknown, request: FastifyRequest, reply: FastifyReply, bytes: number): void {
  const { allowance } = request
  if (allowance === null) return
  if (error instanceof Problem && [400, 413, 415].includes(problems[error.code].status))
    chargeRejected(request, reply, error.code === 'body_too_large' ? limits.bodyBytesMax : bytes)
  else void reply.header('ratelimit', allowance.state)
}

/**
 * The error handler of a route that takes entries. Charges a body whose length was unknown, and which was read up to the limit.
 *
 * @throws the error
 */
export function chargeUnknownLength(error: Error, request: FastifyRequest, reply: FastifyReply): never {
  const wasRead = request.headers['content-length'] === undefined && request.body === undefined
  if (wasRead && error instanceof Problem && error.code === 'body_too_large')
    chargeRejected(request, reply, limits.bodyBytesMax)
  throw error
}

/** Counts one entry and the bytes of a rejected body, unless they were counted before. */
function chargeRejected(request: FastifyRequest, reply: FastifyReply, bytes: number): void {
  const { allowance } = request
  if (allowance === null) return
  chargeUpTo({ entries: 1, bytes }, request)
  void reply.header('ratelimit', allowance.state)
}

/** Charges what the request has not paid of a cost, whether it is covered or not: the work is done. */
export function chargeUpTo(cost: Amount, request: FastifyRequest): void {
  const { allowance } = request
  const paid = request.paid ?? nothing
  const owed = positive(minus(cost, paid))
  if (allowance === null || (owed.entries === 0 && owed.bytes === 0)) return
  allowance.charge(owed)
  request.paid = plus(paid, owed)
}
