/** An error that the user sees as one line: something outside of this program failed, and the user can act on it. */
export class CliError extends Error {
  override name = 'CliError'
  /** The exit code of the process. */
  readonly exitCode: number = 1
}

/** The command line is invalid. */
export class UsageError extends CliError {
  override name = 'UsageError'
  override readonly exitCode = 2
}

const REFUSED = 'refused the connection'
const CLOSED = 'closed the connection'
const UNKNOWN_HOST = 'has a host name that cannot be resolved'
/** For failures without words of their own: a certificate that is not trusted, a forbidden port, a rare system call. */
const UNREACHABLE = 'is unreachable'
const NO_ROUTE = 'cannot be reached over the network'
export const SILENT = 'did not respond in time'

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: REFUSED,
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  UND_ERR_SOCKET: CLOSED,
  ENOTFOUND: UNKNOWN_HOST,
  EAI_AGAIN: `${UNKNOWN_HOST} at the moment`,
  EHOSTUNREACH: NO_ROUTE,
  ENETUNREACH: NO_ROUTE,
  ETIMEDOUT: SILENT,
  UND_ERR_CONNECT_TIMEOUT: SILENT,
  UND_ERR_HEADERS_TIMEOUT: SILENT,
  UND_ERR_BODY_TIMEOUT: SILENT,
  ABORT_ERR: SILENT,
}

/** The code that Node.js gives to an error. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/**
 * Describes a network failure, in words that follow a subject such as "the API at http://…". Undefined if the error is
 * not a network failure.
 */
export function describeNetworkError(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error.name === 'TimeoutError' || error.message === 'Timeout error.') return SILENT
  const reason = reasons[codeOf(error)]
  if (reason !== undefined) return reason
  // fetch wraps the original error. A host with several addresses fails with one error for each address.
  const inner = error instanceof AggregateError ? (error.errors[0] as unknown) : error.cause
  const described = describeNetworkError(inner)
  if (described !== undefined) return described
  if (error instanceof TypeError && inner instanceof Error) return `${UNREACHABLE} (${inner.message})`
  return codeOf(error) !== '' && 'syscall' in error ? `${UNREACHABLE} (${error.message})` : undefined
}

/** Whether the connection was never established: the server cannot have received the request. */
export function wasNeverSent(error: unknown): boolean {
  const reason = describeNetworkError(error) ?? ''
  return reason.startsWith(UNREACHABLE) || reason === REFUSED || reason === UNKNOWN_HOST
}

const readReasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is not a directory',
}

/** A handler for the rejection of a read. @throws CliError with the reason; errors of another kind as they are */
export function throwReadError(path: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof Error && 'syscall' in error)) throw error
    throw new CliError(`cannot read ${path}: ${readReasons[codeOf(error)] ?? error.message}`, {
      cause: error,
    })
  }
}

/** An error rarely has more than three causes. The limit ends a cycle. */
const CAUSES_MAX = 10

/**
 * The stack traces of an error and its causes. Other properties are left out: a Redis error, for example, has the arguments of its
 * command, and with them a password.
 */
export function stackTrace(error: unknown, causes = 0): string {
  if (!(error instanceof Error) || causes > CAUSES_MAX) return ''
  const cause = stackTrace(error.cause, causes + 1)
  return `${error.stack ?? error.message}${cause === '' ? '' : `\nCaused by: ${cause}`}`
}
