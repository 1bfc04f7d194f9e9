import { ClockError, type Logger } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'

/** An error that an API returns. The detail is there if it is usually the same. */
export interface ProblemKind {
  readonly status: number
  readonly title: string
  readonly detail?: string
}

export const commonProblems = {
  bad_request: { status: 400, title: 'The request is malformed', detail: 'The request is not valid HTTP.' },
  unauthorized: {
    status: 401,
    title: 'The API key is missing or invalid',
    detail: 'Send the header "Authorization: Bearer <API_KEY>" with a valid key.',
  },
  forbidden: { status: 403, title: 'The API key lacks the required scope' },
  not_found: { status: 404, title: 'The path does not exist' },
  project_not_found: { status: 404, title: "The API key's project is deleted or disabled" },
  request_timeout: {
    status: 408,
    title: 'The request took too long to arrive',
    detail: 'The request did not arrive in time.',
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
} as const satisfies Record<string, ProblemKind>

export type CommonProblemCode = keyof typeof commonProblems

export interface ProblemExtra {
  readonly errors?: readonly object[]
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: Error
}

/** An error that is returned as a problem document (RFC 9457). */
export class HttpProblem<Code extends string = string> extends Error {
  override name = 'Problem'
  readonly code: Code
  readonly status: number
  readonly title: string
  readonly errors: readonly object[]
  readonly headers: Readonly<Record<string, string>>

  /** @param detail explains to the sender what is wrong with this request, if the usual detail of the code does not */
  constructor(
    kinds: Readonly<Record<Code, ProblemKind>>,
    code: Code,
    detail?: string,
    extra: ProblemExtra = {},
  ) {
    const usual = kinds[code]
    super(detail ?? usual.detail ?? `${usual.title}.`, { cause: extra.cause })
    this.code = code
    this.status = usual.status
    this.title = usual.title
    this.errors = extra.errors ?? []
    this.headers = extra.headers ?? {}
  }
}

export function problemBody(
  { code, message, title, status, errors }: HttpProblem,
  requestId: string,
): string {
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

/** A whole response, for what Node's parser of HTTP rejected. The connection ends with it. */
export function rawResponse(problem: HttpProblem): string {
  const requestId = randomUUID()
  const body = problemBody(problem, requestId)
  const headers = {
    'content-type': 'application/problem+json',
    'x-request-id': requestId,
    ...problem.headers,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${problem.status} ${problem.title}\r\n${lines.join('')}\r\n${body}`
}

/** The problems that errors of a client become, by the code of the error. The detail is there if it is not the usual one. */
export const clientErrors: Readonly<Record<string, readonly [code: CommonProblemCode, detail?: string]>> = {
  FST_ERR_BAD_URL: ['bad_request', 'The path of the URL cannot be decoded.'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found'],
  FST_ERR_REOPENED_CLOSE_SERVER: ['shutting_down'],
  // A client that disconnects during its upload is not a fault of the server, and it will not read the response.
  ECONNRESET: ['bad_request', 'The body is incomplete.'],
  // Of the parser of HTTP.
  HPE_INVALID_URL: ['bad_request', 'The URL has a character that must be percent-encoded.'],
  HPE_HEADER_OVERFLOW: ['headers_too_large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout'],
}

/** The problem for an error that a handler or Fastify threw. An unknown error is a fault of the server: the problem reveals nothing about it. */
export function toProblem<Code extends string>(
  kinds: Readonly<Record<Code | CommonProblemCode, ProblemKind>>,
  error: Error & { readonly code?: string },
  requestId: string,
  logger: Logger,
): HttpProblem<Code | CommonProblemCode> {
  if (error instanceof HttpProblem) return error
  // Redis has not replied since the process started. Without the time, the rows of a request would have no day of expiry.
  if (error instanceof ClockError)
    return new HttpProblem(kinds, 'queue_unavailable', undefined, { headers: { 'retry-after': '1' } })
  const known = clientErrors[error.code ?? '']
  if (known !== undefined) return new HttpProblem(kinds, ...known)
  logger.error({ err: error, requestId }, 'request failed unexpectedly')
  return new HttpProblem(kinds, 'internal_error')
}
