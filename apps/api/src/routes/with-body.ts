import { QueueFullError, QueueUnavailableError } from '@sluice/queue'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ContentDecoder, decodeSmall } from '../intake/content-encoding.ts'
import { OverloadedError } from '../overload/overloaded-error.ts'
import type { OverloadMonitor } from '../overload/overload-monitor.ts'
import { Problem, problems } from '../problems.ts'
import { requestAttributes } from '../traces/request-traces.ts'
import { chargeUpTo, pay, settle } from './charges.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'
import { emptyBody, type IntakeRequest } from './request-state.ts'

/**
 * Decodes the body of a request, passes it to `use`, and releases what is held for it. A request that is rejected is charged for the work
 * that it caused.
 *
 * @throws Problem, and what `use` throws
 */
export async function withBody<Answer>(
  request: IntakeRequest,
  reply: FastifyReply,
  { overload, bodies, counts, decoder }: IntakeDependencies,
  use: (body: Buffer) => Promise<Answer>,
): Promise<Answer> {
  let body = request.body ?? emptyBody
  try {
    counts.bodyBytes += body.length
    body = decode(request, body) ?? (await decodeLarge(request, body, decoder))
    counts.decodedBytes += body.length
    if (body !== request.body && !bodies.hold(request, body.length)) throw bodies.reject(request)
    return await use(body)
  } catch (error) {
    settle(error, request, reply, body.length)
    throw toProblem(error, overload)
  } finally {
    if (request.span !== null) request.span.set({ [requestAttributes.bytes]: body.length })
    bodies.release(request)
  }
}

/** Decoding takes less time than parsing, per decoded byte, by at least this factor. */
const DECODED_PER_PARSED = 16

/** Decodes a small body at once. @returns undefined for a large one @throws Problem */
function decode({ headers, allowance }: FastifyRequest, body: Buffer): Buffer | undefined {
  const encoding = headers['content-encoding']
  if (encoding === undefined) return body
  // The allowance may be used up since the body was admitted.
  allowance?.rejectEarly(headers)
  return decodeSmall(body, encoding)
}

/** Before it is decoded, a large body costs one entry, and its bytes as they arrived. @throws Problem */
async function decodeLarge(request: FastifyRequest, body: Buffer, decoder: ContentDecoder): Promise<Buffer> {
  await pay(request, { entries: 1, bytes: body.length })
  const decoded = await decoder.decode(body, request.headers['content-encoding'])
  // Even if the decoded body turns out to be above the limit.
  chargeUpTo({ entries: 1, bytes: Math.ceil(decoded.length / DECODED_PER_PARSED) }, request)
  return decoded
}

/** The answer to a request whose entries could not be stored. */
function toProblem(error: unknown, overload: Pick<OverloadMonitor, 'reject'>): unknown {
  if (error instanceof OverloadedError) return overload.reject(error.reason)
  if (error instanceof QueueFullError) return overload.reject('redis_memory')
  if (error instanceof QueueUnavailableError) {
    return new Problem('queue_unavailable', problems.queue_unavailable.detail, {
      headers: { 'retry-after': '1' },
    })
  }
  return error
}
