import { createLogger, flushed, type Logger, type ProcessLogger } from './logger.ts'
import { SettingsError } from './settings.ts'

/** Enough for a reader of the log that is alive. */
const FLUSH_DEADLINE_MS = 500

/** Whether a process can do its work. `reasons` are human-readable, and empty when it is ready. */
export interface Readiness {
  readonly ready: boolean
  readonly reasons: readonly string[]
}

/** What a process has opened. Each is released before those that it was made of: in the reverse order. */
export class Resources extends AsyncDisposableStack {
  /** When half of the time for a shutdown has passed, on the clock of `performance.now()`. */
  halfTimeMs = Number.POSITIVE_INFINITY

  stopAtEnd<Part extends { stop(): unknown }>(part: Part): Part {
    return this.adopt(part, async (started) => void (await started.stop()))
  }

  closeAtEnd<Part extends { close(): unknown }>(part: Part): Part {
    return this.adopt(part, async (opened) => void (await opened.close()))
  }
}

/**
 * Runs a process until a signal stops it. This is the only place in a service that handles signals and uncaught errors.
 *
 * Starting → running → stopping (on the first SIGTERM or SIGINT: releases its resources, for at most `deadlineMs`) → exited. A second
 * signal or the deadline exits at once with code 1. Other processes then recover its unfinished work.
 *
 * @param start starts the process, and returns the address of its ops server, if it has one
 */
export async function runProcess(options: {
  logger: ProcessLogger
  deadlineMs: number
  start: (resources: Resources) => Promise<string | undefined>
}): Promise<void> {
  const { logger, deadlineMs } = options
  const exit = (code: number): never => {
    logger.reportRepeated()
    return exitAtOnce(code)
  }
  const fail = (error: unknown): void => {
    logFailure(logger, error)
    exit(1)
  }
  process.on('uncaughtException', fail)
  process.on('unhandledRejection', fail)

  let stopping = false
  const started = Promise.withResolvers<string | undefined>()
  const resources = new Resources()
  const stopAndExit = async (): Promise<void> => {
    await started.promise
    await resources.disposeAsync()
    logger.reportRepeated()
    logger.info('stopped')
    await flushed(process.stdout, FLUSH_DEADLINE_MS)
    exitAtOnce(0)
  }
  const onSignal = (signal: NodeJS.Signals | 'disconnect'): void => {
    if (stopping) {
      logger.warn({ signal }, 'second signal, exiting at once')
      exit(1)
    }
    stopping = true
    resources.halfTimeMs = performance.now() + deadlineMs / 2
    logger.info({ signal }, 'stopping')
    setTimeout(() => {
      logger.error({ deadlineMs }, 'not stopped within the deadline, exiting with unfinished work')
      exit(1)
    }, deadlineMs).unref()
    stopAndExit().catch(fail)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  // The process that started this one as a copy of itself stops, or has ended. A Ctrl-C may have reached both.
  process.on('disconnect', () => {
    if (!stopping) onSignal('disconnect')
  })
  started.resolve(options.start(resources))
  // To the process that started this one as a copy.
  process.send?.({ opsUrl: await started.promise })
}

/** Reads the settings of a process. If they are invalid, the process logs why, in one line, and exits with code 1. */
export function readSettingsOrExit<Settings>(name: string, read: () => Settings): Settings {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    createLogger(name, 'fatal').fatal(error.message)
    return process.exit(1)
  }
}

/** A failure that the operator can fix is one line without a stack. */
function logFailure(logger: Logger, error: unknown): void {
  if (error instanceof SettingsError) logger.fatal(error.message)
  else if (error instanceof Error && 'syscall' in error && error.syscall === 'listen')
    logger.fatal(`invalid settings: ${error.message}: choose another address or port`)
  else logger.fatal({ err: error }, 'stopped by an unexpected error')
}

/** Jobs of Node's thread pool that may take any time: a name server may be silent, and a file may be a pipe. */
const SLOW_JOB = /^(FSReq|GetAddrInfoReq|GetNameInfoReq)/

/**
 * Exits even while a thread of Node's pool is blocked. `process.exit` waits for these threads: during an outage, a process looks up the
 * name of Redis again and again, and a silent name server would delay its exit beyond any deadline. Replacing the program of the process
 * does not wait for them.
 */
function exitAtOnce(code: number): never {
  if (process.getActiveResourcesInfo().some((resource) => SLOW_JOB.test(resource)))
    process.execve?.(process.execPath, [process.execPath, '--eval', `process.exit(${code})`], {})
  return process.exit(code)
}
