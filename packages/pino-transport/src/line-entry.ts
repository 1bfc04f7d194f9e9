import { type Entry, type Level, type Metadata, sources } from '@sluice/client'
import {
  addMember,
  isPlainObject,
  type LevelReading,
  type Members,
  readEnvironment,
  readLevelName,
  readTime,
} from '@sluice/records'
import { hasAtMostCharacters, limits } from '@sluice/schema/limits'
import type { PinoConfig } from './options.ts'

export interface EntryContext extends PinoConfig {
  /** Whether the transport has an option `service`. It precedes the name of the logger. */
  readonly hasService: boolean
}

/** Of lines without a known level. */
const DEFAULT_LEVEL = 'info'

/** Makes an entry from a line. Every value of the line is in the entry: as a field, or in the metadata. */
export function entryOfLine(line: string, context: EntryContext): Entry {
  try {
    const record = parseLine(line)
    if (record !== undefined) return entryOfRecord(record, line, context)
  } catch {
    // An object that is nested thousands of levels deep.
  }
  return { level: DEFAULT_LEVEL, message: cutMessage(line) }
}

function entryOfRecord(record: Members, line: string, context: EntryContext): Entry {
  const { metadata: given } = record
  const metadata: Metadata = isPlainObject(given) ? { ...given } : {}
  const entry: Entry = { level: DEFAULT_LEVEL, message: '', metadata }
  const messageName = context.messageKey in record ? context.messageKey : 'message'
  const serviceName = nameOfService(record, context)
  for (const name of Object.keys(record)) {
    const value = record[name]
    if (name === messageName) entry.message = readMessage(value)
    else if (name === serviceName) entry.service = value as string
    else if (name === context.errorKey) addError(entry, metadata, name, value)
    else if (!takeField(entry, metadata, name, value, context)) addMember(metadata, name, value)
  }
  // The API requires a message. A line that only has fields can be found by their JSON.
  if (!(messageName in record)) entry.message = cutMessage(line)
  return entry
}

/** The member that becomes the service: `service`, or the name of the logger. */
function nameOfService({ service, name }: Members, { hasService }: EntryContext): string | undefined {
  if (isShort(service, limits.serviceCharactersMax)) return 'service'
  return !hasService && isShort(name, limits.serviceCharactersMax) ? 'name' : undefined
}

/** @returns whether the value is in the entry now */
function takeField(
  entry: Entry,
  metadata: Metadata,
  name: string,
  value: unknown,
  { levelNames }: PinoConfig,
): boolean {
  switch (name) {
    case 'level':
      return takeLevel(entry, metadata, value, levelNames)
    case 'time':
    case 'timestamp':
    case '@timestamp':
      // The first that can be read.
      if (typeof entry.timestamp === 'string') return false
      entry.timestamp = readTime(value)
      return entry.timestamp !== undefined
    case 'stack':
      if (typeof value !== 'string' || typeof entry.stack === 'string') return false
      entry.stack = cut(value, limits.stackCharactersMax)
      return true
    case 'url':
    case 'pathname':
      if (!isShort(value, limits[`${name}CharactersMax`])) return false
      entry[name] = value
      return true
    case 'environment':
      entry.environment = readEnvironment(value)
      return entry.environment !== undefined
    case 'source':
      entry.source = sources.find((known) => known === value)
      return entry.source !== undefined
    case 'metadata':
      return isPlainObject(value)
    default:
      return false
  }
}

function takeLevel(
  entry: Entry,
  metadata: Metadata,
  value: unknown,
  levelNames: PinoConfig['levelNames'],
): boolean {
  const reading = readLevel(value, levelNames)
  if (reading === undefined) return false
  entry.level = reading.level
  if (!reading.isExact) addMember(metadata, 'originalLevel', levelNames[String(value)] ?? value)
  return true
}

/** The stack trace of an error becomes the `stack` of the entry. The rest of the error stays in the metadata. */
function addError(entry: Entry, metadata: Metadata, name: string, value: unknown): void {
  if (!isPlainObject(value) || typeof value['stack'] !== 'string' || typeof entry.stack === 'string')
    return addMember(metadata, name, value)
  const { stack, ...rest } = value
  entry.stack = cut(stack, limits.stackCharactersMax)
  addMember(metadata, name, rest)
}

function readMessage(value: unknown): string {
  return cutMessage(typeof value === 'string' ? value : JSON.stringify(value))
}

const cutMessage = (message: string): string => cut(message, limits.messageCharactersMax)

/** The API rejects longer strings. The start of one is better than nothing. */
function cut(string: string, charactersMax: number): string {
  return string.length <= charactersMax ? string : `${string.slice(0, charactersMax - 1)}…`
}

function isShort(value: unknown, charactersMax: number): value is string {
  return typeof value === 'string' && hasAtMostCharacters(value, charactersMax)
}

/** pino orders numbers by severity, and its own are the multiples of 10 from 10 to 60. */
function levelOfNumber(value: number): Level {
  return value >= 50 ? 'error' : value >= 40 ? 'warn' : value >= 30 ? 'info' : 'debug'
}

/** @param value a number, or a string if the application has a formatter for levels */
function readLevel(value: unknown, names: PinoConfig['levelNames']): LevelReading | undefined {
  if (typeof value === 'string') return readLevelName(value)
  if (typeof value !== 'number') return undefined
  return readLevelName(names[value] ?? '') ?? { level: levelOfNumber(value), isExact: false }
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
