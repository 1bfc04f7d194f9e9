import type { Writable } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { type LogFn, type Logger, pino, stdTimeFunctions, type LoggerOptions } from 'pino'
import { LogLimiter } from './log-limiter.ts'
import { logOutput, type LogOutput } from './log-output.ts'
import { prettyLine } from './pretty-line.ts'

export type { Logger } from 'pino'

/** `auto`: for people if standard output is a terminal, otherwise JSON. */
export type LogFormat = 'auto' | 'json' | 'pretty'

/** The logger of a process. */
export interface ProcessLogger extends Logger {
  /** Repeated lines that were not written since the process started. Their number is in the log. */
  readonly logLinesDropped: number
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
export function createLogger(name: string, level: string, format: LogFormat = 'auto'): ProcessLogger {
  const limiter = new LogLimiter({
    monotonicMs: () => performance.now(),
    after: (ms, run) => void setTimeout(run, ms).unref(),
  })
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
        limitLine({ limiter, logger: this, levelNumber }, args, method)
      },
    },
  }
  const logger = pino(options, formattedOutput(process.stdout, format))
  return Object.defineProperties(logger, {
    logLinesDropped: { get: () => limiter.linesDropped },
    reportRepeated: { value: () => limiter.flush() },
  }) as ProcessLogger
}

interface LimitedLogger {
  readonly limiter: LogLimiter
  readonly logger: Logger
  readonly levelNumber: number
}

/** Writes a line, unless there were too many of its kind. */
function limitLine(
  { limiter, logger, levelNumber }: LimitedLogger,
  args: Parameters<LogFn>,
  method: LogFn,
): void {
  const [first, second] = args as readonly unknown[]
  const [fields, message] = typeof first === 'string' ? [undefined, first] : [first, second]
  const text = typeof message === 'string' ? message : ''
  const report = (repeated: number): void => method.call(logger, { ...objectOf(fields), repeated }, text)
  if (limiter.admits(logger.levels.labels[levelNumber] ?? '', text, fields, report))
    method.apply(logger, args)
}

function objectOf(fields: unknown): object {
  if (fields instanceof Error) return { err: fields }
  return typeof fields === 'object' && fields !== null ? fields : {}
}

/** A standard stream. One that is no terminal has no method for colours. */
export type LogStream = Writable & Partial<Pick<WriteStream, 'isTTY' | 'hasColors'>>

/** Where lines go, and in which format. Colours are for terminals only. Node's `hasColors` honours `NO_COLOR` and `FORCE_COLOR`. */
export function formattedOutput(stream: LogStream, format: LogFormat): LogOutput {
  const isTerminal = stream.isTTY === true
  if (format === 'json' || (format === 'auto' && !isTerminal)) return logOutput(stream)
  const hasColours = isTerminal && stream.hasColors?.() === true
  return logOutput(stream, { format: (line) => prettyLine(line, hasColours) })
}
