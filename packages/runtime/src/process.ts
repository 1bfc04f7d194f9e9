import type { Logger } from 'pino'

/**
 * Runs a process until it is told to stop. The only place in a service that handles signals and uncaught errors.
 *
 * Starting → running → stopping (first SIGTERM or SIGINT: `stop` runs, at most `deadlineMs`) → gone. A second signal,
 * or the deadline, ends the process at once with status 1: what it held is recovered by others.
 *
 * @param start brings the process up and returns how to stop it
 */
export async function runProcess(options: {
  logger: Logger
  deadlineMs: number
  start: () => Promise<{ stop: () => Promise<void> }>
}): Promise<void> {
  const { logger, deadlineMs } = options
  const fail = (error: unknown): void => {
    logger.fatal({ err: error }, 'stopped by an unexpected error')
    process.exit(1)
  }
  process.on('uncaughtException', fail)
  process.on('unhandledRejection', fail)

  let stopping = false
  const running = options.start()
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) {
      logger.warn({ signal }, 'second signal, leaving at once')
      process.exit(1)
    }
    stopping = true
    logger.info({ signal }, 'stopping')
    setTimeout(() => {
      logger.error({ deadlineMs }, 'not stopped within the deadline, leaving the rest to be recovered')
      process.exit(1)
    }, deadlineMs).unref()
    running
      .then(({ stop }) => stop())
      .then(() => {
        logger.info('stopped')
        process.exit(0)
      })
      .catch(fail)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  await running
}
