import { levelOf } from '@sluice/records'
import { matchAt } from './format.ts'
import { setLevel, setLevelOfLetter, setSeverity } from './level-words.ts'
import type { LogLine } from './log-line.ts'

/** More of a message is not searched. */
const SEARCHED_CHARACTERS = 300

/** Labels in any case: `error: `. */
const LABEL = /^(?:trace|debug[1-3]?|info|notice|warn|warning|error|err|critical|crit|fatal|panic)$/i
const CAPITALS: ReadonlySet<string> = new Set(
  'TRACE DEBUG INFO NOTICE WARN WARNING ERROR CRITICAL FATAL'.split(' '),
)
/** `[Warn] `, `<info> `. */
const BRACKET = /\[ ?([A-Za-z]{3,8}) ?\]|<([A-Za-z]{3,8})>/y
/** The rest of the name of a part of Dovecot, and the level: `imap(frank)<7><a+b>: Error: `. */
const AFTER_PART = /(?:\([^)]{0,100}\))?(?:<[^>]{0,60}>){0,2}: (Debug|Info|Warning|Error|Fatal|Panic): /y
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
  const severity = line.service === 'kernel' ? matchAt(SEVERITY, message, 0) : undefined
  if (severity !== undefined) return setSeverity(line, Number(severity[1]))
  const klog = isDigit(message.charCodeAt(1)) ? matchAt(KLOG, message, 0) : undefined
  if (klog !== undefined) return setLevelOfLetter(line, klog[1] ?? '')
  const word = wordIn(message)
  const level = word === undefined ? undefined : levelOf(word)
  if (level !== undefined && word !== undefined) setLevel(line, level, word)
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

function wordIn(message: string): string | undefined {
  const first = message.charCodeAt(0)
  if (first === 123 /* { */) return LEVEL_MEMBER.exec(message.slice(0, SEARCHED_CHARACTERS))?.[1]
  // A digit, or the bracket before one: another time.
  if (isDigit(first) || (first === 91 /* [ */ && isDigit(message.charCodeAt(1)))) {
    const timed = matchAt(TIMED, message, 0)
    return timed?.[1] ?? timed?.[2]
  }
  if (first === 91 || first === 60 /* < */) {
    const bracket = matchAt(BRACKET, message, 0)
    return bracket?.[1] ?? bracket?.[2]
  }
  return firstWordOf(message)
}

/** The longest name of a part of a program. */
const WORD_CHARACTERS_MAX = 30

function firstWordOf(message: string): string | undefined {
  let end = 0
  while (end <= WORD_CHARACTERS_MAX && isWordCharacter(message.charCodeAt(end))) end += 1
  switch (message.charAt(end)) {
    case ':': {
      const word = message.slice(0, end)
      return LABEL.test(word) && message.charAt(end + 1) === ' '
        ? word
        : matchAt(AFTER_PART, message, end)?.[1]
    }
    case '(':
    case '<':
      return matchAt(AFTER_PART, message, end)?.[1]
    case ' ':
      if (message.charCodeAt(1) > 90 /* Z */) return undefined
      return CAPITALS.has(message.slice(0, end)) ? message.slice(0, end) : undefined
    case '=':
      if (matchAt(PAIRS, message, 0) === undefined) return undefined
      return LEVEL_PAIR.exec(message.slice(0, SEARCHED_CHARACTERS))?.[1]
    default:
      return undefined
  }
}

/** A letter, a digit, a dash or an underscore. */
function isWordCharacter(code: number): boolean {
  const letter = code | 32
  return (letter >= 97 && letter <= 122) || isDigit(code) || code === 45 || code === 95
}
