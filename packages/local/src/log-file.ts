import { closeSync, copyFileSync, fstatSync, openSync, readSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'

/** Enough for the output of a few crashes. Two files of this size for each of five processes stay below 100 MB. */
const LOG_BYTES_MAX = 8 * 1024 * 1024

/** How often the size of the logs of running processes is checked. */
export const logCheckIntervalMs = 15_000

const TAIL_BYTES_MAX = 16 * 1024

/** The file that receives the output of a process. */
export function logFileOf(dataDir: string, name: string): string {
  return join(dataDir, 'logs', `${name}.log`)
}

/**
 * Bounds the size of a log file: a file that has reached its limit is copied to `FILE.1` and truncated. Processes may have
 * the file open if they only append.
 */
export function boundLog(path: string, bytesMax: number = LOG_BYTES_MAX): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size < bytesMax) return
  copyFileSync(path, `${path}.1`)
  truncateSync(path)
}

/** The last lines of a log file that are not blank, from its last 16 KiB. */
export function lastLines(path: string, count: number): string[] {
  try {
    const file = openSync(path, 'r')
    try {
      const { size } = fstatSync(file)
      const tail = Buffer.alloc(Math.min(size, TAIL_BYTES_MAX))
      readSync(file, tail, 0, tail.length, size - tail.length)
      return tail
        .toString('utf8')
        .split('\n')
        .filter((line) => line.trim() !== '')
        .slice(-count)
    } finally {
      closeSync(file)
    }
  } catch {
    return []
  }
}
