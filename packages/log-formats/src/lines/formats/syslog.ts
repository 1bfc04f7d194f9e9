import { levelOf } from '@sluice/records'
import { type LineFormat, matchAt } from './format.ts'
import { readHeader } from './header.ts'
import { readInnerLevel } from './inner-level.ts'
import { readUptime } from './kernel.ts'
import { setLevelOf, setSeverity } from './level-words.ts'
import { readProxyMessage } from './load-balancers.ts'
import { LogLine } from './log-line.ts'

const facilities =
  'kern user mail daemon auth syslog lpr news uucp cron authpriv ftp ntp audit alert clock ' +
  'local0 local1 local2 local3 local4 local5 local6 local7'
const facilityNames = facilities.split(' ')

/** A name of a host, and of BusyBox also the facility and severity. */
const HOST =
  /\s+(?!last message repeated)([\w.:@/%-]{1,255})(?: (\w{1,20})\.(emerg|alert|crit|err|warn|warning|notice|info|debug))?(?=\s|$)/y
/** A level where the host is: Tor and other programs write the time of syslog, and no host. */
const NO_HOST = / (?:\[ ?[A-Za-z]{4,8} ?\]|[A-Z]{4,8}:?) /y
/**
 * The program before the first colon, with its process id, and the level that macOS adds. The name may have blanks only if a
 * process id follows.
 */
