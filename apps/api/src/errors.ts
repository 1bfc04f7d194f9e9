import { limits } from '@sluice/schema'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Problem, problemBody, problems, sendProblem, type ProblemCode } from './problems.ts'

/** Fastify's own errors that a client can cause, and what they are to the client. */
const problemsByFastifyCode: Readonly<Record<string, { code: ProblemCode; detail: string }>> = {
  FST_ERR_BAD_URL: { code: 'bad_request', detail: 'The path of the URL cannot be decoded.' },
  FST_ERR_CTP_BODY_TOO_LARGE: {
    code: 'body_too_large',
    detail: `A body may have at most ${limits.bodyBytesMax} bytes. Send fewer entries a request.`,
  },
  FST_ERR_CTP_EMPTY_TYPE: { code: 'unsupported_media_type', detail: 'The Content-Type header is missing.' },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'unsupported_media_type',
    detail: 'Send application/json.',
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'bad_request',
    detail: 'The body has another length than the Content-Length header says.',
  },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'not_found', detail: 'There is nothing at this address.' },
  FST_ERR_REOPENED_CLOSE_SERVER: { code: 'shutting_down', detail: 'Try again; another process will answer.' },
}

/** Answers whatever a handler or Fastify threw. What is not known here is ours, and tells the client nothing. */
export function handleError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof Problem) return sendProblem(reply, error)
  const known = problemsByFastifyCode[error.code]
  if (known !== undefined) return sendProblem(reply, new Problem(known.code, known.detail))
  // A client that goes away while it uploads is no error of ours, and nobody is there to read the answer.
  if (error.code === 'ECONNRESET') {
    return sendProblem(reply, new Problem('bad_request', 'The body did not arrive whole.'))
  }
  request.log.error({ err: error, requestId: request.id }, 'request failed unexpectedly')
  return sendProblem(
    reply,
    new Problem('internal_error', 'Try again with backoff. If it goes on, report the request id.'),
  )
}

const problemsByParserCode: Readonly<Record<string, { code: ProblemCode; detail: string }>> = {
  HPE_HEADER_OVERFLOW: { code: 'headers_too_large', detail: 'Send fewer or shorter headers.' },
  ERR_HTTP_REQUEST_TIMEOUT: { code: 'request_timeout', detail: 'The request did not arrive in time.' },
}

/** Answers what Node's HTTP parser refused, before there is a request: written to the socket as it is. */
export function handleClientError(error: NodeJS.ErrnoException, socket: Socket, requestId: string): void {
  // An answer now would be taken for that of an earlier request, which may be accepted: no answer tells the truth.
  if (error.code === 'ECONNRESET' || !socket.writable || hasRequestUnderWay(socket)) {
    socket.destroy()
    return
  }
  const { code, detail } = problemsByParserCode[error.code ?? ''] ?? {
    code: 'bad_request',
    detail: 'The request is not valid HTTP.',
  }
  const body = problemBody(new Problem(code, detail), requestId)
  const { status, title } = problems[code]
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\ncontent-type: application/problem+json\r\nx-request-id: ${requestId}\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

/**
 * Whether a request that arrived whole waits for its answer on this connection. Node's own handler looks at the same
 * field, which holds the response that is next.
 */
function hasRequestUnderWay(socket: Socket): boolean {
  const response: unknown = Reflect.get(socket, '_httpMessage')
  return response instanceof ServerResponse && response.req.complete
}
