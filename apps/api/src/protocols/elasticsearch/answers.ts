import type { Answer } from '../../answer.ts'
import { type Problem, type ProblemCode, problems } from '../../problems.ts'

/** The official clients reject answers without this header. */
const headers = { 'x-elastic-product': 'Elasticsearch' }

/** @param body JSON */
export function elasticAnswer(status: number, body: Answer['body']): Answer {
  return { status, type: 'application/json; charset=utf-8', body, headers }
}

export const errorOf = (type: string, reason: string): object => ({ type, reason })

/** The types of errors that clients know. */
const types: Partial<Readonly<Record<ProblemCode, string>>> = {
  unauthorized: 'security_exception',
  forbidden: 'security_exception',
  project_not_found: 'security_exception',
  body_too_large: 'content_too_long_exception',
  too_many_entries: 'content_too_long_exception',
  internal_error: 'internal_server_error',
}

/**
 * All shippers retry after 429. Some of them do not after 503, or retry it at once. After 413, Filebeat divides its batch.
 */
function statusOf(code: ProblemCode): number {
  if (code === 'too_many_entries') return 413
  const { status } = problems[code]
  return status === 503 ? 429 : status
}

export function rejectBulk({ code, message }: Problem): Answer {
  const status = statusOf(code)
  const type =
    types[code] ?? (status === 429 ? 'es_rejected_execution_exception' : 'illegal_argument_exception')
  const error = errorOf(type, message)
  return elasticAnswer(status, JSON.stringify({ error: { root_cause: [error], ...error }, status }))
}