const PROGRAM =
  /\s(?:([^\s:[\]]{1,200}(?: \d[\w.]{0,40})?)|([\w.][\w .()-]{0,60}(?=\[\d)))(?:\[(\d+|[\w.-]{1,40})\])?(?: ?\(([\w.[\]-]{1,120})\))?(?: ?<(\w{4,13})>)?:(?:\s|$)/y
/** Cisco: facility, severity, name of the message. */
const CISCO = /(?: [A-Z]{3,4})?:? %[A-Z][A-Z0-9_]*(?:-[A-Z0-9_]+)*-([0-7])-[A-Z0-9_]+:/y

/**
 * Reads host, program and message of syslog.
 *
 * @param at the position after the time
 */
export function readSyslogBody(text: string, at: number, line: LogLine): void {
  let end = at
  // The name of a host is rarely in capitals. The search is faster than the expression.
  const mayBeLevel = text.charAt(at + 1) === '[' || text.charCodeAt(at + 2) < 97
  if (mayBeLevel && matchAt(NO_HOST, text, at) !== undefined) {
    readHeader(text, at, line)
    if (line.level !== undefined) return
  }
  const host = matchAt(HOST, text, at)
  // Cisco ends the time with a colon, and has no host.
  if (host !== undefined && !(host[1] ?? '').startsWith('%')) {
    line.add('host', host[1])
    line.add('facility', host[2])
    if (host[3] !== undefined) setLevelOf(line, host[3])
    end = HOST.lastIndex
  }
  readProgram(text, end, line)
}

/** @param at the position before the blank before the program */
export function readProgram(text: string, at: number, line: LogLine): void {
  const cisco = matchAt(CISCO, text, at)
  if (cisco !== undefined) {
    line.message = text.slice(at).replace(/^(?: [A-Z]{3,4})?:?\s+/, '')
    if (line.level === undefined) setSeverity(line, Number(cisco[1]))
    return
  }
  const program = matchAt(PROGRAM, text, at)
  if (program === undefined) {
    line.message = text.slice(at).replace(/^:?\s+/, '')
    if (line.level === undefined) readInnerLevel(line)
    return
  }
  line.service = program[1] ?? program[2]
  line.add('pid', program[3])
  line.add('thread', program[4])
  if (program[5] !== undefined) setLevelOf(line, program[5])
  line.message = text.slice(PROGRAM.lastIndex)
  if (line.level === undefined) readInnerLevel(line)
  if (line.service === 'haproxy') readProxyMessage(line)
}

const PRIORITY = /<(\d{1,3})>(?:(1) )?/y
/** RFC 5424: host, program, process id and id of the message after the time. */
const HEADER_5424 = /(-|\S{20,40}) (\S{1,255}) (\S{1,48}) (\S{1,128}) (\S{1,32}) ?/y
const PRIORITY_MAX = 191

/** The number of the message, and a sign for the quality of the clock. */
const SEQUENCE = /(?:\d{1,10}: )?[*.]?(?=[A-Z][a-z]{2} [ \d]\d )/y

/** The position of the time in what Cisco's devices write, `29: *Nov 20 10:00:00.123: %LINK-3-UPDOWN: message`. */
export function skipSequence(text: string, at: number): number {
  return matchAt(SEQUENCE, text, at) === undefined ? at : SEQUENCE.lastIndex
}

/** RFC 3164 and RFC 5424 with the priority, as they are sent over the network. */
export const prioritySyslog: LineFormat = (text, { time }) => {
  const priority = matchAt(PRIORITY, text, 0)
  if (priority === undefined || Number(priority[1]) > PRIORITY_MAX) return undefined
  const line = new LogLine()
  const number = Number(priority[1])
  const start = PRIORITY.lastIndex
  setSeverity(line, number % 8)
  line.add('facility', facilityNames[Math.floor(number / 8)])
  if (priority[2] !== undefined && readHeader5424(text, start, line, (at) => time.read(text, at))) return line
  line.timestamp = time.read(text, skipSequence(text, start))
  if (line.timestamp === undefined && !readUptime(text, start, line)) line.message = text.slice(start)
  else if (line.timestamp !== undefined) readSyslogBody(text, time.end, line)
  return line
}

function readHeader5424(
  text: string,
  start: number,
  line: LogLine,
  readTime: (at: number) => string | undefined,
): boolean {
  const header = matchAt(HEADER_5424, text, start)
  if (header === undefined) return false
  const [, time = '-', host, program = '-', pid, messageId] = header
  const end = HEADER_5424.lastIndex
  if (time !== '-') {
    line.timestamp = readTime(start)
    if (line.timestamp === undefined) return false
  }
  line.add('host', host)
  if (program !== '-') line.service = program
  line.add('pid', pid)
  line.add('messageId', messageId)
  line.message = text.slice(readStructuredData(text, end, line)).replace(/^ ?\uFEFF?/, '')
  return true
}

const ELEMENT = /\[([^\s=\]"]{1,64})((?: [^\s=\]"]{1,64}="(?:[^"\\\]]|\\.)*")*)\]/y
const PARAMETER = / ([^\s=\]"]+)="((?:[^"\\\]]|\\.)*)"/g

/** RFC 5424 without the priority: rsyslog writes files like this, and names the offset of the time. */
const BODY_5424 =
  /\s(\w[\w.:-]{0,254}) ([^\s[]{1,48}) (\d{1,10}|-) (\S{1,32}) (?=- |-$|\[[^\s=\]"]{1,64}[ \]])/y

export function readBody5424(text: string, at: number, line: LogLine): boolean {
  const match = line.isZoned ? matchAt(BODY_5424, text, at) : undefined
  if (match === undefined) return false
  if (levelOf(match[1] ?? '') !== undefined || levelOf(match[2] ?? '') !== undefined) return false
  line.add('host', match[1])
  if (match[2] !== '-') line.service = match[2]
  line.add('pid', match[3])
  line.add('messageId', match[4])
  line.message = text.slice(readStructuredData(text, BODY_5424.lastIndex, line)).trimStart()
  return true
}

/** More is left in the message: the metadata of an entry has a limit. */
const STRUCTURED_DATA_CHARACTERS_MAX = 16_384

/** @returns the position after the elements */
function readStructuredData(text: string, start: number, line: LogLine): number {
  if (text.charAt(start) === '-') return start + 1
  let at = start
  const elements: [string, Record<string, string>][] = []
  for (
    let element = matchAt(ELEMENT, text, at);
    element !== undefined;
    element = matchAt(ELEMENT, text, at)
  ) {
    const parameters = [...(element[2] ?? '').matchAll(PARAMETER)].map(
      ([, name = '', value = '']): [string, string] => [name, value.replaceAll(/\\(["\\\]])/g, '$1')],
    )
    elements.push([element[1] ?? '', Object.fromEntries(parameters)])
    at = ELEMENT.lastIndex
    if (at - start > STRUCTURED_DATA_CHARACTERS_MAX) return start
  }
  if (elements.length > 0) {
    line.metadata ??= {}
    line.metadata['structuredData'] = Object.fromEntries(elements)
  }
  return at
}
