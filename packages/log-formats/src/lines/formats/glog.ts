import { type LineFormat, matchAt } from './format.ts'
import { setLevelOf, setLevelOfLetter } from './level-words.ts'
import { skipSeparators } from './header-parts.ts'
import { lineWithTime, LogLine } from './log-line.ts'

/** The letter, and the date without separators: with a year of four digits, of two, or without one. */
const DATE = /([IWEFD])(?:(\d{4})(?=\d{4} )|(\d{2})(?=\d{4} ))?(\d\d)(\d\d) (?=\d\d:\d\d:\d\d)/y
const CLOCK = /(\d\d:\d\d:\d\d(?:\.\d{1,9})?)\s+(\d+)\s+([^\s:\]]+:\d+)(?:\]|\s⋮)\s?/y

/** glog, klog and CockroachDB: `I0102 15:04:05.000000    1234 server.go:12] message`. */
export const glog: LineFormat = (text, { time }) => {
  const date = matchAt(DATE, text, 0)
  if (date === undefined) return undefined
  const clock = matchAt(CLOCK, text, DATE.lastIndex)
  if (clock === undefined) return undefined
  const [, letter = '', year, shortYear, month = '', day = ''] = date
  const fullYear = year ?? (shortYear === undefined ? undefined : `20${shortYear}`)
  const prefix = fullYear === undefined ? '' : `${fullYear}-`
  const line = new LogLine()
  line.timestamp = time.read(`${prefix}${month}-${day} ${clock[1]}`, 0)
  if (line.timestamp === undefined) return undefined
  setLevelOfLetter(line, letter)
  line.add('tid', clock[2])
  line.add('caller', clock[3])
  line.message = text.slice(CLOCK.lastIndex)
  return line
}

/** Chromium: `[4711:4712:1120/100000.123456:ERROR:file.cc(12)] message`. */
const CHROMIUM =
  /\[(?:(\d{1,10}):(\d{1,20}):)?(\d\d)(\d\d)\/(\d\d)(\d\d)(\d\d)(\.\d{1,9})?:([A-Z]{4,8})\d?:([^\]]{1,200})\] ?/y

export const chromium: LineFormat = (text, { time }) => {
  const match = matchAt(CHROMIUM, text, 0)
  if (match === undefined) return undefined
  const [, pid, tid, month, day, hour, minute, second, fraction = '', level = '', caller] = match
  const end = CHROMIUM.lastIndex
  const line = new LogLine()
  line.timestamp = time.read(`${month}-${day} ${hour}:${minute}:${second}${fraction}`, 0)
  if (line.timestamp === undefined) return undefined
  setLevelOf(line, level)
  line.add('pid', pid)
  line.add('tid', tid)
  line.add('caller', caller)
  line.message = text.slice(end)
  return line
}

/** Ruby: `I, [2026-11-20T10:00:00.123456 #1234]  INFO -- shop: message`. CUPS: `E [20/Nov/2026:10:00:00 +0000] message`. */
const LETTER = /([VTDINWECFAU])(?:, |\s)\[(?=\d)/y
const RUBY = / ?(?:#(\d+))?\]\s+([A-Z]{3,5}) -- ([^:]{0,200}): ?/y

export const letterFirst: LineFormat = (text, { time }) => {
  const letter = matchAt(LETTER, text, 0)
  if (letter === undefined) return undefined
  const line = new LogLine()
  line.timestamp = time.read(text, LETTER.lastIndex)
  if (line.timestamp === undefined) return undefined
  setLevelOfLetter(line, letter[1] ?? '')
  const ruby = matchAt(RUBY, text, time.end)
  if (ruby !== undefined) {
    line.add('pid', ruby[1])
    if (ruby[3] !== undefined && ruby[3].trim() !== '') line.service = ruby[3].trim()
    line.message = text.slice(RUBY.lastIndex)
    return line
  }
  if (text.charAt(time.end) !== ']') return undefined
  line.message = text.slice(time.end + 1).trimStart()
  return line
}

/** qBittorrent, Murmur and others: `(W) 2026-11-20T10:00:00 - message`, `<W>2026-11-20 10:00:00.123 message`, `I 2026-11-20 10:00:00`. */
const MARK = /(?:\(([A-Z])\) |<([A-Z])>|([TDINWECF]) )(?=\d{4}-\d\d-\d\d[T ])/y

export const markFirst: LineFormat = (text, { time }) => {
  const mark = matchAt(MARK, text, 0)
  if (mark === undefined) return undefined
  const line = lineWithTime(text, MARK.lastIndex, time)
  if (line === undefined) return undefined
  setLevelOfLetter(line, mark[1] ?? mark[2] ?? mark[3] ?? '')
  if (line.level === undefined) return undefined
  line.message = text.slice(skipSeparators(text, time.end))
  return line
}

/** Jupyter and Tornado: `[W 2026-11-20 10:00:00.123 ServerApp] message`, `[I 261120 10:00:00 web:1971] message`, `[I 10:00:00.123 LabApp]`. */
const TORNADO = /\[([DIWEC]) (?=\d)/y
const TORNADO_CLOCK = /\d\d:\d\d:\d\d(?:\.\d{1,6})?(?= )/y
const TORNADO_NAME = / ([\w.:-]{1,100})\] ?/y

export const tornado: LineFormat = (text, { time }) => {
  const letter = matchAt(TORNADO, text, 0)
  if (letter === undefined) return undefined
  const start = TORNADO.lastIndex
  const line = new LogLine()
  line.timestamp = time.read(text, start)
  const clock = line.timestamp === undefined ? matchAt(TORNADO_CLOCK, text, start) : undefined
  if (line.timestamp === undefined && clock === undefined) return undefined
  const name = matchAt(TORNADO_NAME, text, clock === undefined ? time.end : TORNADO_CLOCK.lastIndex)
  if (name === undefined) return undefined
  setLevelOfLetter(line, letter[1] ?? '')
  line.add('time', clock?.[0])
  line.add('logger', name[1])
  line.message = text.slice(TORNADO_NAME.lastIndex)
  return line
}
