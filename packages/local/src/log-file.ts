import { closeSync, copyFileSync, fstatSync, openSync, readSync, statSync, truncateSync } from 'node:fs'

/** A log holds the story of a few crashes; two files of this size for each of five processes stay below 100 MB. */
export const logBytesMax = 8 * 1024 * 1024

/** How often the logs of running processes are looked at. */
export const logCheckIntervalMs = 15_000

const TAIL_BYTES_MAX = 16 * 1024

/**
 * Keeps a log file bounded: one that has grown to its limit is copied to `FILE.1` and emptied. It may be in use, as long
 * as those who write append.
 */
export function boundLog(path: string, bytesMax: number = logBytesMax): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size < bytesMax) return
  copyFileSync(path, `${path}.1`)
  truncateSync(path)
}

/** The end of a log file: its last lines, as far as they are in its last 16 KiB. */
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
