import { pino, stdTimeFunctions, type Logger, type LoggerOptions } from 'pino'
import { logOutput } from './log-output.ts'

export type { Logger } from 'pino'

/**
 * A logger that writes JSON lines to standard output. See `logOutput` for what happens when they cannot be written.
 *
 * Callers never pass payloads or keys to it. The redaction is a second safeguard.
 *
 * @param name the name of the process, added to every line
 */
export function createLogger(name: string, level: string): Logger {
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
  }
  return pino(options, logOutput(process.stdout))
}
