import type { Writable } from 'node:stream'

/**
 * How much of the log may wait for a reader that does not read. Thousands of lines: a reader that is only slow loses nothing, and one
 * that has stopped costs little memory.
 */
const WAITING_BYTES_MAX = 4 * 1024 * 1024
const WARN_LEVEL = 40

/** A destination of pino's lines. */
export interface LogOutput {
  write(line: string): void
}

/**
 * Writes lines to a standard stream. A log that cannot be written never blocks, delays or ends the process: a line is dropped if the
 * stream reports an error (its reader is gone, the disk is full) or if too much is waiting. Later lines are attempted again, and the
 * first one that fits is preceded by the number of lines that did not fit.
 *
 * pino's own destination repeats a failed write forever when the process exits.
 *
 * @param stream a pipe is non-blocking in Node, so its queue is in this process and its exit does not wait for a reader
 * @param options.format makes the text that is written from a line of JSON. Default: the line itself
 */
export function logOutput(
  stream: Writable,
  {
    waitingBytesMax = WAITING_BYTES_MAX,
    format = (line) => line,
  }: { waitingBytesMax?: number; format?: (line: string) => string } = {},
): LogOutput {
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
  let timeout: NodeJS.Timeout | undefined
  await new Promise<void>((resolve) => {
    timeout = setTimeout(resolve, deadlineMs)
    stream.write('', () => resolve())
  })
  clearTimeout(timeout)
}

function ignore(): void {
  // The line is lost, and there is no other place to report it.
}
