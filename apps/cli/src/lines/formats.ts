import { isPlainObject, isSynonym, type Level, levelOf, type Members, setMember } from '@sluice/records'
import { parseJsonExactly } from '@sluice/rows'
import { type TimeReader, timeForms, timeGroup } from './times.ts'

type Groups = Readonly<Record<string, string | undefined>>

export interface LogLine {
  readonly format: LineFormat
  timestamp?: string | undefined
  level?: Level | undefined
  service?: string
  pathname?: string
  message: string
  readonly metadata: Members
  /** The members of a line that is a JSON object, or pairs of keys and values. It has nothing else. */
  record?: Members | undefined
}

export interface LineFormat {
  readonly name: string
  readonly example: string
  /**
   * The groups `time`, `level`, `service` and `message` become the members of the line. Any other group becomes metadata under
   * its own name. Only `translate` reads a group whose name begins with `_`. A line whose time or level is not valid has another format.
   */
  readonly pattern: RegExp
  readonly translate?: (line: LogLine, groups: Groups) => void
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
const PRIORITY = String.raw`<(?<_priority>\d{1,3})>`
const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`

const sequence = (...parts: readonly string[]): RegExp => new RegExp(`^${parts.join('')}`, 's')

export const formats: readonly LineFormat[] = [
  {
    name: 'JSON',
    example: '{"time":"2026-11-20T10:00:00Z","severity":"WARN","msg":"Low on stock","orderId":7}',
    pattern: /^\s*\{/,
    members: jsonMembers,
  },
  {
    name: 'logfmt, and slog as text',
    example: 'time=2026-11-20T10:00:00Z level=WARN msg="Low on stock" orderId=7',
    pattern: /^[\w.@/-]{1,64}=/,
    members: logfmtMembers,
  },
  {
    name: 'syslog, RFC 5424',
    example: '<165>1 2026-11-20T10:00:00.003Z web1 shop 4711 ID47 [order@1 id="7"] Low on stock',
    pattern: sequence(
      PRIORITY,
      String.raw`1 (?:-|(?<time>\S{20,40})) (?<host>\S{1,255}) (?<service>\S{1,48}) (?<pid>\S{1,128}) (?<messageId>\S{1,32})`,
      String.raw` (?:-|(?<_data>(?:\[(?:[^\]"\\]|${QUOTED})*\]){1,16}))(?: \uFEFF?|$)`,
      MESSAGE,
    ),
    translate: (made, groups) => {
      translatePriority(made, groups)
      const { _data: data = '' } = groups
      if (data.length > VALUE_CHARACTERS_MAX) made.message = `${data} ${made.message}`
      else addMetadata(made.metadata, 'structuredData', data)
    },
  },
  {
    name: 'syslog, RFC 3164',
    example: 'Nov 20 10:00:00 web1 sshd[4711]: error: maximum authentication attempts exceeded',
    pattern: sequence(
      `(?:${PRIORITY})?`,
      timeGroup(timeForms.syslog),
      String.raw` (?<host>[\w.:@%-]{1,255}) (?:${PROGRAM})?`,
      SYSLOG_MESSAGE,
    ),
    translate: translatePriority,
  },
  {
    name: 'syslog with ISO 8601',
    example: '2026-11-20T10:00:00.123456+01:00 web1 systemd[1]: Started shop.service.',
    pattern: sequence(
      `(?:${PRIORITY})?(?<time>${DATE}${CLOCK}${OFFSET})`,
      String.raw` (?!(?:${LEVELS})\b)(?<host>[\w.:@%-]{1,255}) ${PROGRAM}`,
      SYSLOG_MESSAGE,
    ),
    translate: translatePriority,
  },
  {
    name: 'access log of Apache and nginx',
    example:
      '192.0.2.7 - ada [20/Nov/2026:10:00:00 +0100] "GET /orders?id=7 HTTP/1.1" 503 2326 "https://shop.example/" "curl/8"',
    pattern: sequence(
      String.raw`(?:(?<server>[\w.:-]{1,255}) )?(?<client>[\w.:%-]{1,255}) \S{1,255} (?<user>\S{1,255}|${QUOTED}) \[${timeGroup(timeForms.access)}\] `,
      String.raw`(?<message>"(?:(?<method>[A-Z]{3,20}) (?<_target>[^\s"]{1,8000}) (?<protocol>HTTP\/[\d.]{1,3})"|(?:[^"\\]|\\.)*") `,
      String.raw`(?<_status>\d{3}) (?:(?<_bytes>\d{1,15})|-)(?: "(?<referrer>(?:[^"\\]|\\.)*)" "(?<userAgent>(?:[^"\\]|\\.)*)")?.*)`,
    ),
    translate: translateRequest,
  },
  {
    name: 'error log of nginx',
    example:
      '2026/11/20 10:00:00 [error] 31#32: *7 open() "/x" failed, client: 192.0.2.7, server: shop.example, request: "GET /x HTTP/1.1"',
    pattern: sequence(
      TIME,
      String.raw` ${LEVEL_IN_BRACKETS} (?<pid>\d{1,10})#(?<tid>\d{1,10}): (?:\*(?<connection>\d{1,20}) )?`,
      MESSAGE,
    ),
  },
  {
    name: 'error log of Apache',
    example:
      '[Fri Nov 20 10:00:00.123456 2026] [proxy:error] [pid 31:tid 140] [client 192.0.2.7:4711] AH00898: Error reading from remote server',
    pattern: sequence(
      String.raw`\[${timeGroup(timeForms.apache)}\] \[(?:(?<module>[\w-]{0,40}):)?(?<level>[a-z]{4,6})\d?\] `,
      String.raw`(?:\[pid (?<pid>\d{1,10})(?::tid (?<tid>\d{1,20}))?\] )?(?:\[client (?<client>[^\]\s]{1,255})\] )?`,
      MESSAGE,
    ),
  },
  {
    name: 'klog and glog',
    example: 'W1120 10:00:00.123456    4711 server.go:12] Low on stock',
    pattern: sequence(
      `(?<_letter>[IWEFD])${timeGroup(timeForms.klog)}`,
      String.raw`\s{1,40}(?<tid>\d{1,20}) (?<caller>[^\s:\]]{1,200}:\d{1,7})\] ?`,
      MESSAGE,
    ),
    translate: (made, { _letter: letter = '' }) => setLevel(made, letterLevels[letter] ?? ''),
  },
  {
    name: 'Spring Boot',
    example:
      '2026-11-20T10:00:00.123+01:00  WARN 4711 --- [shop] [           main] org.example.Shop : Low on stock',
    pattern: sequence(
      TIME,
      String.raw`\s{1,40}${LEVEL} (?<pid>\d{1,10}) --- (?:\[(?<service>[^\]]{0,100})\] )?\[\s{0,40}(?<thread>[^\]]{0,160})\] (?<logger>\S{1,200})\s{0,60}: `,
      MESSAGE,
    ),
  },
  {
    name: 'Log4j and Logback: level, thread, logger',
    example: '2026-11-20 10:00:00,123 WARN  [main] org.example.Shop - Low on stock',
    pattern: sequence(TIME_OR_CLOCK, GAP, ANY_LEVEL, GAP, THREAD, GAP, LOGGER, MESSAGE),
  },
  {
    name: 'Log4j and Logback: thread, level, logger; Gunicorn',
    example: '10:00:00.123 [main] WARN  org.example.Shop - Low on stock',
    pattern: sequence(TIME_OR_CLOCK, GAP, THREAD, GAP, ANY_LEVEL, GAP, LOGGER, MESSAGE),
  },
  {
    name: 'logging of Python',
    example: '2026-11-20 10:00:00,123 - shop.orders - WARNING - Low on stock',
    pattern: sequence(TIME, String.raw` - (?<logger>[\w.-]{1,200}) - ${LEVEL} - `, MESSAGE),
  },
  {
    name: 'logging of Python, without a format',
    example: 'WARNING:shop.orders:Low on stock',
    pattern: sequence(
      '(?<level>CRITICAL|ERROR|WARNING|INFO|DEBUG):',
      String.raw`(?<logger>[\w.-]{1,200}):`,
      MESSAGE,
    ),
  },
  {
    name: 'a time and a level',
    example: '2026-11-20T10:00:00.123Z WARN shop::orders: Low on stock',
    pattern: sequence(TIME_OR_CLOCK, GAP, ANY_LEVEL, GAP, LOGGER, MESSAGE),
  },
  { name: 'a time', example: '2026-11-20 10:00:00 Low on stock', pattern: sequence(TIME, GAP, MESSAGE) },
  {
    name: 'a level in brackets',
    example: '[WARN] Low on stock',
    pattern: sequence(LEVEL_IN_BRACKETS, GAP, MESSAGE),
  },
  {
    name: 'a crash',
    example: 'panic: no stock',
    pattern: sequence(
      '(?<message>(?:panic: |fatal error: |FATAL ERROR: |Exception in thread |',
      String.raw`thread '[^']{0,200}' (?:\(\d{1,10}\) )?panicked at |Unhandled exception\. |terminate called |Segmentation fault).*)`,
    ),
    translate: (made) => setLevel(made, 'error'),
    isCrash: true,
  },
  {
    name: 'a level',
    example: 'WARN: Low on stock',
    pattern: sequence(LEVEL, String.raw`(?::| -)\s{1,40}`, MESSAGE),
    isWeak: true,
  },
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

function translatePriority(made: LogLine, { _priority: priority }: Groups): void {
  if (priority === undefined) return
  setLevel(made, severities[Number(priority) % 8] ?? '')
  addMetadata(made.metadata, 'facility', facilities[Math.floor(Number(priority) / 8)])
}

function translateRequest(made: LogLine, groups: Groups): void {
  const { _target: target, _status: status = '', _bytes: bytes } = groups
  const { metadata } = made
  setLevel(made, status >= '500' ? 'error' : status >= '400' ? 'warn' : 'info')
  metadata['status'] = Number(status)
  if (bytes !== undefined) metadata['bytes'] = Number(bytes)
  if (target?.startsWith('/') !== true) return
  const [pathname = '', query] = target.split(/\?(.*)/s, 2)
  made.pathname = pathname
  addMetadata(metadata, 'query', query)
}

const letterLevels: Groups = { D: 'debug', I: 'info', W: 'warning', E: 'error', F: 'fatal' }

/** Keeps the word if it says more than the level. @returns whether the level is known */
function setLevel(made: LogLine, word: string): boolean {
  made.level = levelOf(word)
  if (isSynonym(word)) delete made.metadata['originalLevel']
  else made.metadata['originalLevel'] = word
  return made.level !== undefined
}

/** Only requests are longer. Four such values fit into the metadata of an entry, and the message has all of them. */
const VALUE_CHARACTERS_MAX = 8_192

function addMetadata(metadata: Members, name: string, value: string | undefined): void {
  if (value === undefined || value === '' || value === '-' || value.length > VALUE_CHARACTERS_MAX) return
  metadata[name] = value.trimEnd()
}

function readLine(line: string, format: LineFormat, times: TimeReader): LogLine | undefined {
  const match = format.pattern.exec(line)
  if (match === null) return undefined
  const made: LogLine = { format, message: line, metadata: {} }
  if (format.members !== undefined) {
    made.record = format.members(line)
    return made.record === undefined ? undefined : made
  }
  const groups = match.groups ?? {}
  for (const name of Object.keys(groups)) {
    const value = groups[name]
    if (value === undefined) continue
    if (name === 'message') made.message = value
    else if (name === 'time') {
      made.timestamp = times.read(value)
      if (made.timestamp !== undefined) continue
      // Only the time of the day, or no valid time.
      if (!/^\d\d:/.test(value)) return undefined
      made.metadata['time'] = value
    } else if (name === 'level') {
      if (!setLevel(made, value)) return undefined
    } else if (name === 'service') {
      if (value !== '-' && value !== '') made.service = value
    } else if (!name.startsWith('_')) addMetadata(made.metadata, name, value)
  }
  format.translate?.(made, groups)
  return made
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
