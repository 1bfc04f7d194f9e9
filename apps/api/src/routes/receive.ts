import { limits } from '@sluice/schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { type Answer, sendAnswer } from '../answer.ts'
import { hasBody } from '../connections/connection-guard.ts'
import { identify } from '../idempotency/idempotency.ts'
import { type Decoder, decoderFor, decodeSmall } from '../intake/content-encoding.ts'
import { checkLength, readBody } from '../intake/read-body.ts'
import type { OwnEncoding } from '../protocols/protocol.ts'
import { Problem } from '../problems.ts'
import { requestAttributes } from '../traces/request-traces.ts'
import { Admission, type IntakeDependencies } from './admission.ts'
import { storeProblem } from './take-records.ts'

/** Hashing and reading this much takes about 0.3 ms: less than waiting for a later turn of the event loop costs. */
const AT_ONCE_BYTES_MAX = 64 * 1024
/** Decoding takes less time than parsing, per decoded byte, by at least this factor. */
const DECODED_PER_PARSED = 16

/** What a route takes, and how it is authenticated. */
interface Taken {
  /** The Authorization header, or what stands for it in the protocol of the request. */
  readonly authorization: string | undefined
  /** Undefined if any are taken, or none is named. */
  readonly mediaTypes?: readonly string[]
  readonly encoding?: OwnEncoding | undefined
}

/**
 * Receives a request with entries: rejects it before its body is read if anything is wrong with its head, and reads, decodes and charges its
 * body. What is held for it is released when `use` has settled.
 *
 * @throws Problem, and what `use` throws
 */
export async function receive(
  request: FastifyRequest,
  reply: FastifyReply,
  { authorization, mediaTypes, encoding: ownEncoding }: Taken,
  dependencies: IntakeDependencies,
  use: (body: Buffer, admission: Admission) => string | Answer | Promise<string | Answer>,
): Promise<string | FastifyReply> {
  const { authenticator, overload, traces, turns } = dependencies
  const { headers } = request
  const startedMs = performance.now()
  let answer: string | Answer | undefined
  try {
    // When this resolves, a small body has arrived with its head.
    await authenticator.authenticate(authorization, request, (project) => {
      request.admission = new Admission(reply, startedMs, project, dependencies)
    })
    const { admission } = request
    if (admission === null) throw new Error('the request is not authenticated')
    if (traces !== undefined) admission.span = traces(request, startedMs, admission.project.id)
    admission.allowance?.rejectEarly(headers)
    overload.check()
    const { 'content-encoding': encoding } = headers
    const decoder = encoding === ownEncoding?.name ? undefined : decoderFor(encoding)
    checkMediaType(request, mediaTypes)
    checkLength(headers, admission.held)
    // Last: the client need not send a body that is rejected.
    if (headers.expect !== undefined) reply.raw.writeContinue()

    const body = await receiveBody(request.raw, admission, decoder, ownEncoding)
    if (admission.span !== null) admission.span.set({ [requestAttributes.bytes]: body.length })
    const charged = admission.chargeBytes(body.length)
    if (charged !== undefined) await charged
    // Dozens of large bodies may arrive in the same moment.
    const pause = body.length > AT_ONCE_BYTES_MAX ? turns.begin(admission.project.id) : undefined
    if (pause !== undefined) await pause
    admission.identity = identify(request, body)
    answer = await use(body, admission)
  } catch (error) {
    throw storeProblem(error, overload)
  } finally {
    request.admission?.end(answer)
  }
  return typeof answer === 'string' ? answer : sendAnswer(reply, answer)
}

function checkMediaType(
  { headers, mediaType }: FastifyRequest,
  accepted: readonly string[] | undefined,
): void {
  const { 'content-type': type } = headers
  // The body is empty then.
  if (type === undefined && (accepted === undefined || !hasBody(headers))) return
  if (mediaType === undefined || accepted?.includes(mediaType) === false)
    throw new Problem('unsupported_media_type')
  // Almost always, nothing follows it.
  if (type === mediaType) return
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(type ?? '')?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return
  throw new Problem('unsupported_media_type', 'JSON is UTF-8; omit the charset.')
}

/** Reads and decodes a body. If that fails, what was done of it is charged. @throws Problem, the error of the connection */
async function receiveBody(
  request: IncomingMessage,
  admission: Admission,
  decoder: Decoder | undefined,
  own: OwnEncoding | undefined,
): Promise<Buffer> {
  const { headers } = request
  const { held, project } = admission
  const { counts, decoder: threads, turns } = admission.dependencies
  let body: Buffer | undefined
  try {
    const received = await readBody(request, held)
    body = received
    admission.isReceived = true
    counts.bodyBytes += received.length
    if (decoder !== undefined) {
      // Dozens of compressed bodies may arrive in one turn.
      const pause = turns.begin(project.id)
      if (pause !== undefined) await pause
      // The allowance may be used up since the body was admitted.
      admission.allowance?.rejectEarly(headers)
      const small = decodeSmall(received, decoder)
      if (small === undefined) {
        // Before it is decoded, a large body costs one entry, and its bytes as they arrived.
        await admission.chargeBytes(received.length)
        body = await threads.decode(received, decoder, project.id)
        admission.chargeDone({ entries: 1, bytes: Math.ceil(body.length / DECODED_PER_PARSED) })
      } else body = small
      if (body !== received) held.hold(body.length)
    }
    if (own?.isUsed(headers) === true) {
      admission.allowance?.rejectEarly(headers)
      const pause = turns.begin(project.id)
      if (pause !== undefined) await pause
      body = own.decode(body, (bytes) => held.hold(bytes))
    }
    counts.decodedBytes += body.length
    return body
  } catch (error) {
    const { code } = error instanceof Problem ? error : { code: undefined }
    // It was read or decoded up to the limit.
    if (code === 'body_too_large') admission.chargeDone({ entries: 1, bytes: limits.bodyBytesMax })
    if (code === 'invalid_encoding') admission.chargeDone({ entries: 1, bytes: body?.length ?? 0 })
    throw error
  }
}
