import { type LineFormat, matchAt } from './format.ts'
import { setLevel, setLevelOf, setLevelOfLetter } from './level-words.ts'
import { LogLine } from './log-line.ts'

const REDIS = /(\d{1,10}):([XCSM]) (?=\d)/y
const REDIS_LEVEL = / ([.\-*#]) /y
const redisLevels: ReadonlyMap<string, readonly ['debug' | 'info' | 'warn', string]> = new Map([
  ['.', ['debug', 'debug']],
  ['-', ['debug', 'verbose']],
  ['*', ['info', 'notice']],
  ['#', ['warn', 'warning']],
])
const redisRoles: Readonly<Record<string, string>> = {
  X: 'sentinel',
  C: 'child',
  S: 'replica',
  M: 'master',
}

/** Redis and Valkey: `1234:M 20 Nov 2026 10:00:00.123 * message`. */
export const redis: LineFormat = (text, { time }) => {
  const start = matchAt(REDIS, text, 0)
  if (start === undefined) return undefined
  const line = new LogLine()
  line.timestamp = time.read(text, REDIS.lastIndex)
  if (line.timestamp === undefined) return undefined
  const mark = matchAt(REDIS_LEVEL, text, time.end)
  const level = redisLevels.get(mark?.[1] ?? '')
  if (level === undefined) return undefined
  setLevel(line, level[0], level[1])
  line.add('pid', start[1])
  line.add('role', redisRoles[start[2] ?? ''])
  line.message = text.slice(REDIS_LEVEL.lastIndex)
  return line
}

/** MongoDB before 4.4: ` I NETWORK  [conn1] message` after the time. */
const MONGO = / ([FEWID])(\d)? ([A-Z_]{3,16}|-) +\[([^\]]{1,100})\] /y

export function readMongo(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(MONGO, text, at)
  if (match === undefined) return false
  setLevelOfLetter(line, match[1] ?? '')
  if (match[2] !== undefined) line.add('originalLevel', `${match[1]}${match[2]}`)
  line.add('logger', match[3])
  line.add('thread', match[4])
  line.message = text.slice(MONGO.lastIndex)
  return true
}

/** MySQL and MariaDB: ` 0 [Warning] [MY-010068] [Server] message` after the time. */
const MYSQL =
  /\s+(\d+) \[(Note|NOTE|Warning|WARNING|Error|ERROR|System|SYSTEM)\](?: \[(MY-\d+)\])?(?: \[(\w+)\])? /y

export function readMySql(text: string, at: number, line: LogLine): boolean {
  const match = matchAt(MYSQL, text, at)
  if (match === undefined) return false
  line.add('thread', match[1])
  setLevelOf(line, match[2] ?? '')
  line.add('code', match[3])
  line.add('logger', match[4])
  line.message = text.slice(MYSQL.lastIndex)
  return true
}

/**
 * PostgreSQL: ` [1234] shop@orders LOG:  message` after the time. The prefix is a setting, so that the level is searched after a
 * few words. Lines such as `DETAIL:` and `STATEMENT:` belong to the line before.
 */
const POSTGRES =
  /((?::[^\s:]{0,100}| [\w.@[\](),=/-]{1,100}){0,8}?)[ :](?:(LOG|DEBUG[1-5]?|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC)|(DETAIL|HINT|QUERY|CONTEXT|STATEMENT|LOCATION|BACKTRACE)): {2}/y

export function readPostgres(text: string, at: number, line: LogLine): boolean {
  // No other logger has two blanks here. The search is faster than the expression.
  if (!text.includes(':  ', at)) return false
  const match = matchAt(POSTGRES, text, at)
  if (match === undefined) return false
  const [, prefix = '', level, detail] = match
  readPostgresPrefix(prefix, line)
  const message = text.slice(POSTGRES.lastIndex)
  if (level !== undefined) setLevelOf(line, level)
  line.continues = detail !== undefined
  line.message = detail === undefined ? message : `${detail}:  ${message}`
  return true
}

/** The parts of a prefix that show what they are, and the names of what they have. */
const POSTGRES_PARTS: readonly (readonly [part: RegExp, ...names: string[]])[] = [
  [/\[(\d+)(?:-(\d+))?\]/, 'pid', 'sessionLine'],
  [/(?<=^|[ :])([\w.-]+)@([\w.-]+)(?=[ :]|$)/, 'user', 'database'],
  [/(?<=^|[ :])((?:\d{1,3}\.){3}\d{1,3})(?:\((\d+)\))?(?=[ :]|$)/, 'client', 'clientPort'],
  [/(?<=[ ,])user=([^\s,]*),?/, 'user'],
  [/(?<=[ ,]|^)(?:db|database)=([^\s,]*),?/, 'database'],
  [/(?<=[ ,]|^)app(?:lication)?=([^,=]*)(?:,|(?= \w+=)|$)/, 'application'],
  [/(?<=[ ,]|^)(?:client|host|remote)=([^\s,(]*)(?:\((\d+)\))?,?/, 'client', 'clientPort'],
]

/** Reads the known parts of a prefix. What is left is kept as it is. */
function readPostgresPrefix(prefix: string, line: LogLine): void {
  let rest = prefix
  for (const [part, ...names] of POSTGRES_PARTS) {
    const match = part.exec(rest)
    if (match === null) continue
    for (const [index, name] of names.entries()) line.add(name, match[index + 1])
    rest = `${rest.slice(0, match.index)}${rest.slice(match.index + match[0].length)}`
  }
  line.add('prefix', rest.replaceAll(/^[\s:,-]+|[\s:,-]+$/g, ''))
}

/** The slow query log of MySQL: the time, and the query in the next lines. */
const SLOW_QUERY = /# Time: (?=\d)/y

export const mySqlSlow: LineFormat = (text, { time }) => {
  if (matchAt(SLOW_QUERY, text, 0) === undefined) return undefined
  const line = new LogLine()
  line.timestamp = time.read(text, SLOW_QUERY.lastIndex)
  line.message = text
  return line.timestamp === undefined ? undefined : line
}
