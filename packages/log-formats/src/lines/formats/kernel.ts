import { type LineFormat, matchAt } from './format.ts'
import { readHeader } from './header.ts'
import { setLevelOf } from './level-words.ts'
import { LogLine } from './log-line.ts'

/** The seconds since the start of a kernel, or of an X server. */
const UPTIME = /\[ {0,7}(\d{1,10}\.\d{3,6})\] /y
/** The X server: `(EE) message`. */
const XORG = /\((EE|WW|II|DB)\) /y
const xorgLevels: Readonly<Record<string, string>> = {
  EE: 'error',
  WW: 'warning',
  II: 'info',
  DB: 'debug',
}

/** Reads the time since the start and the message. @returns whether there is such a time */
export function readUptime(text: string, at: number, line: LogLine): boolean {
  const uptime = matchAt(UPTIME, text, at)
  if (uptime === undefined) return false
  line.add('uptime', uptime[1])
  const end = UPTIME.lastIndex
  const mark = matchAt(XORG, text, end)
  if (mark !== undefined) setLevelOf(line, xorgLevels[mark[1] ?? ''] ?? '')
  line.message = text.slice(mark === undefined ? end : XORG.lastIndex)
  return true
}

/** The JVM and Linkerd: the seconds since the start, and a header like that of a logger: `[0.123s][info][gc] message`. */
const SECONDS = /\[ {0,7}(\d{1,10}\.\d{3,6}s)\]/y

export const jvm: LineFormat = (text) => {
  const uptime = matchAt(SECONDS, text, 0)
  if (uptime === undefined) return undefined
  const line = new LogLine()
  line.add('uptime', uptime[1])
  readHeader(text, SECONDS.lastIndex, line)
  return line.level === undefined ? undefined : line
}

/** The messages of a kernel without their time: they have the seconds since its start. */
export const kernel: LineFormat = (text) => {
  const line = new LogLine()
  return readUptime(text, 0, line) ? line : undefined
}
