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
    const [, kilobytes = '0'] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    residentBytes += Number(kilobytes) * 1_024
    handles += readdirSync(`/proc/${pid}/fd`).length
  }
  return { residentBytes, handles }
}
