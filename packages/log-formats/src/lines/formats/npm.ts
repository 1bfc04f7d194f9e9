import { type LineFormat, matchAt } from './format.ts'
import { setLevelOf } from './level-words.ts'
import { LogLine } from './log-line.ts'

const LEVEL = '(ERR!|WARN|error|warn|notice|info|verbose|verb|silly|sill|http|timing) (?=\\S)'
/** What npm prints: `npm ERR! code ENOENT`. */
const OUTPUT = new RegExp(`npm ${LEVEL}`, 'y')
/** A line of its log: `12 verbose stack Error`. Sentences begin like this, too. */
const LOG = new RegExp(String.raw`\d{1,6} ${LEVEL}`, 'y')
const LOG_START = /0 (?:verbose cli|info it worked)\b/y

const levelsOfNpm: Readonly<Record<string, string>> = {
  'ERR!': 'error',
  verb: 'verbose',
  sill: 'silly',
  http: 'info',
  timing: 'debug',
}

/** Makes the format of one file: lines with numbers belong to npm only after the first line of its log. */
export function createNpm(): LineFormat {
  let isLog = false
  return (text) => {
    isLog ||= matchAt(LOG_START, text, 0) !== undefined
    const expression = isLog && text.charCodeAt(0) <= 57 ? LOG : OUTPUT
    const match = matchAt(expression, text, 0)
    if (match === undefined) return undefined
    const [whole, word = ''] = match
    const line = new LogLine()
    setLevelOf(line, levelsOfNpm[word] ?? word)
    if (expression === OUTPUT) line.service = 'npm'
    line.isWeak = !isLog
    line.message = text.slice(whole.length)
    return line
  }
}
