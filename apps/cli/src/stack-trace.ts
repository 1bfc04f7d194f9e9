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
