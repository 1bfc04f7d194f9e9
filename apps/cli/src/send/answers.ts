/** Why the service did not take an entry. */
export interface Rejection {
  /** Of the entry in its batch. */
  readonly index: number
  /** JSON Pointer to what is at fault in the entry; '' for the entry itself. */
  readonly path: string
  readonly message: string
}

/** What became of one attempt to send a batch. */
export type Outcome =
  | { readonly kind: 'taken'; readonly accepted: number; readonly rejections: readonly Rejection[] }
  | { readonly kind: 'retry'; readonly reason: string; readonly retryAfterMs: number | undefined }
  | { readonly kind: 'stop'; readonly reason: string }

/** Statuses that pass: too fast, overloaded, restarting, or a proxy that cannot reach the API just now. */
const passing: Readonly<Record<number, string>> = {
  408: 'the request took too long',
  429: 'the project is over its rate limit',
  500: 'the API failed',
  502: 'the API is away',
  503: 'the API is overloaded',
  504: 'the API is away',
}

/**
 * Judges the answer to a batch.
 *
 * @param body the answer's text: counts of a batch, or a problem document (RFC 9457)
 */
export function judgeAnswer(
  status: number,
  retryAfter: string | null,
  body: string,
  entries: number,
  nowMs: number,
): Outcome {
  if (status === 202) return judgeCounts(parseObject(body), entries)
  const problem = describeProblem(parseObject(body))
  const passes = passing[status]
  if (passes !== undefined) {
    const retryAfterMs = parseRetryAfterMs(retryAfter, nowMs)
    return { kind: 'retry', reason: `${problem ?? passes} (${status})`, retryAfterMs }
  }
  return { kind: 'stop', reason: `${problem ?? 'the answer is not one of the API'} (${status})` }
}

function judgeCounts(body: Fields, entries: number): Outcome {
  const { accepted, rejected, errors = [] } = body
  if (typeof accepted !== 'number' || typeof rejected !== 'number' || accepted + rejected !== entries) {
    return { kind: 'stop', reason: 'the answer does not say what was accepted; is this a Sluice API?' }
  }
  return { kind: 'taken', accepted, rejections: (Array.isArray(errors) ? errors : []).filter(isRejection) }
}

type Fields = Readonly<Record<string, unknown>>

/** What a problem document says to a person: its detail, and the first of the fields at fault. */
function describeProblem({ detail, title, errors }: Fields): string | undefined {
  const text = [detail, title].find((value) => typeof value === 'string')
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined
  const at = isRejection(first) ? `: ${first.path} ${first.message}` : ''
  return text === undefined ? undefined : `${text.replace(/\.$/, '')}${at}`
}

function isRejection(value: unknown): value is Rejection {
  if (typeof value !== 'object' || value === null) return false
  const { path, message } = value as Fields
  return typeof path === 'string' && typeof message === 'string'
}

/** Reads `Retry-After`: seconds, or a date (RFC 9110). */
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
