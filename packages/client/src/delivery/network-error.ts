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
])

/** Whether what `fetch` threw shows that the request was not sent. */
export function wasNeverSent(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown }
  // A host with several addresses fails with one error for each address.
  if (Array.isArray(errors)) return errors.length > 0 && errors.every(wasNeverSent)
  return neverSentCodes.has(code) || wasNeverSent(cause)
}

/** For people: the message of the innermost cause, which is the one that names the problem. */
export function describeNetworkError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error.cause
  if (inner instanceof Error) return describeNetworkError(inner)
  return error.message === '' ? error.name : error.message
}
