import type { EntryErrorCode } from '@sluice/schema'
import type { FastifyReply } from 'fastify'

/** Every error that the API answers with: its stable code, its status and its title. Clients rely on the codes. */
export const problems = {
  invalid_json: { status: 400, title: 'The body is not JSON' },
  invalid_utf8: { status: 400, title: 'The body is not UTF-8' },
  invalid_encoding: { status: 400, title: 'The body is not what its Content-Encoding says' },
  empty_body: { status: 400, title: 'The body is empty' },
  invalid_body: { status: 400, title: 'The body is neither an entry nor a batch' },
  invalid_entry: { status: 400, title: 'The entry is invalid' },
  too_many_entries: { status: 400, title: 'The batch has too many entries' },
  invalid_idempotency_key: { status: 400, title: 'The idempotency key is malformed' },
  bad_request: { status: 400, title: 'The request is malformed' },
  unauthorized: { status: 401, title: 'The API key is missing or invalid' },
  forbidden: { status: 403, title: 'The API key lacks the scope for this' },
  not_found: { status: 404, title: 'There is nothing at this address' },
  project_not_found: { status: 404, title: "The API key's project is gone or disabled" },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  request_timeout: { status: 408, title: 'The request took too long to arrive' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The media type is not supported' },
  unsupported_encoding: { status: 415, title: 'The content encoding is not supported' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key belongs to another body' },
  rate_limited: { status: 429, title: 'The project sends more than it may' },
  too_many_failed_attempts: { status: 429, title: 'Too many unknown API keys came from this address' },
  headers_too_large: { status: 431, title: 'The headers are too large' },
  internal_error: { status: 500, title: 'Something went wrong on our side' },
  overloaded: { status: 503, title: 'The service is overloaded' },
  queue_unavailable: { status: 503, title: 'The queue cannot be reached' },
  not_ready: { status: 503, title: 'The process cannot do its work now' },
  shutting_down: { status: 503, title: 'This process is shutting down' },
} as const satisfies Record<string, { status: number; title: string }>

export type ProblemCode = keyof typeof problems

/** What is wrong with one field. `path` is a JSON Pointer into the entry, `index` the entry's place in its batch. */
export interface FieldError {
  readonly index?: number
  readonly path: string
  readonly code: EntryErrorCode
  readonly message: string
}

/** An error that is answered as a problem document (RFC 9457). Nothing has been enqueued when one is thrown. */
export class Problem extends Error {
  override name = 'Problem'
  readonly code: ProblemCode
  readonly errors: readonly FieldError[]
  readonly headers: Readonly<Record<string, string>>

  /** @param detail says what is wrong with this request, for the person who sent it */
  constructor(
    code: ProblemCode,
    detail: string,
    extra: { errors?: readonly FieldError[]; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail)
    this.code = code
    this.errors = extra.errors ?? []
    this.headers = extra.headers ?? {}
  }
}

/** The problem document's JSON text. */
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

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply
    .code(problems[problem.code].status)
    .headers(problem.headers)
    .type('application/problem+json')
    .send(problemBody(problem, reply.request.id))
}
