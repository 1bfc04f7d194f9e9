import { isPlainObject, type Level, type Members, readLevelName, setMember } from '@sluice/records'
import { parseJsonExactly } from '@sluice/rows'
import { type TimeReader, timeForms, timeGroup } from './times.ts'

type Groups = Readonly<Record<string, string | undefined>>

export interface LogLine {
  readonly format: LineFormat
  timestamp?: string | undefined
  level?: Level | undefined
  service?: string | undefined
  pathname?: string | undefined
  message: string
  readonly metadata: Members
  /** The members of a line that is a JSON object, or pairs of keys and values. It has nothing else. */
  record?: Members | undefined
}

export interface LineFormat {
  readonly name: string
  /** The groups are those that `readLine` and `levelWordOf` know. Any other group becomes metadata under its own name. */
  readonly pattern: RegExp
  readonly members?: (line: string) => Members | undefined
  /** Has a level and no time. In a file with times, such a line belongs to the line before. */
  readonly isWeak?: true
  readonly isCrash?: true
}

const CLOCK = String.raw`\d\d:\d\d:\d\d(?:[.,]\d{1,9})?`
const OFFSET = String.raw`(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)|[+-]\d\d)(?!\w)`
const DATE = String.raw`\d{4}[-/]\d\d[-/]\d\d[T ]`
/** ISO 8601 and its relatives: a blank before the clock, slashes in the date, a comma before the fraction. */
const TIME = String.raw`\[?(?<time>${DATE}${CLOCK}(?:${OFFSET})?)\]?`
/** The same, or only the time of the day, as Logback writes it without a configuration. */
const TIME_OR_CLOCK = String.raw`\[?(?<time>(?:${DATE})?${CLOCK}(?:${OFFSET})?)\]?`

const LEVELS =
  'TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|CRITICAL|CRIT|FATAL|SEVERE|ALERT|EMERG|EMERGENCY|PANIC|' +
  'FINE|FINER|FINEST|DBG|INF|WRN|FTL'
/** In lower case only the words that no sentence begins with. */
const LEVEL = String.raw`(?<level>(?:${LEVELS}|trace|debug|info|warn|warning|error|critical|fatal)(?![\w.@/-]))`
const LEVEL_IN_BRACKETS = String.raw`[[<] ?(?<level>(?i:${LEVELS})) ?[\]>]`
const ANY_LEVEL = `(?:${LEVEL_IN_BRACKETS}|${LEVEL})`

