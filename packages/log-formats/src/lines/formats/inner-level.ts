import { levelOf } from '../../levels.ts'
import { matchAt } from './format.ts'
import { setLevel } from './level-words.ts'
import type { LogLine } from './log-line.ts'

/** More of a message is not searched. */
const SEARCHED_CHARACTERS = 300

const LABEL = /\[?(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)(?:\]|:|(?= ))/y
const PAIRS = /(?:time|ts|t|timestamp|level|lvl)=/y
const LEVEL_PAIR = /(?:^| )(?:level|lvl)="?([A-Za-z]{3,11})\b/
const LEVEL_MEMBER = /"(?:level|severity|lvl|levelname)": ?"([A-Za-z]{3,11})"/

/** The level in a message that another program has put behind its own prefix, such as syslog. The message is not changed. */
export function readInnerLevel(line: LogLine): void {
  const { message } = line
  const word = wordIn(message)
  const level = word === undefined ? undefined : levelOf(word)
  if (level !== undefined && word !== undefined) setLevel(line, level, word)
}

function wordIn(message: string): string | undefined {
  const label = matchAt(LABEL, message, 0)
  if (label !== undefined) return label[1]
  if (message.startsWith('{')) return LEVEL_MEMBER.exec(message.slice(0, SEARCHED_CHARACTERS))?.[1]
  if (matchAt(PAIRS, message, 0) === undefined) return undefined
  return LEVEL_PAIR.exec(message.slice(0, SEARCHED_CHARACTERS))?.[1]
}
