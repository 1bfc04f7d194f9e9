import { createRequire } from 'node:module'
import type { Writable } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { type DestinationStream, type Logger, pino, stdTimeFunctions, type LoggerOptions } from 'pino'
import { LogLimiter } from './log-limiter.ts'
import { withTimeout } from './promises.ts'

export type { Logger } from 'pino'

/** `auto`: for people if standard output is a terminal, otherwise JSON. */
export type LogFormat = 'auto' | 'json' | 'pretty'

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
export function createLogger(name: string, level: string, format: LogFormat = 'auto'): ProcessLogger {
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
  const logger = pino(options, formattedOutput(process.stdout, format))
  return Object.assign(logger, { reportRepeated: () => limiter.flush() })
}

function objectOf(fields: unknown): object {
  if (fields instanceof Error) return { err: fields }
  return typeof fields === 'object' && fields !== null ? fields : {}
}

/** Loads what lines of JSON do not need. */
const require = createRequire(import.meta.url)

/** A standard stream. It has no method for colours unless it is a terminal. */
export type LogStream = Writable & Partial<Pick<WriteStream, 'isTTY' | 'hasColors'>>

/** Where lines go, and in which format. Colours are for terminals only. Node's `hasColors` honours `NO_COLOR` and `FORCE_COLOR`. */
export function formattedOutput(stream: LogStream, format: LogFormat): DestinationStream {
  const isTerminal = stream.isTTY === true
  if (format === 'json' || (format === 'auto' && !isTerminal)) return logOutput(stream)
  const { prettyFactory } = require('pino-pretty') as typeof import('pino-pretty')
  const pretty = prettyFactory({
    colorize: isTerminal && stream.hasColors?.() === true,
    singleLine: true,
    ignore: 'pid,hostname',
    translateTime: 'SYS:HH:MM:ss.l',
  })
  return logOutput(stream, { format: (line) => pretty(escapeControls(line)) })
}

/**
 * Controls can move the cursor and reprogram the terminal. Strings of servers and clients may be in a line. JSON has most of them as escape
 * sequences, whose backslashes are escaped here. Only the newline is kept: stacks have it.
 */
function escapeControls(line: string): string {
  return line
    .trimEnd()
    .replaceAll(/\\(?:\\|[bfrt]|u00[01][\da-f])/g, (escape) => (escape === '\\\\' ? escape : `\\${escape}`))
    .replaceAll(CONTROLS, (character) => {
      const code = character.codePointAt(0) ?? 0
      return String.raw`\\u${code.toString(16).padStart(4, '0')}`
    })
}

// oxlint-disable-next-line no-control-regex -- it must match control characters, to escape them
const CONTROLS = /[\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu

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
 * @param options.format makes what is written from a line of JSON. Default: the line itself
 */
export function logOutput(
  stream: Writable,
  {
    waitingBytesMax = WAITING_BYTES_MAX,
    format = (line) => line,
  }: { waitingBytesMax?: number; format?: (line: string) => string } = {},
): DestinationStream {
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
        stream.write(format(`${report}\n`))
        dropped = 0
      }
      stream.write(format(line))
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
