import { isSynonym, type Level, levelOf, levelOfSyslogSeverity } from '@sluice/records'
import type { LogLine } from './log-line.ts'

/** Words of English that are levels only in capitals, or where only a level can be: in brackets or between bars. */
const plainWords: ReadonlySet<string> = new Set(
  'alert assert audit config critical failure fault fine log note panic success system severe silly'.split(
    ' ',
  ),
)

/**
 * The level of a word that stands free in a line. In capitals it is a level. In lower case only the words are levels that
 * no sentence begins with. With only the first letter in capitals, it has to end like a column or a label.
 *
 * @param after the text after the word, at least two characters
 */
export function levelOfFreeWord(word: string, after: string): Level | undefined {
  if (word.length < 3 || word.length > 13) return undefined
  const level = levelOf(word)
  if (level === undefined) return undefined
  const first = word.charCodeAt(0)
  const isCapital = first >= 65 && first <= 90
  if (isCapital && word === word.toUpperCase()) {
    // `LOG` is a word of titles, too. PostgreSQL writes `LOG:`, and NestJS `LOG [name]`.
    return level !== 'log' || /^(?::| \[)/.test(after) ? level : undefined
  }
  if (plainWords.has(word.toLowerCase())) return undefined
  if (!isCapital) return level
  return /^(?:[:|\t\]]|\s\s|\s[-|])/.test(after) ? level : undefined
}

/** Sets the level, and keeps the word if it says more than the level. */
export function setLevel(line: LogLine, level: Level, word: string): void {
  line.level = level
  if (!isSynonym(word)) line.add('originalLevel', word.trim())
}

/** Sets the level if the word is the name of one. For places where only a level can be. */
export function setLevelOf(line: LogLine, word: string): boolean {
  const level = levelOf(word)
  if (level === undefined) return false
  setLevel(line, level, word)
  return true
}

/** Severities of one letter: glog, Android, TensorFlow, MongoDB, Ruby. */
const letters: ReadonlyMap<string, readonly [Level, string]> = new Map([
  ['V', ['debug', 'verbose']],
  ['T', ['debug', 'trace']],
  ['D', ['debug', 'debug']],
  ['I', ['info', 'info']],
  ['N', ['info', 'notice']],
  ['W', ['warn', 'warning']],
  ['E', ['error', 'error']],
  ['C', ['error', 'critical']],
  ['F', ['error', 'fatal']],
  ['A', ['error', 'assert']],
])

export function setLevelOfLetter(line: LogLine, letter: string): void {
  const known = letters.get(letter)
  if (known !== undefined) setLevel(line, known[0], known[1])
}

const severities = ['emergency', 'alert', 'critical', 'error', 'warning', 'notice', 'informational', 'debug']

/** @param severity 0 (emergency) to 7 (debug), as syslog has it */
export function setSeverity(line: LogLine, severity: number): void {
  const level = levelOfSyslogSeverity(severity)
  if (level !== undefined) setLevel(line, level, severities[severity] ?? '')
}
