import { limits } from '@sluice/schema'
import type { FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { identify } from '../idempotency/idempotency.ts'
import { decodeSmall } from '../intake/content-encoding.ts'
import { readBody } from '../intake/read-body.ts'
import type { OwnEncoding } from '../protocols/protocol.ts'
import { Problem } from '../problems.ts'
import { requestAttributes } from '../traces/request-traces.ts'
import { type Admission, admissionOf, type IntakeDependencies, type IntakeRequest } from './admission.ts'
import { storeProblem } from './store-pieces.ts'

/** Stands for the body of a request without one. */
const emptyBody = Buffer.alloc(0)
/** Hashing and reading this much takes about 0.3 ms: less than waiting for a later turn of the event loop costs. */
const AT_ONCE_BYTES_MAX = 64 * 1024
/** Decoding takes less time than parsing, per decoded byte, by at least this factor. */
const DECODED_PER_PARSED = 16

/** The content type parser of routes that take entries: the body arrives as bytes, which are held until the response. */
export function readBytes(
  request: FastifyRequest,
  payload: IncomingMessage,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const { headers } = request
  const admission = admissionOf(request)
  readBody(headers, payload, admission.held, (error, body) => {
    // A body of unknown length was read up to the limit.
    if (isTooLarge(error) && headers['content-length'] === undefined) admission.chargeDone(tooLargeCost)
    done(error, body)
  })
}

/**
 * Decodes and charges the body of a request, identifies the request, and releases what is held for it when `use` has settled.
 *
 * @throws Problem, and what `use` throws
 */
export async function withBody<Answer>(
  request: IntakeRequest,
  dependencies: IntakeDependencies,
  use: (body: Buffer, admission: Admission) => Promise<Answer>,
  own?: OwnEncoding,
): Promise<Answer> {
  const admission = admissionOf(request)
  const { counts, overload, turns } = dependencies
  const received = request.body ?? emptyBody
  counts.bodyBytes += received.length
  try {
    const body = await decode(received, request, admission, dependencies, own)
    counts.decodedBytes += body.length
    if (admission.span !== null) admission.span.set({ [requestAttributes.bytes]: body.length })
    const charged = admission.chargeBytes(body.length)
    if (charged !== undefined) await charged
    // Dozens of large bodies may arrive in the same moment.
    const pause = body.length > AT_ONCE_BYTES_MAX ? turns.begin(admission.project.id) : undefined
    if (pause !== undefined) await pause
    admission.identity = identify(request, body)
    const answer = await use(body, admission)
    admission.showLimits()
    return answer
  } catch (error) {
    throw storeProblem(error, overload)
  } finally {
    admission.held.release()
  }
}

/** Decodes a body. If that fails, what was done of it is charged. @throws Problem */
async function decode(
  received: Buffer,
  { headers }: IntakeRequest,
  admission: Admission,
  { decoder, turns }: IntakeDependencies,
  own: OwnEncoding | undefined,
): Promise<Buffer> {
  const encoding = headers['content-encoding']
  const isOwn = own?.isUsed(headers) === true
  let body = received
  if (encoding === undefined && !isOwn) return body
  const { held, project } = admission
  try {
    if (encoding !== undefined && encoding !== own?.name) {
      // Dozens of compressed bodies may arrive in one turn.
      const pause = turns.begin(project.id)
      if (pause !== undefined) await pause
      // The allowance may be used up since the body was admitted.
      admission.allowance?.rejectEarly(headers)
      const small = decodeSmall(body, encoding)
      if (small === undefined) {
        // Before it is decoded, a large body costs one entry, and its bytes as they arrived.
        await admission.chargeBytes(body.length)
        body = await decoder.decode(body, encoding, project.id)
        admission.chargeDone({ entries: 1, bytes: Math.ceil(body.length / DECODED_PER_PARSED) })
      } else body = small
      if (body !== received) held.hold(body.length)
    }
    if (own !== undefined && isOwn) {
      admission.allowance?.rejectEarly(headers)
      const pause = turns.begin(project.id)
      if (pause !== undefined) await pause
      body = own.decode(body, (bytes) => held.hold(bytes))
    }
    return body
  } catch (error) {
    if (isTooLarge(error)) admission.chargeDone(tooLargeCost)
    else if (error instanceof Problem && error.code === 'invalid_encoding')
      admission.chargeDone({ entries: 1, bytes: body.length })
    throw error
  }
}

/** Of a body that was read or decoded up to the limit. */
const tooLargeCost = { entries: 1, bytes: limits.bodyBytesMax }

function isTooLarge(error: unknown): boolean {
  return error instanceof Problem && error.code === 'body_too_large'
}
