import { readdirSync, readFileSync } from 'node:fs'

/** What a process holds at a moment. */
export interface ProcessSize {
  readonly residentBytes: number
  /** Open files and sockets. */
  readonly handles: number
}

/** Reads it from /proc, of several processes together. @throws when one of them has ended */
export function sizeOf(pids: readonly number[]): ProcessSize {
  let residentBytes = 0
  let handles = 0
  for (const pid of pids) {
    residentBytes += memoryBytes(readFileSync(`/proc/${pid}/status`, 'utf8'), 'VmRSS')
    handles += readdirSync(`/proc/${pid}/fd`).length
  }
  return { residentBytes, handles }
}

/** One of the sizes in a process's status, 0 where it has none; see proc_pid_status(5). */
export function memoryBytes(status: string, name: 'VmRSS' | 'VmHWM'): number {
  const [, kilobytes = '0'] = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status) ?? []
  return Number(kilobytes) * 1_024
}
