import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ContentDecoder, decodeSmall } from '../intake/content-encoding.ts'
import type { OwnEncoding } from '../protocols/protocol.ts'
import { requestAttributes } from '../traces/request-traces.ts'
import type { Turns } from '../turns.ts'
import { chargeUpTo, pay, settle } from './charges.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'
import { emptyBody, type IntakeRequest } from './request-state.ts'
import { storeProblem } from './store-problem.ts'

/**
 * Decodes the body of a request, passes it to `use`, and releases what is held for it. A request that is rejected is charged for the work
 * that it caused.
 *
 * @throws Problem, and what `use` throws
 */
export async function withBody<Answer>(
  request: IntakeRequest,
  reply: FastifyReply,
  { overload, bodies, counts, decoder, turns }: IntakeDependencies,
  use: (body: Buffer) => Promise<Answer>,
  own?: OwnEncoding,
): Promise<Answer> {
  const projectId = request.project?.id ?? ''
  let body = request.body ?? emptyBody
  try {
    counts.bodyBytes += body.length
    const encoding = request.headers['content-encoding']
    if (encoding !== undefined && encoding !== own?.name) {
      // Dozens of compressed bodies may arrive in one turn.
      const pause = turns.begin(projectId).pause()
      if (pause !== undefined) await pause
      body = decode(request, body) ?? (await decodeLarge(request, body, decoder))
    }
    if (body !== request.body && !bodies.hold(request, body.length)) throw bodies.reject(request)
    if (own?.isUsed(request.headers) === true) {
      // The allowance may be used up since the body was admitted.
      request.allowance?.rejectEarly(request.headers)
      if (!bodies.hold(request, own.decodedBytes(body))) throw bodies.reject(request)
      body = await inSlices(own.decode(body), turns, projectId)
    }
    counts.decodedBytes += body.length
    return await use(body)
  } catch (error) {
    settle(error, request, reply, body.length)
    throw storeProblem(error, overload)
  } finally {
    if (request.span !== null) request.span.set({ [requestAttributes.bytes]: body.length })
    bodies.release(request)
  }
}

async function inSlices(
  steps: Generator<undefined, Buffer>,
  turns: Turns,
  projectId: string,
): Promise<Buffer> {
  const pace = turns.begin(projectId)
  for (;;) {
    const pause = pace.pause()
    if (pause !== undefined) await pause
    const step = steps.next()
    if (step.done === true) return step.value
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
  const decoded = await decoder.decode(body, request.headers['content-encoding'], request.project?.id ?? '')
  // Even if the decoded body turns out to be above the limit.
  chargeUpTo({ entries: 1, bytes: Math.ceil(decoded.length / DECODED_PER_PARSED) }, request)
  return decoded
}
