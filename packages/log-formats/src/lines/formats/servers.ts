import { levelOf } from '@sluice/records'
import { matchAt } from './format.ts'
import { readInnerLevel } from './inner-level.ts'
import { setLevel, setLevelOf, setLevelOfLetter } from './level-words.ts'
import type { LogLine } from './log-line.ts'

/** nginx: ` [error] 1234#5: *6 message` after the time. */
const NGINX = / \[(\w{4,6})\] (\d+)#(\d+): (?:\*(\d+) )?/y
const NGINX_FIELDS = /, (client|server|request|upstream|host|referrer): (?:"((?:[^"\\]|\\.)*)"|([^,"]*))/g

export function readNginxError(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(NGINX, text, at)
  if (match === undefined || !setLevelOf(line, match[1] ?? '')) return false
  line.add('pid', match[2])
  line.add('tid', match[3])
  line.add('connection', match[4])
  line.message = text.slice(NGINX.lastIndex)
  // The message keeps these fields, which are only at its end.
  if (line.message.includes(', client: ')) {
    for (const [, name = '', quoted, plain] of line.message.matchAll(NGINX_FIELDS)) {
      line.add(name, quoted ?? plain)
    }
  }
  return true
}

/** Windows (CBS and DISM): `, Info                  CBS    message` after the time. */
const WINDOWS = /, (Info|Warning|Error|Perf|Debug) +(\S+) +/y

export function readWindows(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(WINDOWS, text, at)
  if (match === undefined) return false
  setLevelOf(line, match[1] ?? '')
  line.add('logger', match[2])
  line.message = text.slice(WINDOWS.lastIndex)
  return true
}

/**
 * Spring Boot: `  INFO 1234 --- [shop] [main] org.example.Shop : message` after the time. Spring Cloud Sleuth adds application,
 * trace and span before the process id.
 */
const SPRING =
  /\s+([A-Z]{4,5}) (?:\[([\w.-]{0,100})((?:,[\w.-]{0,100}){1,4})\] )?(\d+)? ?--- ((?:\[[^\]]{0,100}\] ?){1,4})\s*(\S+)\s*: /y
const SPRING_GROUP = /\[([^\]]*)\]/g

export function readSpringBoot(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(SPRING, text, at)
  if (match === undefined || !setLevelOf(line, match[1] ?? '')) return false
  if (match[2] !== undefined && match[2] !== '') line.service = match[2]
  const [, trace, span, isExported] = (match[3] ?? '').split(',')
  line.add('trace', trace)
  line.add('span', span)
  line.add('isExported', isExported)
  line.add('pid', match[4])
  const groups = [...(match[5] ?? '').matchAll(SPRING_GROUP)].map(([, group = '']) => group.trim())
  // With the name of the application, it is before the thread. A trace id may follow.
  if (groups.length > 1 && groups[0] !== '') line.service = groups[0]
  line.add('thread', groups.length > 1 ? groups[1] : groups[0])
  line.add('trace', groups[2])
  line.add('logger', match[6])
  line.message = text.slice(SPRING.lastIndex)
  return true
}

/** TensorFlow and etcd: `: I tensorflow/core.cc:142] message`, ` I | etcdserver: message` after the time. */
const LETTER = /:? ([VTDINWECF])(?: \| | (?=[\w./-]+:\d+\] ))/y
const LETTER_CALLER = /([\w./-]+:\d+)\] /y

export function readLetterAfterTime(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(LETTER, text, at)
  if (match === undefined) return false
  setLevelOfLetter(line, match[1] ?? '')
  const end = LETTER.lastIndex
  const caller = matchAt(LETTER_CALLER, text, end)
  line.add('caller', caller?.[1])
  line.message = text.slice(caller === undefined ? end : LETTER_CALLER.lastIndex)
  return true
}

/** ClickHouse: ` [ 1234 ] {query} <Information> Application: message` after the time. */
const CLICKHOUSE = / \[ (\d+) \] \{([^}]{0,100})\} <(\w{4,12})> (?:([\w().:*/<>-]+(?: \([\w.-]+\))?): )?/y

export function readClickHouse(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(CLICKHOUSE, text, at)
  if (match === undefined || !setLevelOf(line, match[3] ?? '')) return false
  line.add('tid', match[1])
  line.add('query', match[2])
  line.add('logger', match[4])
  line.message = text.slice(CLICKHOUSE.lastIndex)
  return true
}

