/** What a person is told in one line, without a stack: something outside went wrong, and they can do something about it. */
export class CliError extends Error {
  override name = 'CliError'
  /** What the process ends with. */
  get exitCode(): number {
    return 1
  }
}

/** The command was called in a wrong way. */
export class UsageError extends CliError {
  override name = 'UsageError'
  override get exitCode(): number {
    return 2
  }
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses the connection',
  ECONNRESET: 'closed the connection',
  EPIPE: 'closed the connection',
  UND_ERR_SOCKET: 'closed the connection',
  ENOTFOUND: 'has a host name that cannot be resolved',
  EAI_AGAIN: 'has a host name that cannot be resolved just now',
  EHOSTUNREACH: 'cannot be reached',
  ENETUNREACH: 'cannot be reached',
  ETIMEDOUT: 'did not answer in time',
  UND_ERR_CONNECT_TIMEOUT: 'did not answer in time',
  UND_ERR_HEADERS_TIMEOUT: 'did not answer in time',
  UND_ERR_BODY_TIMEOUT: 'did not answer in time',
  ABORT_ERR: 'did not answer in time',
}

/**
 * Says in words why something on the network failed: what follows "the API at http://…". Undefined when the error is
 * not one of the network.
 */
export function describeNetworkError(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error.name === 'TimeoutError' || error.message === 'Timeout error.') return 'did not answer in time'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  if (code !== undefined && reasons[code] !== undefined) return reasons[code]
  // fetch wraps what happened; a host with several addresses fails with an error for each.
  const inner = error instanceof AggregateError ? (error.errors[0] as unknown) : error.cause
  const described = inner === undefined ? undefined : describeNetworkError(inner)
  if (described !== undefined) return described
  if (error instanceof TypeError && inner instanceof Error) return `${CANNOT} (${inner.message})`
  return code !== undefined && 'syscall' in error ? `${CANNOT} (${error.message})` : undefined
}

/** What has no words of its own here: a certificate that is not trusted, a forbidden port, a rare system call. */
const CANNOT = 'cannot be talked to'

/** Whether nobody was there to talk to: the request never left. */
export function isNeverConnected(error: unknown): boolean {
  const text = describeNetworkError(error)
  if (text === undefined) return false
  return text.startsWith(CANNOT) || [reasons['ECONNREFUSED'], reasons['ENOTFOUND']].includes(text)
}
