import { type LineFormat, matchAt } from './format.ts'
import { setLevelOf, setLevelOfLetter } from './level-words.ts'
import { LogLine } from './log-line.ts'
import { readProgram, skipSequence } from './syslog.ts'

/** BIND: ` general: info: message` after the time. */
const BIND = / ([a-z][a-z-]{1,30}): (debug|info|notice|warning|error|critical)(?: \d{1,2})?: /y

export function readBind(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(BIND, text, at)
  if (match === undefined) return false
  line.add('logger', match[1])
  setLevelOf(line, match[2] ?? '')
  line.message = text.slice(BIND.lastIndex)
  return true
}

/** Unbound and NSD: ` unbound[1234:0] info: message` after the time in brackets. */
const UNBOUND = / ([\w.-]{1,40})\[(\d{1,10})(?::(\w{1,10}))?\] ?:? ([a-z]{4,8}): /y

export function readUnbound(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(UNBOUND, text, at)
  if (match === undefined || !setLevelOf(line, match[4] ?? '')) return false
  line.service = match[1]
  line.add('pid', match[2])
  line.add('tid', match[3])
  line.message = text.slice(UNBOUND.lastIndex)
  return true
}

/** Gluster: ` E [MSGID: 1] [x.c:1:f] 0-x: message` after the time in brackets. */
const GLUSTER = / ([TDINWECAM]) (?=\[(?:MSGID: \d|[\w./-]{1,100}:\d))/y

export function readGluster(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(GLUSTER, text, at)
  if (match === undefined) return false
  setLevelOfLetter(line, match[1] ?? '')
  line.message = text.slice(GLUSTER.lastIndex)
  return true
}

/** Cisco's devices, without the priority. */
export const cisco: LineFormat = (text, { time }) => {
  const start = skipSequence(text, 0)
  if (start === 0 || !text.includes('%')) return undefined
  const line = new LogLine()
  line.timestamp = time.read(text, start)
  if (line.timestamp === undefined) return undefined
  line.isZoned = time.isZoned
  readProgram(text, time.end, line)
  return line.level === undefined ? undefined : line
}

/** The firewalls of Cisco: `: %ASA-6-302013: message` after a time with a year. */
export function readCisco(text: string, at: number, line: LogLine): boolean {
  if (!text.startsWith(': %', at)) return false
  readProgram(text, at, line)
  return true
}

/** Asterisk: ` WARNING[1234][C-1]: file.c:12 message` after the time in brackets. */
const ASTERISK = / ([A-Z]{4,8})\[(\d{1,10})\](?:\[(C-[0-9a-f]{1,16})\])?:? /y

export function readAsterisk(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(ASTERISK, text, at)
  if (match === undefined || !setLevelOf(line, match[1] ?? '')) return false
  line.add('pid', match[2])
  line.add('call', match[3])
  line.message = text.slice(ASTERISK.lastIndex)
  return true
}

/** Icinga: ` warning/Notification: message` after the time in brackets. */
const ICINGA = / ([a-z]{4,11})\/(\w{1,60}): /y

export function readIcinga(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(ICINGA, text, at)
  if (match === undefined || !setLevelOf(line, match[1] ?? '')) return false
  line.add('logger', match[2])
  line.message = text.slice(ICINGA.lastIndex)
  return true
}

/** libvirt: `: 1234: error : function:12 : message` after the time. */
const LIBVIRT = /: (\d{1,10}): (debug|info|warning|error) : /y

export function readLibvirt(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(LIBVIRT, text, at)
  if (match === undefined) return false
  line.add('tid', match[1])
  setLevelOf(line, match[2] ?? '')
  line.message = text.slice(LIBVIRT.lastIndex)
  return true
}

/** Telegraf: ` E! [outputs.file] message` after the time. */
const TELEGRAF = / ([TDIWE])! /y

export function readTelegraf(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(TELEGRAF, text, at)
  if (match === undefined) return false
  setLevelOfLetter(line, match[1] ?? '')
  line.message = text.slice(TELEGRAF.lastIndex)
  return true
}

/** Gitea: ` routers/web.go:12:Run() [I] message` after the time. */
const GITEA = / (\S{1,200}\(\)) \[([TDIWECF])\] /y

export function readGitea(text: string, at: number, line: LogLine): boolean {
  // The search is faster than the expression.
  const match = text.includes('() [', at) ? matchAt(GITEA, text, at) : undefined
  if (match === undefined) return false
  line.add('caller', match[1])
  setLevelOfLetter(line, match[2] ?? '')
  line.message = text.slice(GITEA.lastIndex)
  return true
}
