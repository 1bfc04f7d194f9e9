import { levelOf } from '../../levels.ts'
import { matchAt } from './format.ts'
import { setLevel, setLevelOfLetter, setSeverity } from './level-words.ts'
import type { LogLine } from './log-line.ts'

/** More of a message is not searched. */
const SEARCHED_CHARACTERS = 300

const WORD = '(?:trace|debug[1-3]?|info|notice|warn|warning|error|err|critical|crit|fatal|panic)'
/** A level in capitals with a blank after it. */
const CAPITALS = /(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)(?= )/y
/** `error: `, `[Warn] `, `<info> `; the name of a part of Dovecot before it, `imap-login: Error: `. */
const LABEL = new RegExp(
  String.raw`(?:[\w-]{1,30}(?:\([^)]{0,100}\))?(?:<[^>]{0,60}>){0,2}: (?=[DIWEFP]))?(?:(${WORD}): |\[ ?(${WORD}) ?\]|<(${WORD})>)`,
  'iy',
)
/** The level after another time, and after a number, a thread or a bar. */
const TIMED = new RegExp(
  String.raw`\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[^\s\]]{0,20}(?: [+-]\d\d:?\d\d)?\]?(?: -)?\s+(?:\d{1,10} |\[[\w .#:-]{1,80}\] |\| )?` +
    String.raw`(?:(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b|\[ ?([A-Za-z]{3,8}) ?\])`,
  'y',
)
const KLOG = /([IWEF])\d{4} \d\d:\d\d:\d\d\.\d{6} {1,8}\d{1,10} \S{1,100}\] /y
/** The kernel's severity, if nothing has removed it. */
const SEVERITY = /<([0-7])>/y
const PAIRS = /(?:time|ts|t|timestamp|level|lvl)=/y
const LEVEL_PAIR = /(?:^| )(?:level|lvl)="?([A-Za-z]{3,11})\b/
const LEVEL_MEMBER = /"(?:level|severity|lvl|levelname)": ?"([A-Za-z]{3,11})"/

/** The level in a message that another program has put behind its own prefix, such as syslog. The message is not changed. */
export function readInnerLevel(line: LogLine): void {
  const { message } = line
  const klog = matchAt(KLOG, message, 0)
  if (klog !== undefined) return setLevelOfLetter(line, klog[1] ?? '')
  const severity = line.service === 'kernel' ? matchAt(SEVERITY, message, 0) : undefined
  if (severity !== undefined) return setSeverity(line, Number(severity[1]))
  const word = wordIn(message)
  const level = word === undefined ? undefined : levelOf(word)
  if (level !== undefined && word !== undefined) setLevel(line, level, word)
}

function wordIn(message: string): string | undefined {
  const first = message.charCodeAt(0)
  // A digit, or the bracket before one: another time.
  const isTimed = (first >= 48 && first <= 57) || (first === 91 && /\d/.test(message.charAt(1)))
  const label = isTimed
    ? matchAt(TIMED, message, 0)
    : (matchAt(LABEL, message, 0) ?? matchAt(CAPITALS, message, 0))
  if (label !== undefined) return label[1] ?? label[2] ?? label[3] ?? label[0]
  if (message.startsWith('{')) return LEVEL_MEMBER.exec(message.slice(0, SEARCHED_CHARACTERS))?.[1]
  if (matchAt(PAIRS, message, 0) === undefined) return undefined
  return LEVEL_PAIR.exec(message.slice(0, SEARCHED_CHARACTERS))?.[1]
}
