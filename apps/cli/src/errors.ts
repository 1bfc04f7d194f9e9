import { getSystemErrorMessage } from 'node:util'

/** An error that the user sees as one line: something outside of this program failed, and the user can act on it. */
export class CliError extends Error {
  override name = 'CliError'
}

/** By name: the packages of these classes take far longer to load than the help. */
const forUsers: ReadonlySet<string> = new Set([
  'CliError',
  'MigrationError',
  'RegistryError',
  'SettingsError',
])

/** Whether the user sees the message of an error, and nothing else. */
export function isForUser(error: unknown): error is Error {
  return error instanceof Error && forUsers.has(error.name)
}

const REFUSED = 'refused the connection'
const CLOSED = 'closed the connection'
const UNKNOWN_HOST = 'has a host name that cannot be resolved'
const UNREACHABLE = 'is unreachable'
export const SILENT = 'did not respond in time'

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: REFUSED,
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  UND_ERR_SOCKET: CLOSED,
  ENOTFOUND: UNKNOWN_HOST,
  EAI_AGAIN: `${UNKNOWN_HOST} at the moment`,
  EHOSTUNREACH: 'cannot be reached over the network',
  ENETUNREACH: 'cannot be reached over the network',
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** Describes a network failure, in words that follow a subject such as "the API at http://…"; undefined for other errors. */
export function describeNetworkError(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error.name === 'TimeoutError' || error.message === 'Timeout error.') return SILENT
  const code = codeOf(error)
  if (/^ETIMEDOUT$|^UND_ERR_\w+_TIMEOUT$|^ABORT_ERR$/.test(code)) return SILENT
  const reason = reasons[code]
  if (reason !== undefined) return reason
  // fetch wraps the original error. A host with several addresses fails with one error for each address.
  const inner = error instanceof AggregateError ? (error.errors[0] as unknown) : error.cause
  const described = describeNetworkError(inner)
  if (described !== undefined) return described
  if (error instanceof TypeError && inner instanceof Error) return `${UNREACHABLE} (${inner.message})`
  return code !== '' && 'syscall' in error ? `${UNREACHABLE} (${error.message})` : undefined
}

/** Whether the connection was never established: the server cannot have received the request. */
export function wasNeverSent(error: unknown): boolean {
  const reason = describeNetworkError(error) ?? ''
  return reason.startsWith(UNREACHABLE) || reason === REFUSED || reason === UNKNOWN_HOST
}

/** A handler for the rejection of a read. @throws CliError with the reason; errors of another kind as they are */
export function throwReadError(path: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof Error && 'errno' in error)) throw error
    const reason = getSystemErrorMessage(Number(error.errno))
    throw new CliError(`cannot read ${path}: ${reason}`, { cause: error })
  }
}

/** An error rarely has more than three causes. The limit ends a cycle. */
const CAUSES_MAX = 10

/**
 * The stack traces of an error and its causes. Other properties are left out: a Redis error, for example, has the arguments of its
 * command, and with them a password.
 */
export function stackTrace(error: Error): string {
  const stacks: string[] = []
  for (let each: unknown = error; each instanceof Error && stacks.length <= CAUSES_MAX; each = each.cause)
    stacks.push(each.stack ?? each.message)
  return stacks.join('\nCaused by: ')
}
