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

/** Deno has no codes: "error sending request for url (…): client error (Connect): …". */
const NEVER_SENT_IN_DENO = 'client error (Connect)'

/** Whether what `fetch` threw shows that the request was not sent. */
export function wasNeverSent(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const { code, cause, errors, message } = error as Readonly<Record<string, unknown>>
  // A host with several addresses fails with one error for each address.
  if (Array.isArray(errors)) return errors.length > 0 && errors.every(wasNeverSent)
  if (neverSentCodes.has(code) || String(message).includes(NEVER_SENT_IN_DENO)) return true
  return wasNeverSent(cause)
}

/** For people: the message of the innermost cause, which is the one that names the problem. */
export function describeNetworkError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error.cause
  if (inner instanceof Error) return describeNetworkError(inner)
  return error.message === '' ? error.name : error.message
}
