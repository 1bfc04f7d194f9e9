import { commonProblems, HttpProblem, type ProblemExtra, type ProblemKind, toProblem } from '@sluice/access'
import { ClickHouseError, ReadLimitError, ReadUnavailableError } from '@sluice/clickhouse'
import type { Logger } from '@sluice/runtime'

/** Every error that the query API returns, by its stable code. */
export const problems = {
  ...commonProblems,
  not_found: { ...commonProblems.not_found, detail: 'The API is under /v1/query.' },
  invalid_query: { status: 400, title: 'The query cannot be parsed' },
  invalid_parameter: { status: 400, title: 'A parameter is invalid' },
  invalid_body: { status: 400, title: 'The body is invalid', detail: 'Send {"key":"slk_…"} as JSON.' },
  cross_origin: {
    status: 403,
    title: 'The request comes from another site',
    detail: 'A page of another origin may not change anything.',
  },
  entry_not_found: {
    status: 404,
    title: 'The entry does not exist',
    detail: 'The project has no such entry.',
  },
  retry_running: {
    status: 409,
    title: 'Other dead letters are being retried',
    detail: 'One retry runs at a time. Wait for its end.',
  },
  query_too_expensive: { status: 422, title: 'The query is too expensive' },
  too_many_queries: { status: 429, title: 'Too many queries run at once', detail: 'Retry in a moment.' },
  database_unavailable: {
    status: 503,
    title: 'The database is unavailable',
    detail: 'ClickHouse does not answer. Retry.',
  },
  database_forbidden: {
    status: 503,
    title: 'The process may not read this in the database',
    detail: 'The user of the query process in ClickHouse lacks a grant: see docs/reading.md.',
  },
  not_visible_yet: {
    status: 504,
    title: 'The entry cannot be seen yet',
    detail: 'The entry, or one that was accepted before it, is not stored yet. Retry.',
  },
} as const satisfies Record<string, ProblemKind>

export type ProblemCode = keyof typeof problems

export class Problem extends HttpProblem<ProblemCode> {
  constructor(code: ProblemCode, detail?: string, extra?: ProblemExtra) {
    super(problems, code, detail, extra)
  }
}

export const retryAfter = (code: ProblemCode): Problem =>
  new Problem(code, undefined, { headers: { 'retry-after': '1' } })

const invalidBody = /^FST_ERR_CTP_/
/** TOO_MANY_SIMULTANEOUS_QUERIES, and of a user. */
const TOO_MANY_QUERIES = new Set(['202', '792'])

/** ACCESS_DENIED. */
const FORBIDDEN = '497'

/** The problem of an error that a handler or Fastify threw. */
export function queryProblem(
  error: Error & { readonly code?: string },
  requestId: string,
  logger: Logger,
): HttpProblem<ProblemCode> {
  if (error instanceof ReadLimitError)
    return new Problem('query_too_expensive', `The query exceeds its limit of ${error.limit}.`)
  // A query that was given up has the error of its signal.
  if (error instanceof ReadUnavailableError || error.name === 'TimeoutError') {
    logger.warn({ err: error, requestId }, 'ClickHouse does not answer')
    return retryAfter('database_unavailable')
  }
  if (error instanceof ClickHouseError && TOO_MANY_QUERIES.has(error.code))
    return retryAfter('too_many_queries')
  if (error instanceof ClickHouseError && error.code === FORBIDDEN) return new Problem('database_forbidden')
  if (invalidBody.test(error.code ?? '')) return new Problem('invalid_body')
  return toProblem<ProblemCode>(problems, error, requestId, logger)
}
