/** Why the API rejected an entry. */
export interface Rejection {
  /** The position of the entry in its request. */
  readonly index: number
  /** JSON Pointer to the invalid field of the entry; '' for the entry itself. */
  readonly path: string
  readonly message: string
}

/** The outcome of one attempt to send a request. */
export type Outcome =
  | { readonly kind: 'processed'; readonly accepted: number; readonly rejections: readonly Rejection[] }
  | { readonly kind: 'retry'; readonly reason: string; readonly retryAfterMs: number | undefined }
  | { readonly kind: 'stop'; readonly reason: string }

/** Transient statuses: too many requests, overload, a restart, or a proxy that cannot reach the API at the moment. */
const transientStatuses: Readonly<Record<number, string>> = {
  408: 'the request took too long',
  429: 'the project is over its rate limit',
  500: 'the API failed',
  502: 'the API is unavailable',
  503: 'the API is overloaded',
  504: 'the API is unavailable',
}

/** The API does not tell which: a hint would help those who guess keys. */
const REJECTED_KEY = 'the API key is missing, malformed, unknown, expired or revoked'

/** @param body the counts of the request's entries, or a problem document (RFC 9457) */
export function interpretResponse(
  status: number,
  retryAfter: string | null,
  body: string,
  entries: number,
  nowMs: number,
): Outcome {
  if (status === 202) return interpretCounts(parseObject(body), entries)
  const problem = describeProblem(parseObject(body))
  const transient = transientStatuses[status]
  if (transient !== undefined) {
    const retryAfterMs = parseRetryAfterMs(retryAfter, nowMs)
    return { kind: 'retry', reason: `${problem ?? transient} (${status})`, retryAfterMs }
  }
  if (status === 401 && problem !== undefined) {
    return { kind: 'stop', reason: `${REJECTED_KEY} (401); set SLUICE_API_KEY or pass --api-key` }
  }
  return { kind: 'stop', reason: `${problem ?? 'the response is not from a Sluice API'} (${status})` }
}

function interpretCounts(body: Fields, entries: number): Outcome {
  const { accepted, rejected, errors = [] } = body
  if (typeof accepted !== 'number' || typeof rejected !== 'number' || accepted + rejected !== entries) {
    return { kind: 'stop', reason: 'the response has no valid counts of entries; is this a Sluice API?' }
  }
  return {
    kind: 'processed',
    accepted,
    rejections: (Array.isArray(errors) ? errors : []).filter(isRejection),
  }
}

type Fields = Readonly<Record<string, unknown>>

/** The human-readable part of a problem document: its detail, and the first invalid field. */
function describeProblem({ detail, title, errors }: Fields): string | undefined {
  const text = [detail, title].find((value) => typeof value === 'string')
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined
  const field = isRejection(first) ? `: ${first.path} ${first.message}` : ''
  return text === undefined ? undefined : `${text.replace(/\.$/, '')}${field}`
}

function isRejection(value: unknown): value is Rejection {
  if (typeof value !== 'object' || value === null) return false
  const { path, message } = value as Fields
  return typeof path === 'string' && typeof message === 'string'
}

/** Parses `Retry-After`: seconds, or a date (RFC 9110). */
export function parseRetryAfterMs(text: string | null, nowMs: number): number | undefined {
  if (text === null || text === '') return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000
  const dateMs = Date.parse(text)
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs)
}

function parseObject(text: string): Fields {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Fields) : {}
  } catch {
    return {}
  }
}