const THREAD = String.raw`\[(?:(?<pid>\d{1,10})|\s{0,40}(?<thread>[^\]]{1,160}))\]`
const LOGGER = String.raw`(?:(?<logger>[\w.$:/#-]{1,200}) - |(?<logger>[\w$]{1,100}(?:(?:\.|::)[\w$]{1,100}){1,20})\s{0,40}: )?`
const GAP = String.raw`(?:\s{0,20}[|:,-]{1,3}(?=\s|$))?(?:\s{1,40}|$|(?=\[))`
const MESSAGE = '(?<message>.*)'
/** A message of syslog may begin with a level. The level stays in the message. */
const SYSLOG_MESSAGE = String.raw`(?<message>(?:(?<level>(?i:${LEVELS})): |${LEVEL_IN_BRACKETS} )?.*)`
const PROGRAM = String.raw`(?<service>[^\s:[\]]{1,100})(?:\[(?<pid>[\w.-]{1,40})\])?:(?: |$)`
const PRIORITY = String.raw`<(?<priority>\d{1,3})>`
const HOST = String.raw`(?<host>[\w.:@%-]{1,255})`
const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`

const sequence = (...parts: readonly string[]): RegExp => new RegExp(`^${parts.join('')}`, 's')

/** A line has the first format that fits it. `formats.test.ts` has an example of each. */
export const formats: readonly LineFormat[] = [
  { name: 'JSON', pattern: /^\s*\{/, members: jsonMembers },
  { name: 'logfmt, and slog as text', pattern: /^[\w.@/-]{1,64}=/, members: logfmtMembers },
  {
    name: 'syslog, RFC 5424',
    pattern: sequence(
      PRIORITY,
      String.raw`1 (?:-|(?<time>\S{20,40})) (?<host>\S{1,255}) (?<service>\S{1,48}) (?<pid>\S{1,128}) (?<messageId>\S{1,32})`,
      String.raw` (?:-|(?<structuredData>(?:\[(?:[^\]"\\]|${QUOTED})*\]){1,16}))(?: \uFEFF?|$)`,
      MESSAGE,
    ),
  },
  {
    name: 'syslog, RFC 3164 or with ISO 8601',
    pattern: sequence(
      `(?:${PRIORITY})?(?:${timeGroup(timeForms.syslog)} ${HOST} (?:${PROGRAM})?|`,
      String.raw`(?<time>${DATE}${CLOCK}${OFFSET}) (?!(?:${LEVELS})\b)${HOST} ${PROGRAM})`,
      SYSLOG_MESSAGE,
    ),
  },
  {
    name: 'access log of Apache and nginx',
    pattern: sequence(
      String.raw`(?:(?<server>[\w.:-]{1,255}) )?(?<client>[\w.:%-]{1,255}) \S{1,255} (?<user>\S{1,255}|${QUOTED}) \[${timeGroup(timeForms.access)}\] `,
      String.raw`(?<message>"(?:(?<method>[A-Z]{3,20}) (?<target>[^\s"]{1,8000}) (?<protocol>HTTP\/[\d.]{1,3})"|(?:[^"\\]|\\.)*") `,
      String.raw`(?<status>\d{3}) (?:(?<bytes>\d{1,15})|-)(?: "(?<referrer>(?:[^"\\]|\\.)*)" "(?<userAgent>(?:[^"\\]|\\.)*)")?.*)`,
    ),
  },
  {
    name: 'error log of nginx',
    pattern: sequence(
      TIME,
      String.raw` ${LEVEL_IN_BRACKETS} (?<pid>\d{1,10})#(?<tid>\d{1,10}): (?:\*(?<connection>\d{1,20}) )?`,
      MESSAGE,
    ),
  },
  {
    name: 'error log of Apache',
    pattern: sequence(
      String.raw`\[${timeGroup(timeForms.apache)}\] \[(?:(?<module>[\w-]{0,40}):)?(?<level>[a-z]{4,6})\d?\] `,
      String.raw`(?:\[pid (?<pid>\d{1,10})(?::tid (?<tid>\d{1,20}))?\] )?(?:\[client (?<client>[^\]\s]{1,255})\] )?`,
      MESSAGE,
    ),
  },
  {
    name: 'klog and glog',
    pattern: sequence(
      `(?<letter>[IWEFD])${timeGroup(timeForms.klog)}`,
      String.raw`\s{1,40}(?<tid>\d{1,20}) (?<caller>[^\s:\]]{1,200}:\d{1,7})\] ?`,
      MESSAGE,
    ),
  },
  {
    name: 'Spring Boot',
    pattern: sequence(
      TIME,
      String.raw`\s{1,40}${LEVEL} (?<pid>\d{1,10}) --- (?:\[(?<service>[^\]]{0,100})\] )?\[\s{0,40}(?<thread>[^\]]{0,160})\] (?<logger>\S{1,200})\s{0,60}: `,
      MESSAGE,
    ),
  },
  {
    name: 'logging of Python',
    pattern: sequence(TIME, String.raw` - (?<logger>[\w.-]{1,200}) - ${LEVEL} - `, MESSAGE),
  },
  {
    name: 'logging of Python, without a format',
    pattern: sequence(String.raw`(?<level>${LEVELS}):(?<logger>[\w.-]{1,200}):`, MESSAGE),
  },
  {
    name: 'a time and a level, and the thread and logger of Log4j, Logback or Gunicorn',
    pattern: sequence(
      `${TIME_OR_CLOCK}${GAP}`,
      `(?:${ANY_LEVEL}${GAP}${THREAD}${GAP}|${THREAD}${GAP}${ANY_LEVEL}${GAP}|${ANY_LEVEL}${GAP})`,
      LOGGER,
      MESSAGE,
    ),
  },
  { name: 'a time', pattern: sequence(TIME, GAP, MESSAGE) },
  { name: 'a level in brackets', pattern: sequence(LEVEL_IN_BRACKETS, GAP, MESSAGE) },
  {
    name: 'a crash',
    pattern: sequence(
      '(?<message>(?:panic: |fatal error: |FATAL ERROR: |Exception in thread |',
      String.raw`thread '[^']{0,200}' (?:\(\d{1,10}\) )?panicked at |Unhandled exception\. |terminate called |Segmentation fault).*)`,
    ),
    isCrash: true,
  },
  { name: 'a level', pattern: sequence(LEVEL, String.raw`(?::| -)\s{1,40}`, MESSAGE), isWeak: true },
]

/** Names with an escape, and numbers that JavaScript may be unable to represent: see `parseJsonExactly`. */
const NEEDS_EXACT_PARSER = /\\|\d{16}|\d[eE]/

function jsonMembers(text: string): Members | undefined {
  try {
    // JSON.parse takes a fraction of the time.
    const value: unknown = NEEDS_EXACT_PARSER.test(text) ? parseJsonExactly(text) : JSON.parse(text)
    return isPlainObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const PAIR = /\s*([^\s="]{1,256})=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))(?=\s|$)/y
/** Without one of these, pairs of keys and values may be part of any message. */
const KNOWN = /(?:^|\s)(?:level|lvl|severity|msg|message|time|ts|t|timestamp)=/

function logfmtMembers(text: string): Members | undefined {
  if (!KNOWN.test(text)) return undefined
  const members: Members = {}
  let at = 0
  for (;;) {
    PAIR.lastIndex = at
    const [, name, quoted, plain = ''] = PAIR.exec(text) ?? []
    if (name === undefined) break
    // JSON takes the last of several values of a name. The others would be lost.
    if (Object.hasOwn(members, name)) return undefined
    setMember(members, name, quoted === undefined ? numberOrString(plain) : unescape(quoted))
    at = PAIR.lastIndex
  }
  return Object.keys(members).length >= 2 && text.slice(at).trim() === '' ? members : undefined
}

/** A number, if JavaScript would write it in the same way: then it keeps all its digits. */
function numberOrString(text: string): number | string {
  const number = Number(text)
  return text !== '' && Number.isFinite(number) && String(number) === text ? number : text
}

function unescape(text: string): string {
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text.replaceAll(/\\(["\\])/g, '$1')
  }
}

const facilities = (
  'kern user mail daemon auth syslog lpr news uucp cron authpriv ftp ntp audit alert clock ' +
  'local0 local1 local2 local3 local4 local5 local6 local7'
).split(' ')
const severities = ['emergency', 'alert', 'critical', 'error', 'warning', 'notice', 'informational', 'debug']

const glogLevels = ['debug', 'info', 'warning', 'error', 'fatal']

/** The word that says the level of a line. */
function levelWordOf({ priority, letter, status, level }: Groups): string | undefined {
  if (priority !== undefined) return severities[Number(priority) % 8]
  if (letter !== undefined) return glogLevels.find((name) => name.startsWith(letter.toLowerCase()))
  if (status === undefined) return level
  return status >= '500' ? 'error' : status >= '400' ? 'warn' : 'info'
}

/** Only requests are longer. Four such values fit into the metadata of an entry, and the message has all of them. */
const VALUE_CHARACTERS_MAX = 8_192

function addMetadata({ metadata }: LogLine, name: string, value = ''): void {
  if (value === '' || value === '-' || value.length > VALUE_CHARACTERS_MAX) return
  metadata[name] = name === 'status' || name === 'bytes' ? Number(value) : value.trimEnd()
}

/** The groups that are more than metadata. */
const fields = new Set(['time', 'priority', 'letter', 'level', 'service', 'target', 'message'])

/** A line whose time or level is not valid has another format. */
function readLine(text: string, format: LineFormat, times: TimeReader): LogLine | undefined {
  const match = format.pattern.exec(text)
  if (match === null) return undefined
  if (format.members !== undefined) {
    const record = format.members(text)
    return record && { format, message: text, metadata: {}, record }
  }
  const groups: Groups = match.groups ?? {}
  const { time, priority, service, target, structuredData: data = '', message = text } = groups
  const timestamp = time === undefined ? undefined : times.read(time)
  const isTimeOfDay = timestamp === undefined && time !== undefined
  if (isTimeOfDay && !/^\d\d:/.test(time)) return undefined
  const word = format.isCrash === true ? 'error' : levelWordOf(groups)
  const reading = word === undefined ? undefined : readLevelName(word)
  if (word !== undefined && reading === undefined) return undefined
  const [pathname, query] = target?.startsWith('/') === true ? target.split(/\?(.*)/s, 2) : []
  const line: LogLine = { format, timestamp, level: reading?.level, pathname, message, metadata: {} }
  if (service !== '-' && service !== '') line.service = service
  if (data.length > VALUE_CHARACTERS_MAX) line.message = `${data} ${message}`
  for (const name of Object.keys(groups)) if (!fields.has(name)) addMetadata(line, name, groups[name])
  addMetadata(line, 'query', query)
  if (isTimeOfDay) addMetadata(line, 'time', time)
  if (priority !== undefined) addMetadata(line, 'facility', facilities[Math.floor(Number(priority) / 8)])
  // The word is kept if it says more than the level.
  if (reading?.isExact === false) addMetadata(line, 'originalLevel', word)
  return line
}

/** Colours and other sequences for terminals. The expression of `node:util` takes a time in proportion to the square of a hostile line. */
// oxlint-disable-next-line no-control-regex -- sequences for terminals begin with a control character
const TERMINAL_SEQUENCE = /\u001B\[[\d;?]{0,20}[A-Za-z]/g

export function parseLine(line: string, times: TimeReader): LogLine | undefined {
  const plain = line.includes('\u001B[') ? line.replaceAll(TERMINAL_SEQUENCE, '') : line
  for (const format of formats) {
    const made = readLine(plain, format, times)
    if (made !== undefined) return made
  }
  return undefined
}
