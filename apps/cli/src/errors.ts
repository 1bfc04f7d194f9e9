/**
 * An error that the user sees as one line, without a stack: something outside of this program failed, and the user can
 * act on it.
 */
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

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'closed the connection',
  EPIPE: 'closed the connection',
  UND_ERR_SOCKET: 'closed the connection',
  ENOTFOUND: 'has a host name that cannot be resolved',
  EAI_AGAIN: 'has a host name that cannot be resolved at the moment',
  EHOSTUNREACH: 'cannot be reached over the network',
  ENETUNREACH: 'cannot be reached over the network',
  ETIMEDOUT: 'did not respond in time',
  UND_ERR_CONNECT_TIMEOUT: 'did not respond in time',
  UND_ERR_HEADERS_TIMEOUT: 'did not respond in time',
  UND_ERR_BODY_TIMEOUT: 'did not respond in time',
  ABORT_ERR: 'did not respond in time',
}

/**
 * Describes a network failure, in words that follow a subject such as "the API at http://…". Undefined if the error is
 * not a network failure.
 */
export function describeNetworkError(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error.name === 'TimeoutError' || error.message === 'Timeout error.') return 'did not respond in time'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  if (code !== undefined && reasons[code] !== undefined) return reasons[code]
  // fetch wraps the original error. A host with several addresses fails with one error for each address.
  const inner = error instanceof AggregateError ? (error.errors[0] as unknown) : error.cause
  const described = inner === undefined ? undefined : describeNetworkError(inner)
  if (described !== undefined) return described
  if (error instanceof TypeError && inner instanceof Error) return `${UNREACHABLE} (${inner.message})`
  return code !== undefined && 'syscall' in error ? `${UNREACHABLE} (${error.message})` : undefined
}

/** For failures without a text above: a certificate that is not trusted, a forbidden port, a rare system call. */
const UNREACHABLE = 'is unreachable'

/** Whether the connection was never established: the server cannot have received the request. */
export function wasNeverSent(error: unknown): boolean {
  const text = describeNetworkError(error)
  if (text === undefined) return false
  return text.startsWith(UNREACHABLE) || [reasons['ECONNREFUSED'], reasons['ENOTFOUND']].includes(text)
}

const readReasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is not a directory',
}

/** Why a file could not be opened or read; undefined for errors of another kind. */
export function describeReadError(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('syscall' in error)) return undefined
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return readReasons[code] ?? error.message
}

/** A handler for the rejection of a read. @throws CliError with the reason */
export function throwReadError(path: string): (error: unknown) => never {
  return (error) => {
    const reason = describeReadError(error)
    throw reason === undefined ? error : new CliError(`cannot read ${path}: ${reason}`, { cause: error })
  }
}

/** An error rarely has more than three causes. The limit ends a cycle. */
const CAUSES_MAX = 10

/** Whether the user asked for stack traces in the environment. */
export function isDebugSet(environment: Readonly<Record<string, string | undefined>>): boolean {
  return !['', '0', 'false'].includes(environment['SLUICE_DEBUG'] ?? '')
}

/**
 * The lines of the stack traces of an error and its causes. Other properties are left out: those of a Redis error, for
 * example, contain the arguments of the command, and with them a password.
 */
export function stackTrace(error: Error): string[] {
  const lines: string[] = []
  let current: unknown = error
  for (let causes = 0; current instanceof Error && causes <= CAUSES_MAX; causes += 1) {
    const stack = current.stack ?? current.message
    lines.push(...`${causes === 0 ? '' : 'Caused by: '}${stack}`.split('\n'))
    current = current.cause
  }
  return lines
}
