import { levelOf } from '@sluice/records'
import { type LineFormat, matchAt } from './format.ts'
import { setLevel, setLevelOf } from './level-words.ts'
import { LogLine } from './log-line.ts'

/** Python without a configuration: `WARNING:shop.orders:message`. */
const PYTHON = /(DEBUG|INFO|WARNING|ERROR|CRITICAL):([\w.]{1,200}):/y
/** `[INFO] message`, `[ WARN ] message`, `INFO: message`, `ERROR - message`, `WARN  message`, `INFO[0003] message`. */
const LABEL =
  /(?:\[ ?([A-Za-z]{3,9}) ?\]:?|([A-Z]{3,9})(?::|\[\d{4}\]| -{1,2}(?= )| {1,3}\|(?= )|(?= {2}|\t))|(error|warn|warning|info|verbose|debug|silly|trace|fatal|notice):)(?=\s)\s*/y

/** Lines that have a level and no time. */
export const levelOnly: LineFormat = (text) => {
  const python = matchAt(PYTHON, text, 0)
  if (python !== undefined) {
    const line = new LogLine()
    setLevelOf(line, python[1] ?? '')
    line.add('logger', python[2])
    line.message = text.slice(PYTHON.lastIndex)
    return line
  }
  const label = matchAt(LABEL, text, 0)
  const word = label?.[1] ?? label?.[2] ?? label?.[3] ?? ''
  const level = levelOf(word)
  if (level === undefined) return undefined
  const line = new LogLine()
  setLevel(line, level, word)
  line.isWeak = label?.[1] === undefined
  line.message = text.slice(LABEL.lastIndex)
  return line
}

/** .NET: `info: Microsoft.Hosting.Lifetime[14]`, and the message in the next lines. */
const DOT_NET = /(trce|dbug|info|warn|fail|crit): ([\w.`+<>]{1,300})\[(-?\d+)\]$/y
const dotNetLevels: Readonly<Record<string, string>> = {
  trce: 'trace',
  dbug: 'debug',
  info: 'info',
  warn: 'warn',
  fail: 'error',
  crit: 'critical',
}

export const dotNetConsole: LineFormat = (text) => {
  const match = matchAt(DOT_NET, text, 0)
  if (match === undefined) return undefined
  const line = new LogLine()
  setLevelOf(line, dotNetLevels[match[1] ?? ''] ?? '')
  line.add('logger', match[2])
  line.add('eventId', match[3])
  line.awaitsMessage = true
  return line
}
