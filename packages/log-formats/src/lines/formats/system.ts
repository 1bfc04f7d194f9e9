import { levelOf, timeOfEpoch } from '@sluice/records'
import { type LineFormat, matchAt } from './format.ts'
import { setLevel, setLevelOf } from './level-words.ts'
import { readUptime } from './kernel.ts'
import { LogLine } from './log-line.ts'
import { readTimed } from './timed.ts'

/** `dmesg --decode`: facility and level. */
const DECODED =
  /(kern|user|mail|daemon|auth|syslog|lpr|news) {0,6}:(emerg|alert|crit|err|warn|notice|info|debug) {0,6}: /y
/** The messages of a kernel after their facility and level. */
export const decodedKernel: LineFormat = (text, context) => {
  const decoded = matchAt(DECODED, text, 0)
  if (decoded === undefined) return undefined
  const at = DECODED.lastIndex
  const line = readTimed(text, at, context) ?? new LogLine()
  if (line.timestamp === undefined && !readUptime(text, at, line)) line.message = text.slice(at)
  line.add('facility', decoded[1])
  setLevelOf(line, decoded[2] ?? '')
  return line
}

/** The audit log of Linux: `type=SYSCALL msg=audit(1795168800.123:456): arch=c000003e`. */
const AUDIT = /(?:node=(\S{1,255}) )?type=(\S{1,60}) msg=audit\((\d{10}\.\d{3}):(\d{1,15})\): ?/y

export const audit: LineFormat = (text) => {
  const match = matchAt(AUDIT, text, 0)
  if (match === undefined) return undefined
  const line = new LogLine()
  line.timestamp = timeOfEpoch(match[3] ?? '')
  if (line.timestamp === undefined) return undefined
  line.isZoned = true
  line.add('host', match[1])
  line.add('type', match[2])
  line.add('serial', match[4])
  line.message = text.slice(AUDIT.lastIndex)
  return line
}

/** Erlang, and RabbitMQ before version 3.7: `=INFO REPORT==== 20-Nov-2026::10:00:00 ===`, and the message in the next lines. */
const REPORT = /=([A-Z]{4,20}) REPORT==== (?=\d)/y

export const erlangReport: LineFormat = (text, { time }) => {
  const match = matchAt(REPORT, text, 0)
  if (match === undefined) return undefined
  const line = new LogLine()
  line.timestamp = time.read(text, REPORT.lastIndex)
  if (line.timestamp === undefined || !/^\s*(?:=== ?)?$/.test(text.slice(time.end))) return undefined
  line.isZoned = time.isZoned
  const [, kind = ''] = match
  const isCrash = kind === 'CRASH' || kind === 'SUPERVISOR'
  setLevel(line, isCrash ? 'error' : (levelOf(kind) ?? 'info'), kind)
  line.message = text
  line.awaitsMessage = true
  return line
}

const INDENTED = /[ \t]{1,16}(?=\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:)/y

/** Lines with blanks before the time, as old versions of Consul write them. Without a level, they are part of another message. */
export const indented: LineFormat = (text, context) => {
  if (matchAt(INDENTED, text, 0) === undefined) return undefined
  const line = readTimed(text, INDENTED.lastIndex, context)
  return line?.level === undefined ? undefined : line
}
