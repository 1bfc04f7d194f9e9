import type { EntryError } from './entry.ts'
import type { EntryRejection } from './hooks.ts'

/** What a response means for its batch. */
export type Outcome =
  | { readonly kind: 'processed'; readonly accepted: number; readonly rejections: readonly EntryRejection[] }
  | Failure
  /** `too-large`: parts of the request may be accepted. */
  | { readonly kind: 'rejected' | 'too-large'; readonly error: EntryError }

export interface Failure {
  readonly kind: 'failed'
  /** Otherwise something is misconfigured: every request would be rejected. */
  readonly isTransient: boolean
  readonly reason: string
  /** Undefined without a response. */
  readonly status?: number
  /** What `fetch` threw. */
  readonly cause?: unknown
  readonly retryAfterMs?: number | undefined
  /** Whether the API itself says that it is misconfigured, not a proxy or a firewall. */
  readonly isFromApi?: boolean
  /** Whether the API may have accepted the entries. */
  readonly mayBeStored: boolean
}

/** The request itself is at fault, if the API says so: a proxy, for example, responds with 400 to all unencrypted requests. */
const requestStatuses: ReadonlySet<number> = new Set([400, 415, 422, 431])
/** Proxies too have a limit of the body. */
const TOO_LARGE_STATUS = 413
/** Problems of the API that arise before anything is stored. Others may come from a proxy, after the API stored the entries. */
const nothingStoredCodes: ReadonlySet<unknown> = new Set([
  'request_timeout',
  'overloaded',
  'not_ready',
  'shutting_down',
])

/** @param body counts of entries, or a problem document (RFC 9457) */
export function interpretResponse(
  status: number,
  retryAfter: string | null,
  body: string,
  entries: number,
): Outcome {
  const fields = parseObject(body)
  if (status === 202) return interpretCounts(fields, entries)
  const problem = describeProblem(fields)
  if (status === 408 || status === 429 || status >= 500) {
    return {
      kind: 'failed',
      isTransient: true,
      reason: `${problem ?? 'the API does not accept requests at the moment'} (${status})`,
      status,
      retryAfterMs: parseRetryAfterMs(retryAfter),
      // Rate limits apply before a request is handled.
      mayBeStored: status !== 429 && !nothingStoredCodes.has(fields['code']),
    }
  }
  const { code } = fields
  if (status === TOO_LARGE_STATUS || (requestStatuses.has(status) && problem !== undefined)) {
    const message = `${problem ?? 'the request was rejected'} (${status})`
    const error = { path: '', code: typeof code === 'string' ? code : `http_${status}`, message }
    const isTooLarge = status === TOO_LARGE_STATUS || code === 'too_many_entries'
    return { kind: isTooLarge ? 'too-large' : 'rejected', error }
  }
  const isFromApi = problem !== undefined
  const reason = `${isFromApi ? (status === 401 ? REJECTED_KEY : problem) : NOT_SLUICE} (${status})`
  // The sender of a 2xx may have passed the request on.
  return { kind: 'failed', isTransient: false, status, reason, isFromApi, mayBeStored: status < 300 }
}

/** The API does not say which: a hint would help to guess keys. */
const REJECTED_KEY = 'the API key is missing, malformed, unknown, expired or revoked'
const NOT_SLUICE = 'the response is not from a Sluice API'

function interpretCounts(fields: Fields, entries: number): Outcome {
  const { accepted, rejected, errors = [] } = fields
  if (!isCount(accepted) || !isCount(rejected)) {
    const reason = `${NOT_SLUICE}: it has no valid counts of entries (202)`
    return { kind: 'failed', isTransient: false, status: 202, reason, isFromApi: false, mayBeStored: true }
  }
  // An entry that was sent as it is was not exactly one JSON value.
  if (accepted + rejected !== entries) {
    const message = `the API counted ${accepted + rejected} entries instead of ${entries}, and accepted ${accepted} of them (202)`
    return { kind: 'rejected', error: { path: '', code: 'wrong_count', message } }
  }
  const list: readonly unknown[] = Array.isArray(errors) ? errors : []
  return { kind: 'processed', accepted, rejections: list.flatMap(readRejection) }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0
}

type Fields = Readonly<Record<string, unknown>>

function readRejection(value: unknown): EntryRejection[] {
  const { index, path, code, message } = asFields(value)
  if (typeof index !== 'number' || typeof path !== 'string' || typeof message !== 'string') return []
  return [{ index, error: { path, code: typeof code === 'string' ? code : '', message } }]
}

/** The human-readable part of a problem document: its detail, and the first invalid field. */
function describeProblem({ detail, title, errors }: Fields): string | undefined {
  const summary = [detail, title].find((value) => typeof value === 'string')
  const { path, message } = asFields(Array.isArray(errors) ? errors[0] : undefined)
  const field = typeof path === 'string' && typeof message === 'string' ? `: ${path} ${message}` : ''
  return summary === undefined ? undefined : `${summary.replace(/\.$/, '')}${field}`
}

function parseObject(json: string): Fields {
  try {
    return asFields(JSON.parse(json))
  } catch {
    return {}
  }
}

function asFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

/** One number of seconds, or several: a header that was sent twice arrives as a list. */
const RETRY_AFTER = /^\s*(\d{1,9})\s*(,|$)/

function parseRetryAfterMs(header: string | null): number | undefined {
  const [, seconds] = RETRY_AFTER.exec(header ?? '') ?? []
  return seconds === undefined ? undefined : Number(seconds) * 1_000
}
