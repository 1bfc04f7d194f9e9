import { clientErrors, commonProblems, HttpProblem, problemBody, type ProblemExtra } from '@sluice/access'
import { type EntryError, limits } from '@sluice/schema'
import type { FastifyReply } from 'fastify'
import type { IncomingHttpHeaders } from 'node:http'
import { type Answer, sendAnswer } from './answer.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Makes the response to a rejected request. Undefined for a problem document. */
    reject?: (problem: Problem, requestId: string, headers: IncomingHttpHeaders) => Answer | undefined
  }
}

/**
 * Every error that the API returns: its stable code, its status and its title. Clients rely on the codes. A code whose
 * detail is usually the same has it here, because the OpenAPI document shows it as well.
 */
export const problems = {
  invalid_json: { status: 400, title: 'The body is not valid JSON' },
  invalid_utf8: { status: 400, title: 'The body is not valid UTF-8', detail: 'The body must be UTF-8.' },
  invalid_protobuf: { status: 400, title: 'The body is not valid Protocol Buffers' },
  invalid_encoding: { status: 400, title: 'The body does not match its Content-Encoding' },
  empty_body: { status: 400, title: 'The body is empty', detail: 'Send an entry or a batch as JSON.' },
  invalid_body: {
    status: 400,
    title: 'The body is neither an entry nor a batch',
    detail: '"logs" must be an array of entries.',
  },
  invalid_entry: { status: 400, title: 'The entry is invalid' },
  too_many_entries: { status: 400, title: 'The request has too many entries' },
  invalid_idempotency_key: {
    status: 400,
    title: 'The idempotency key is malformed',
    detail: 'An Idempotency-Key is 1 to 255 visible ASCII characters, sent once.',
  },
  method_not_allowed: {
    status: 405,
    title: 'The method is not allowed for this path',
    detail: 'Send logs with POST.',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    detail: `A body may have at most ${limits.bodyBytesMax} bytes. Send fewer entries per request.`,
  },
  unsupported_media_type: {
    status: 415,
    title: 'The media type is not supported',
    detail: 'Send application/json, application/x-ndjson, or OTLP as application/x-protobuf.',
  },
  unsupported_encoding: {
    status: 415,
    title: 'The content encoding is not supported',
    detail: 'Use gzip, deflate, br or zstd, or no encoding.',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'The idempotency key was used with another body',
    detail: 'An earlier request had this key and another body. Use a new key for each body.',
  },
  rate_limited: { status: 429, title: 'The project exceeds its rate limit' },
  too_many_idempotency_keys: {
    status: 429,
    title: 'The project uses too many idempotency keys',
    detail:
      'The service remembers no further Idempotency-Key of the project at present. Retry later, or send more entries per request.',
  },
  unsupported_transfer_encoding: {
    status: 501,
    title: 'The transfer encoding is not supported',
    detail:
      'Send a Content-Length or "Transfer-Encoding: chunked". Compress the content with Content-Encoding.',
  },
  ...commonProblems,
  not_found: { ...commonProblems.not_found, detail: 'Send logs to /v1/logs.' },
} as const satisfies Record<string, { status: number; title: string; detail?: string }>

export type ProblemCode = keyof typeof problems

/** An error in an entry. `index` is the entry's position in its batch. */
export type FieldError = EntryError & { readonly index?: number }

/**
 * A problem of this API. When it is thrown, nothing has been enqueued. The exception is `queue_unavailable`: the entries may have been
 * enqueued. Its cause is why the scanner has rejected the body: what was read of it is charged.
 */
export class Problem extends HttpProblem<ProblemCode> {
  constructor(code: ProblemCode, detail?: string, extra?: ProblemExtra) {
    super(problems, code, detail, extra)
  }
}

export function retryAfter(code: ProblemCode, seconds: number | string, detail?: string): Problem {
  return new Problem(code, detail, { headers: { 'retry-after': String(seconds) } })
}

/** A rejection whose `Retry-After` is random: clients that were rejected at the same time must not all retry at the same time. */
export function retryLater(range: { min: number; max: number }, random: number, detail?: string): Problem {
  const seconds = range.min + Math.floor(random * (range.max - range.min + 1))
  return retryAfter('overloaded', seconds, detail)
}

/** Sends a problem document, or what the clients of the route expect instead. */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { request } = reply
  const answer = request.routeOptions.config?.reject?.(problem, request.id, request.headers)
  if (answer !== undefined) return sendAnswer(reply.headers(problem.headers), answer)
  return reply
    .code(problem.status)
    .headers(problem.headers)
    .type('application/problem+json')
    .send(problemBody(problem, request.id))
}

/** The problem for a request that Node's HTTP parser or its timeouts rejected before it was complete. */
export function parserProblem({ code = '' }: NodeJS.ErrnoException): Problem {
  // From `limitHeads` in connections/http-server.ts.
  const pipelined =
    'Too many pipelined requests wait for their answers. Send this request over a new connection.'
  if (code === 'HPE_CB_HEADERS_COMPLETE') return retryAfter('overloaded', 1, pipelined)
  return new Problem(...(clientErrors[code] ?? ['bad_request']))
}
