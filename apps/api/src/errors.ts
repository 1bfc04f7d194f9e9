import { ClockError } from '@sluice/runtime'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, problems, sendProblem, type ProblemCode } from './problems.ts'

interface ClientError {
  readonly code: ProblemCode
  readonly detail: string
}

/** Fastify's errors that a client can cause, and the problems that they become. */
const problemsByFastifyCode: Readonly<Record<string, ClientError>> = {
  FST_ERR_BAD_URL: { code: 'bad_request', detail: 'The path of the URL cannot be decoded.' },
  FST_ERR_CTP_EMPTY_TYPE: { code: 'unsupported_media_type', detail: 'The Content-Type header is missing.' },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'unsupported_media_type',
    detail: problems.unsupported_media_type.detail,
  },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'not_found', detail: problems.not_found.detail },
  FST_ERR_REOPENED_CLOSE_SERVER: { code: 'shutting_down', detail: problems.shutting_down.detail },
}

/**
 * Answers an error that a handler or Fastify threw. An unknown error is a fault of the server; the answer reveals nothing
 * about it.
 */
export function handleError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof Problem) return sendProblem(reply, error)
  // Without the time, the rows of a request would have no day of expiry. Redis has not answered since the process started.
  if (error instanceof ClockError) {
    return sendProblem(
      reply,
      new Problem('queue_unavailable', problems.queue_unavailable.detail, {
        headers: { 'retry-after': '1' },
      }),
    )
  }
  const known = problemsByFastifyCode[error.code]
  if (known !== undefined) return sendProblem(reply, new Problem(known.code, known.detail))
  // A client that disconnects during its upload is not a fault of the server, and it will not read the answer.
  if (error.code === 'ECONNRESET') {
    return sendProblem(reply, new Problem('bad_request', 'The body is incomplete.'))
  }
  request.log.error({ err: error, requestId: request.id }, 'request failed unexpectedly')
  return sendProblem(reply, new Problem('internal_error', problems.internal_error.detail))
}

const problemsByParserCode: Readonly<Record<string, ClientError>> = {
  // From `limitHeads` in connections/http-server.ts.
  HPE_CB_HEADERS_COMPLETE: {
    code: 'overloaded',
    detail: 'Too many pipelined requests wait for their answers. Send this request over a new connection.',
  },
  HPE_HEADER_OVERFLOW: { code: 'headers_too_large', detail: problems.headers_too_large.detail },
  ERR_HTTP_REQUEST_TIMEOUT: { code: 'request_timeout', detail: problems.request_timeout.detail },
}

/** The problem for a request that Node's HTTP parser or its timeouts rejected before it was complete. */
export function parserProblem(error: NodeJS.ErrnoException): Problem {
  const { code, detail } = problemsByParserCode[error.code ?? ''] ?? {
    code: 'bad_request',
    detail: problems.bad_request.detail,
  }
  return new Problem(code, detail, code === 'overloaded' ? { headers: { 'retry-after': '1' } } : {})
}
