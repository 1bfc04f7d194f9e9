import type { Logger } from 'pino'

/**
 * Runs a process until a signal stops it. This is the only place in a service that handles signals and uncaught errors.
 *
 * Starting → running → stopping (on the first SIGTERM or SIGINT: `stop` runs, for at most `deadlineMs`) → exited. A second
 * signal or the deadline exits at once with code 1. Other processes then recover its unfinished work.
 *
 * @param start starts the process, and returns how to stop it
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
      logger.warn({ signal }, 'second signal, exiting at once')
      process.exit(1)
    }
    stopping = true
    logger.info({ signal }, 'stopping')
    setTimeout(() => {
      logger.error({ deadlineMs }, 'not stopped within the deadline, exiting with unfinished work')
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
