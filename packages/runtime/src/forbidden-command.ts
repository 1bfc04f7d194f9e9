/** Whether a server does not permit a command. Providers disable commands with different messages. The exceptions are states that end. */
export function isForbidden(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === 'ReplyError' &&
    !/^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|NOAUTH)\b/.test(error.message)
  )
}
