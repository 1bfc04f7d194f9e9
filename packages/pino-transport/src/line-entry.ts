import type { Entry, Level } from '@sluice/client'
import {
  addMember,
  entryOfRecord,
  isPlainObject,
  type Members,
  readLevelName,
  readTime,
  setMember,
} from '@sluice/records'
import { hasAtMostCharacters, limits } from '@sluice/schema'
import type { PinoConfig } from './options.ts'

export interface EntryContext extends PinoConfig {
  /** The option `service`. It precedes the name of the logger. */
  readonly service: string | undefined
}

/** Of lines without a known level. */
const DEFAULT_LEVEL = 'info'

/** Makes an entry from a line. Every value of the line is in the entry: as a field, or in the metadata. */
export function entryOfLine(line: string, context: EntryContext): Entry {
  try {
    const record = parseLine(line)
    if (record !== undefined) return entryOfMembers(withCommonNames(record, line, context))
  } catch {
    // An object that is nested thousands of levels deep.
  }
  return { level: DEFAULT_LEVEL, message: cut(line, limits.messageCharactersMax) }
}

/** As the API makes it of a line of pino that a shipper sends. */
function entryOfMembers(members: Members): Entry {
  const entry = entryOfRecord(members, { defaultLevel: DEFAULT_LEVEL }) as Entry
  entry.message = cut(entry.message, limits.messageCharactersMax)
  if (typeof entry.stack === 'string') entry.stack = cut(entry.stack, limits.stackCharactersMax)
  return entry
}

/** The line as other loggers write it: what is special to pino, and to the configuration of this logger, has the names of the API. */
function withCommonNames(record: Members, line: string, context: EntryContext): Members {
  const { messageKey, errorKey, levelNames, service } = context
  const metadata: Members = isPlainObject(record['metadata']) ? { ...record['metadata'] } : {}
  const messageName = messageKey in record ? messageKey : 'message'
  // The API requires a message. A line that only has fields can be found by their JSON.
  const { [messageName]: message = line, [errorKey]: error, level } = record
  const members: Members = {
    message: typeof message === 'string' ? message : JSON.stringify(message),
    metadata,
  }
  const used = new Set([messageName, ...(isPlainObject(record['metadata']) ? ['metadata'] : [])])
  const use = (name: string, field: string, value = record[name]): void => {
    members[field] = value
    used.add(name)
  }
  if (readTime(record['time']) !== undefined) use('time', 'timestamp')
  if (!isService(record['service'])) {
    if (service !== undefined) members['service'] = service
    else if (isService(record['name'])) use('name', 'service')
  }
  if (typeof level === 'number') {
    const name = levelNames[level] ?? ''
    const isKnown = readLevelName(name) !== undefined
    use('level', 'level', isKnown ? name : levelOfNumber(level))
    if (!isKnown) addMember(metadata, 'originalLevel', name || level)
  }
  if (isPlainObject(error) && typeof error['stack'] === 'string' && !Object.hasOwn(record, 'stack')) {
    const { stack, ...rest } = error
    members['stack'] = stack
    use(errorKey, errorKey, rest)
  }
  for (const name of Object.keys(record)) {
    if (used.has(name)) continue
    if (Object.hasOwn(members, name)) addMember(metadata, name, record[name])
    else setMember(members, name, record[name])
  }
  return members
}

const isService = (value: unknown): boolean =>
  typeof value === 'string' && hasAtMostCharacters(value, limits.serviceCharactersMax)

/** The API rejects longer strings. The start of one is better than nothing. */
function cut(string: string, charactersMax: number): string {
  return string.length <= charactersMax ? string : `${string.slice(0, charactersMax - 1)}…`
}

/** pino orders numbers by severity, and its own are the multiples of 10 from 10 to 60. */
function levelOfNumber(value: number): Level {
  return value >= 50 ? 'error' : value >= 40 ? 'warn' : value >= 30 ? 'info' : 'debug'
}

/** An integer that a JavaScript number may not hold exactly has at least 16 digits. */
const MANY_DIGITS = /\d{16}/
/** The strings and the numbers of valid JSON. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g
const LONG_INTEGER = /^-?\d{16,}$/
/** A longer line is not searched for integers: the cost of the search must not depend on what an application logs. */
const SEARCHED_CHARACTERS_MAX = 262_144

/** The object of a line. Undefined if the line is no JSON object. */
export function parseLine(line: string): Members | undefined {
  // Everything that pino writes is an object.
  if (!line.startsWith('{')) return undefined
  const hasLongInteger = line.length <= SEARCHED_CHARACTERS_MAX && MANY_DIGITS.test(line)
  try {
    return JSON.parse(hasLongInteger ? quoteLongIntegers(line) : line) as Members
  } catch {
    return undefined
  }
}

/** Integers that would lose digits become strings. pino writes a BigInt as such a number. */
function quoteLongIntegers(json: string): string {
  return json.replaceAll(TOKENS, (token) =>
    LONG_INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token,
  )
}
