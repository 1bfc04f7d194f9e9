import { levelOf } from '@sluice/records'
import type { FormatContext, LineFormat } from './format.ts'
import { readHeader } from './header.ts'
import { setLevel, setLevelOf } from './level-words.ts'
import { LogLine } from './log-line.ts'
import { readLogcat } from './android.ts'
import { readMongo, readMySql, readPostgres } from './databases.ts'
import {
  readAsterisk,
  readBind,
  readCisco,
  readGitea,
  readGluster,
  readIcinga,
  readLibvirt,
  readTelegraf,
  readUnbound,
} from './network.ts'
import {
  hasIsoProgram,
  readBars,
  readCloudInit,
  readCommas,
  readJob,
  readClickHouse,
  readIsoSyslog,
  readJavaUtil,
  readLetterAfterTime,
  readMonolog,
  readNginxError,
  readPairsFirst,
  readPhp,
  readProxifier,
  readSpringBoot,
  readWebSphere,
  readWindows,
} from './servers.ts'
import { readRequest } from './access-log.ts'
import { readSquid } from './load-balancers.ts'
import { readMacUnified } from './mac.ts'
import { readBody5424, readSyslogBody } from './syslog.ts'

/** Reads what follows the time. Returns false, and changes nothing, if the line has another layout. */
type Layout = (text: string, at: number, line: LogLine) => boolean

/** The layouts after a time, a blank, and … */
const beforeBracket: readonly Layout[] = [readNginxError, readClickHouse, readPostgres]
const beforeDigit: readonly Layout[] = [readSquid, readMySql, readLogcat, readMacUnified, readPostgres]
const beforeOneLetter: readonly Layout[] = [
  readTelegraf,
  readMongo,
  readLetterAfterTime,
  readLogcat,
  readCloudInit,
  readJob,
]
const beforeWord: readonly Layout[] = [readSpringBoot, readGitea, readBind, readPairsFirst, readPostgres]
/** … and after a time and another character. */
const layouts: Readonly<Record<string, readonly Layout[]>> = {
  ':': [readLetterAfterTime, readLibvirt, readCisco, readPostgres],
  ',': [readWindows, readCommas],
  '|': [readBars],
}
const noLayouts: readonly Layout[] = []

function layoutsAt(text: string, at: number): readonly Layout[] {
  const code = text.charCodeAt(at)
  if (code !== BLANK && code !== TAB) return layouts[text.charAt(at)] ?? noLayouts
  let next = at + 1
  while (text.charCodeAt(next) === BLANK) next += 1
  const first = text.charCodeAt(next)
  if (first === OPEN_BRACKET) return beforeBracket
  if (first >= DIGIT_0 && first <= DIGIT_9) return beforeDigit
  return /[A-Za-z]/.test(text.charAt(next + 1)) ? beforeWord : beforeOneLetter
}
const TAB = 9
const BLANK = 32
const DIGIT_0 = 48
const DIGIT_9 = 57
const OPEN_BRACKET = 91

/** The layouts after a time in brackets. */
const bracketLayouts: readonly Layout[] = [
  readRequest,
  readMonolog,
  readPhp,
  readProxifier,
  readUnbound,
  readGluster,
  readAsterisk,
  readIcinga,
  readWebSphere,
]

/** What may follow a time. Otherwise the text only looks like one. */
const BOUNDARY = /[\s|:,;\-\][>)}"]/
/** The text between the time and its closing bracket is short. */
const BRACKET_CHARACTERS_MAX = 100

/** Lines that begin with a date and time, also in brackets. */
export const timed: LineFormat = (text, context) => readTimed(text, 0, context)

/** @param start the position of the time, or of its opening bracket */
export function readTimed(text: string, start: number, context: FormatContext): LogLine | undefined {
  const { time } = context
  const isInBracket = '[<('.includes(text.charAt(start))
  const at = isInBracket ? skipBlank(text, start + 1) : start
  const timestamp = time.read(text, at)
  if (timestamp === undefined) return undefined
  const { end, isSyslog } = time
  if (end < text.length && !BOUNDARY.test(text.charAt(end))) return undefined
  const line = new LogLine()
  line.timestamp = timestamp
  line.isZoned = time.isZoned
  if (isInBracket) readAfterBracket(text, end, line)
  else if (isSyslog) readSyslogBody(text, end, line)
  else readAfterTime(text, end, line, timestamp)
  return line
}

