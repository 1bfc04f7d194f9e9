/** Codes of errors that happen before a connection is established: the API cannot have received the request. */
const neverSentCodes: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  // Bun
  'ConnectionRefused',
  // The certificate of the server is verified before the first byte of the request.
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REVOKED',
  'CERT_UNTRUSTED',
  'CERT_REJECTED',
  'CERT_SIGNATURE_FAILURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'HOSTNAME_MISMATCH',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

/** Deno has no codes: "error sending request for url (…): client error (Connect): …". */
const NEVER_SENT_IN_DENO = 'client error (Connect)'

/** Errors that wrap each other have fewer levels. A chain of causes may be a circle. */
const LEVELS_MAX = 8

/** Whether what `fetch` threw shows that the request was not sent. Never throws. */
export function wasNeverSent(error: unknown): boolean {
  try {
    return isNeverSent(error, 1)
  } catch {
    // An error of the application's own `fetch` that cannot be read.
    return false
  }
}

function isNeverSent(error: unknown, level: number): boolean {
  if (typeof error !== 'object' || error === null || level > LEVELS_MAX) return false
  const { code, syscall, cause, errors, message } = error as Readonly<Record<string, unknown>>
  // A host with several addresses fails with one error for each address.
  if (Array.isArray(errors))
    return errors.length > 0 && errors.every((inner) => isNeverSent(inner, level + 1))
  // ETIMEDOUT alone does not tell: an established connection can have it too.
  if (neverSentCodes.has(code) || syscall === 'connect') return true
  if (typeof message === 'string' && message.includes(NEVER_SENT_IN_DENO)) return true
  return isNeverSent(cause, level + 1)
}

/** For people: the message of the innermost cause, which is the one that names the problem. Never throws. */
export function describeNetworkError(error: unknown): string {
  try {
    return describe(error, 1)
  } catch {
    return 'an error that cannot be read'
  }
}

function describe(error: unknown, level: number): string {
  if (!(error instanceof Error)) return String(error)
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error.cause
  if (inner instanceof Error && level < LEVELS_MAX) return describe(inner, level + 1)
  // Of any type: the application may have replaced it.
  const message: unknown = error.message === '' ? error.name : error.message
  return String(message)
}
