import { type EntryErrorCode, limits } from '@sluice/schema'
import { ClockError, type Logger } from '@sluice/runtime'
import type { FastifyError, FastifyReply } from 'fastify'
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
  bad_request: { status: 400, title: 'The request is malformed', detail: 'The request is not valid HTTP.' },
  unauthorized: {
    status: 401,
    title: 'The API key is missing or invalid',
    detail: 'Send the header "Authorization: Bearer <API_KEY>" with a valid key.',
  },
  forbidden: { status: 403, title: 'The API key lacks the required scope' },
  not_found: { status: 404, title: 'The path does not exist', detail: 'Send logs to /v1/logs.' },
  project_not_found: { status: 404, title: "The API key's project is deleted or disabled" },
  method_not_allowed: {
    status: 405,
    title: 'The method is not allowed for this path',
    detail: 'Send logs with POST.',
  },
  request_timeout: {
    status: 408,
    title: 'The request took too long to arrive',
    detail: 'The request did not arrive in time.',
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
  too_many_failed_attempts: {
    status: 429,
    title: 'Too many unknown API keys came from this address',
    detail: 'Too many unknown API keys came from your address. Retry later.',
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    detail: 'Send fewer or shorter headers.',
  },
  internal_error: {
    status: 500,
    title: 'The server failed unexpectedly',
    detail: 'Retry with backoff. If the error persists, report the request id.',
  },
  unsupported_transfer_encoding: {
    status: 501,
    title: 'The transfer encoding is not supported',
    detail:
      'Send a Content-Length or "Transfer-Encoding: chunked". Compress the content with Content-Encoding.',
  },
  overloaded: {
    status: 503,
    title: 'The service is overloaded',
    detail: 'More entries arrive than can be stored at present. Retry later.',
  },
  queue_unavailable: {
    status: 503,
    title: 'The queue is unavailable',
    detail: 'The queue did not answer in time. Retry.',
  },
  not_ready: { status: 503, title: 'The process is not ready' },
  shutting_down: {
    status: 503,
    title: 'The process is shutting down',
    detail: 'Retry; another process will answer.',
  },
} as const satisfies Record<string, { status: number; title: string; detail?: string }>

export type ProblemCode = keyof typeof problems

/** What is wrong with one field. `path` is a JSON Pointer into the entry, `index` the entry's position in its batch. */
export interface FieldError {
  readonly index?: number
  readonly path: string
  readonly code: EntryErrorCode
  readonly message: string
}

interface ProblemExtra {
  readonly errors?: readonly FieldError[]
  readonly headers?: Readonly<Record<string, string>>
  /** Why the scanner has rejected the body: what was read of it is charged. */
  readonly cause?: Error
}

/**
 * An error that is returned as a problem document (RFC 9457). When it is thrown, nothing has been enqueued. The exception is
 * `queue_unavailable`: the entries may have been enqueued.
 */
export class Problem extends Error {
  override name = 'Problem'
  readonly code: ProblemCode
  readonly errors: readonly FieldError[]
  readonly headers: Readonly<Record<string, string>>

  /** @param detail explains to the sender what is wrong with this request, if the usual detail of the code does not */
  constructor(code: ProblemCode, detail?: string, extra: ProblemExtra = {}) {
    const usual: { title: string; detail?: string } = problems[code]
    super(detail ?? usual.detail ?? `${usual.title}.`, { cause: extra.cause })
    this.code = code
    this.errors = extra.errors ?? []
    this.headers = extra.headers ?? {}
  }
}

/** A rejection with `Retry-After`. */
export function retryAfter(code: ProblemCode, seconds: number | string, detail?: string): Problem {
  return new Problem(code, detail, { headers: { 'retry-after': String(seconds) } })
}

/** Seconds. */
export interface RetryRange {
  readonly min: number
  readonly max: number
}

/**
 * A rejection whose `Retry-After` is random, because clients that were rejected at the same time must not all retry at the same time.
 *
 * @param random 0 ≤ random < 1
 */
export function retryLater({ min, max }: RetryRange, random: number, detail?: string): Problem {
  return retryAfter('overloaded', min + Math.floor(random * (max - min + 1)), detail)
}

/** The problem document as JSON. */
export function problemBody({ code, message, errors }: Problem, requestId: string): string {
  const { status, title } = problems[code]
  return JSON.stringify({
    type: `urn:sluice:problem:${code}`,
    title,
    status,
    detail: message,
    code,
    requestId,
    ...(errors.length === 0 ? {} : { errors }),
  })
}

/** Sends a problem document, or what the clients of the route expect instead. */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { request } = reply
  const answer = request.routeOptions.config?.reject?.(problem, request.id, request.headers)
  if (answer !== undefined) return sendAnswer(reply.headers(problem.headers), answer)
  return reply
    .code(problems[problem.code].status)
    .headers(problem.headers)
    .type('application/problem+json')
    .send(problemBody(problem, request.id))
}

/** The problems that errors of a client become, by the code of the error. The detail is there if it is not the usual one. */
const clientErrors: Readonly<Record<string, readonly [code: ProblemCode, detail?: string]>> = {
  FST_ERR_BAD_URL: ['bad_request', 'The path of the URL cannot be decoded.'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found'],
  FST_ERR_REOPENED_CLOSE_SERVER: ['shutting_down'],
  // A client that disconnects during its upload is not a fault of the server, and it will not read the response.
  ECONNRESET: ['bad_request', 'The body is incomplete.'],
  // Of the parser of HTTP.
  HPE_HEADER_OVERFLOW: ['headers_too_large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout'],
}

/** The problem for an error that a handler or Fastify threw. An unknown error is a fault of the server: the problem reveals nothing about it. */
export function toProblem(error: FastifyError, requestId: string, logger: Logger): Problem {
  if (error instanceof Problem) return error
  // Without the time, the rows of a request would have no day of expiry. Redis has not replied since the process started.
  if (error instanceof ClockError) return retryAfter('queue_unavailable', 1)
  const known = clientErrors[error.code]
  if (known !== undefined) return new Problem(...known)
  logger.error({ err: error, requestId }, 'request failed unexpectedly')
  return new Problem('internal_error')
}

/** The problem for a request that Node's HTTP parser or its timeouts rejected before it was complete. */
export function parserProblem({ code = '' }: NodeJS.ErrnoException): Problem {
  // From `limitHeads` in connections/http-server.ts.
  const pipelined =
    'Too many pipelined requests wait for their answers. Send this request over a new connection.'
  if (code === 'HPE_CB_HEADERS_COMPLETE') return retryAfter('overloaded', 1, pipelined)
  return new Problem(...(clientErrors[code] ?? ['bad_request']))
}