/** The forms `short-full` and `short-unix` of journalctl. */
const JOURNAL = /^(?:[A-Z][a-z]{2} \d{4}-|\d{10}\.\d{6} )/

function readAfterTime(text: string, end: number, line: LogLine, timestamp: string): void {
  for (const layout of layoutsAt(text, end)) if (layout(text, end, line)) return
  if (/[AaPp][Mm]$/.test(text.slice(end - 2, end)) && readJavaUtil(text, end, line)) return
  if (readBody5424(text, end, line)) return
  // Only with an offset, in the forms of journalctl, or with a process id: the layout is that of many sentences.
  if (
    (/[+-]\d\d:?\d\d$/.test(timestamp) || JOURNAL.test(text) || hasIsoProgram(text, end)) &&
    readIsoSyslog(text, end, line)
  )
    return
  readHeader(text, end, line)
}

function readAfterBracket(text: string, end: number, line: LogLine): void {
  const close = closingBracket(text, end)
  if (close === -1) return readHeader(text, end, line)
  readInBracket(text.slice(end, close), line)
  const after = close + 1
  // None of them has a bracket here.
  if (text.charAt(after + 1) !== '[') {
    for (const layout of bracketLayouts) if (layout(text, after, line)) return
  }
  if (line.level === undefined) readHeader(text, after, line)
  else line.message = text.slice(after).replace(/^:?\s+(?:-{1,2}\s+)?/, '')
}

function closingBracket(text: string, from: number): number {
  const last = Math.min(text.length, from + BRACKET_CHARACTERS_MAX)
  for (let at = from; at < last; at += 1) {
    const character = text.charAt(at)
    if (character === ']' || character === '>' || character === ')') return at
    if (character === '[') return -1
  }
  return -1
}

/**
 * Reads what the bracket of the time has in addition: `[… INFO shop::orders]` (Rust), `[…: INFO/MainProcess]` (Celery),
 * `[…:ERROR:file.cc(12)]` (Chromium).
 */
function readInBracket(text: string, line: LogLine): void {
  for (const word of text.split(/[\s,]+|(?<!:):(?!:)/)) {
    if (word === '') continue
    const [name = '', process] = word.split('/')
    const level = line.level === undefined ? levelOf(name) : undefined
    if (level !== undefined) {
      setLevel(line, level, name)
      line.add('thread', process)
    } else if (/^#?\d+$/.test(word)) line.add('pid', word.replace('#', ''))
    else if (/^[\w.-]+\.\w+[:(]\d+\)?$/.test(word)) line.add('caller', word)
    else line.add(line.level === undefined ? 'context' : 'logger', word)
  }
}

function skipBlank(text: string, at: number): number {
  return text.charAt(at) === ' ' ? at + 1 : at
}

/**
 * `INFO  [main] 2026-11-20 10:00:00,123 Shop.java:12 - message` (Cassandra), `[INFO] 2026-…`, `INFO - 2026-…`, `WARN[2026-…] message`
 * (logrus).
 */
const LEVEL_FIRST =
  /(?:\[ ?([A-Za-z]{3,9}) ?\]|([A-Za-z]{3,11}))(?:(?::| -| \|)?\s{1,5}(?:\[([^\]]{1,100})\]\s{1,3})?(?:- )?(?=\[?\d)|[|:](?=\d{4}-)|\|(?=\d)|(?=\[\d{4}-))/y

/** Lines that begin with a level, and have a date and time directly after it. */
export const levelFirst: LineFormat = (text, context) => {
  LEVEL_FIRST.lastIndex = 0
  const match = LEVEL_FIRST.exec(text)
  const word = match?.[1] ?? match?.[2] ?? ''
  if (match === null || levelOf(word) === undefined) return undefined
  const start = LEVEL_FIRST.lastIndex
  const line = readTimed(text, start, context)
  if (line === undefined) return undefined
  if (line.level === undefined) setLevelOf(line, word)
  line.add('thread', match[3])
  const [location, caller] = /^([\w$.-]+:\d+) - /.exec(line.message) ?? ['']
  line.add('caller', caller)
  line.message = line.message.slice(location.length)
  return line
}