/** Proxifier: ` chrome.exe *64 - message` after the time in brackets. */
const PROXIFIER = / ([^\s\\/:*?"<>|]+\.exe)( \*64)? - /y

export function readProxifier(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(PROXIFIER, text, at)
  if (match === undefined) return false
  line.service = match[1]
  line.add('architecture', match[2]?.trim())
  line.message = text.slice(PROXIFIER.lastIndex)
  return true
}

/** Huawei Health: `|Step_LSC|30002312|message` after the time. */
const BARS = /\|([\w.$-]{1,100})\|(\d{1,20})\|/y

export function readBars(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(BARS, text, at)
  if (match === undefined) return false
  line.add('logger', match[1])
  line.add('pid', match[2])
  line.message = text.slice(BARS.lastIndex)
  return true
}

/** Monolog: ` shop.ERROR: message` after the time in brackets. */
const MONOLOG = / ([\w-]+)\.([A-Z]{4,9}): /y

export function readMonolog(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(MONOLOG, text, at)
  if (match === undefined || !setLevelOf(line, match[2] ?? '')) return false
  line.add('logger', match[1])
  line.message = text.slice(MONOLOG.lastIndex)
  return true
}

/** WebSphere: ` 00000001 WsServerImpl  W   message` after the time in brackets. */
const WEBSPHERE = / ([0-9a-f]{8}) (\S{1,100}) {1,20}([FEWAICDRO]) {1,3}(?=\S)/y
/** `R` and `O` are what a program wrote to its outputs. */
const websphereLevels: Readonly<Record<string, string>> = {
  F: 'fatal',
  E: 'error',
  W: 'warning',
  A: 'audit',
  I: 'info',
  C: 'config',
  D: 'debug',
}

export function readWebSphere(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(WEBSPHERE, text, at)
  if (match === undefined) return false
  line.add('thread', match[1])
  line.add('logger', match[2])
  setLevelOf(line, websphereLevels[match[3] ?? ''] ?? '')
  line.message = text.slice(WEBSPHERE.lastIndex)
  return true
}

/** Sidekiq: ` pid=1 tid=abc class=Mail INFO: message` after the time. */
const PAIRS_FIRST = / (?:\w{1,20}=\S{1,100} ){1,8}(DEBUG|INFO|WARN|ERROR|FATAL): /y

export function readPairsFirst(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(PAIRS_FIRST, text, at)
  if (match === undefined) return false
  setLevelOf(line, match[1] ?? '')
  line.message = text.slice(at + 1)
  return true
}

/** PHP: ` PHP Warning:  message` after the time in brackets. */
const PHP =
  / PHP (Fatal error|Parse error|Warning|Notice|Deprecated|Strict Standards|Core error|Core warning|Recoverable fatal error): +/y

export function readPhp(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(PHP, text, at)
  if (match === undefined) return false
  const [, name = ''] = match
  const isError = /error/.test(name)
  setLevel(line, isError ? 'error' : /arning/.test(name) ? 'warn' : 'info', name)
  line.message = text.slice(PHP.lastIndex)
  return true
}

const ISO_SYSLOG =
  /\s+(?=[\w.:@%-]+ [A-Za-z_./][\w./@:-]{0,79}(?:\[\d+\])?: )([\w.:@%-]+) ([\w./@-]{1,80}?)(?:\[(\d+)\])?: /y

const ISO_PROGRAM = /\s+[\w.:@%-]{1,255} [A-Za-z_./][\w./@-]{0,79}\[\d{1,10}\]: /y

/** rsyslog and journalctl: ` host program[123]: message` after a time with an offset. */
export function readIsoSyslog(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(ISO_SYSLOG, text, at)
  if (match === undefined || levelOf(match[1] ?? '') !== undefined) return false
  line.message = text.slice(ISO_SYSLOG.lastIndex)
  if (match[3] === undefined && setLevelOf(line, match[2] ?? '')) {
    line.add('logger', match[1])
    return true
  }
  line.add('host', match[1])
  line.service = match[2]
  line.add('pid', match[3])
  readInnerLevel(line)
  return true
}

/** Whether a program with its process id is where syslog has it. Then the time needs no offset. */
export function hasIsoProgram(text: string, at: number): boolean {
  // The search is faster than the expression.
  return text.includes(']: ', at) && matchAt(ISO_PROGRAM, text, at) !== undefined
}

/** cloud-init: ` - util.py[WARNING]: message` after the time. */
const CLOUD_INIT = / - ([\w.-]{1,100})\[([A-Z]{4,8})\]: /y

export function readCloudInit(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(CLOUD_INIT, text, at)
  if (match === undefined || !setLevelOf(line, match[2] ?? '')) return false
  line.add('logger', match[1])
  line.message = text.slice(CLOUD_INIT.lastIndex)
  return true
}

/** The jobs of GitHub and Azure: ` ##[error]message` after the time. */
const JOB = / ##\[(error|warning|debug|notice)\]/y

export function readJob(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(JOB, text, at)
  if (match === undefined) return false
  setLevelOf(line, match[1] ?? '')
  line.message = text.slice(JOB.lastIndex)
  return true
}

/** Events of Windows as values between commas: `,Error,Service Control Manager,7000` after the time. */
const COMMA = /,\s?"?([A-Za-z]{3,11})"?,/y

export function readCommas(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(COMMA, text, at)
  if (match === undefined || !setLevelOf(line, match[1] ?? '')) return false
  line.message = text.slice(COMMA.lastIndex)
  return true
}

/** Java's own logging: ` org.example.Shop order` after a time with AM or PM. Level and message are in the next line. */
const JAVA_UTIL = /\s([\w$]{1,100}(?:\.[\w$]{1,100}){1,20}) ([\w$<>]{1,100})$/y

export function readJavaUtil(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(JAVA_UTIL, text, at)
  if (match === undefined) return false
  line.add('logger', match[1])
  line.add('method', match[2])
  line.message = text.slice(at + 1)
  line.awaitsMessage = true
  return true
}
