import type { Writable } from 'node:stream'
import { type DestinationStream, type Logger, pino, stdTimeFunctions, type LoggerOptions } from 'pino'
import { LogLimiter } from './log-limiter.ts'
import { withTimeout } from './promises.ts'

export type { Logger } from 'pino'

export interface ProcessLogger extends Logger {
  /** Writes the numbers of repeated lines that are not written yet. To be called before the process exits. */
  readonly reportRepeated: () => void
}

/**
 * A logger that writes lines to standard output. See `LogLimiter` for repeated lines, and `logOutput` for what happens when lines cannot
 * be written.
 *
 * Callers never pass payloads or keys to it. The redaction is a second safeguard.
 *
 * @param name the name of the process, added to every line
 */
export function createLogger(name: string, level: string): ProcessLogger {
  const limiter = new LogLimiter((ms, run) => void setTimeout(run, ms).unref())
  const options: LoggerOptions = {
    name,
    level,
    timestamp: stdTimeFunctions.isoTime,
    redact: {
      paths: [
        'authorization',
        '*.authorization',
        'headers.authorization',
        'password',
        '*.password',
        // The arguments of a failed Redis command contain rows, or the password.
        'err.command.args',
        'err.lastNodeError.command.args',
        'err.previousErrors[*].command.args',
      ],
      censor: '[redacted]',
    },
    hooks: {
      logMethod(args, method, levelNumber) {
        const [first, second] = args as readonly unknown[]
        const [fields, message] = typeof first === 'string' ? [undefined, first] : [first, second]
        const text = typeof message === 'string' ? message : ''
        const report = (repeated: number): void => method.call(this, { ...objectOf(fields), repeated }, text)
        // Unless there were too many of its kind.
        if (limiter.admits(this.levels.labels[levelNumber] ?? '', text, fields, report))
          method.apply(this, args)
      },
    },
  }
  const logger = pino(options, logOutput(process.stdout))
  return Object.assign(logger, { reportRepeated: () => limiter.flush() })
}

function objectOf(fields: unknown): object {
  if (fields instanceof Error) return { err: fields }
  return typeof fields === 'object' && fields !== null ? fields : {}
}

/** Controls that JSON does not escape. They can move the cursor and reprogram a terminal. Strings of servers may be in a line. */
const CONTROLS = /[\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu

function escapeControls(line: string): string {
  return line.replaceAll(CONTROLS, (control) => {
    const code = control.codePointAt(0) ?? 0
    return `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/**
 * How much of the log may wait for a reader that does not read. Thousands of lines: a reader that is only slow loses nothing, and one
 * that has stopped costs little memory.
 */
const WAITING_BYTES_MAX = 4 * 1024 * 1024
const WARN_LEVEL = 40

/**
 * Writes lines to a standard stream. A log that cannot be written never blocks, delays or ends the process: a line is dropped if the
 * stream reports an error (its reader is gone, the disk is full) or if too much is waiting. Later lines are attempted again, and the
 * first line that fits is preceded by the number of lines that did not fit.
 *
 * pino's own destination repeats a failed write forever when the process exits.
 *
 * @param stream a pipe is non-blocking in Node, so its queue is in this process and its exit does not wait for a reader
 */
export function logOutput(stream: Writable, waitingBytesMax = WAITING_BYTES_MAX): DestinationStream {
  ignoreErrors(stream)
  let dropped = 0
  return {
    write: (line) => {
      if (stream.writableLength + line.length > waitingBytesMax) {
        dropped++
        return
      }
      if (dropped > 0) {
        const time = new Date().toISOString()
        const report = JSON.stringify({ level: WARN_LEVEL, time, dropped, msg: 'log lines dropped' })
        stream.write(`${report}\n`)
        dropped = 0
      }
      stream.write(escapeControls(line))
    },
  }
}

/** Without a listener, an error of a standard stream would be an uncaught exception. */
export function ignoreErrors(stream: Writable): void {
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore)
}

/** Resolves when everything that was written has reached the operating system, or could not, or after the deadline. */
export async function flushed(stream: Writable, deadlineMs: number): Promise<void> {
  ignoreErrors(stream)
  const written = new Promise<void>((resolve) => stream.write('', () => resolve()))
  await withTimeout(written, deadlineMs).catch(() => undefined)
}

function ignore(): void {
  // The line is lost, and there is no other place to report it.
}
