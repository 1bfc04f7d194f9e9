import { pino, stdTimeFunctions, type Logger } from 'pino'

export type { Logger } from 'pino'

/**
 * A logger that writes JSON lines to standard output.
 *
 * Payloads and keys are never handed to it; the redaction is the second lock on the same door.
 *
 * @param name which process it is, on every line
 */
export function createLogger(name: string, level: string): Logger {
  return pino({
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
        // What a command of Redis that failed was given: rows, or the password.
        'err.command.args',
        'err.lastNodeError.command.args',
        'err.previousErrors[*].command.args',
      ],
      censor: '[redacted]',
    },
  })
}
