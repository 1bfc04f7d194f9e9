import { contractLimits, type Entry, environments, type Metadata, sources } from '@sluice/client'
import { readLevel } from './levels.ts'
import { type Fields, parseLine } from './line-record.ts'
import { readTime } from './times.ts'

/** What the logger tells the transport about its lines. */
export interface PinoConfig {
  /** The names of levels, by their numbers. */
  readonly levelNames: Readonly<Record<string, string>>
  readonly messageKey: string
  readonly errorKey: string
}

export interface EntryContext extends PinoConfig {
  /** Whether the transport has an option `service`. It precedes the name of the logger. */
  readonly hasService: boolean
}

/** Of lines without a known level. */
const DEFAULT_LEVEL = 'info'

/** Makes an entry from a line. Every value of the line is in the entry: as a field, or in the metadata. */
export function entryOfLine(line: string, context: EntryContext): Entry {
  const record = parseLine(line)
  if (record === undefined) return textEntry(line)
  const { metadata: given } = record
  const metadata: Metadata = isObject(given) ? { ...given } : {}
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
  // The API requires a message. A line that only has fields can be found by their text.
  if (!(messageName in record)) entry.message = cutMessage(line)
  return entry
}

/** The entry of a line that is no JSON object. */
export function textEntry(line: string): Entry {
  return { level: DEFAULT_LEVEL, message: cutMessage(line) }
}

/** The member that becomes the service: `service`, or the name of the logger. */
function nameOfService({ service, name }: Fields, { hasService }: EntryContext): string | undefined {
  if (isText(service, contractLimits.serviceCharactersMax)) return 'service'
  return !hasService && isText(name, contractLimits.serviceCharactersMax) ? 'name' : undefined
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
      return takeTime(entry, value)
    case 'stack':
      if (typeof value !== 'string' || typeof entry.stack === 'string') return false
      entry.stack = cut(value, contractLimits.stackCharactersMax)
      return true
    case 'url':
    case 'pathname':
      if (!isText(value, contractLimits[`${name}CharactersMax`])) return false
      entry[name] = value
      return true
    case 'environment':
      entry.environment = environments.find((known) => known === value)
      return entry.environment !== undefined
    case 'source':
      entry.source = sources.find((known) => known === value)
      return entry.source !== undefined
    case 'metadata':
      return isObject(value)
    default:
      return false
  }
}

/** The first one that can be read. */
function takeTime(entry: Entry, value: unknown): boolean {
  if (typeof entry.timestamp === 'string') return false
  entry.timestamp = readTime(value)
  return entry.timestamp !== undefined
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
  if (!isObject(value) || typeof value['stack'] !== 'string' || typeof entry.stack === 'string')
    return addMember(metadata, name, value)
  const { stack, ...rest } = value
  entry.stack = cut(stack, contractLimits.stackCharactersMax)
  addMember(metadata, name, rest)
}

function readMessage(value: unknown): string {
  return cutMessage(typeof value === 'string' ? value : JSON.stringify(value))
}

const cutMessage = (text: string): string => cut(text, contractLimits.messageCharactersMax)

/** The API rejects longer texts. The start of a text is worth more than nothing. */
function cut(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax - 1)}…`
}

/** A text never has more characters than UTF-16 code units. */
function isText(value: unknown, charactersMax: number): value is string {
  return typeof value === 'string' && value.length <= charactersMax
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Adds a value under its name, or with a number after the name: no value of the line replaces another one. */
function addMember(metadata: Metadata, name: string, value: unknown): void {
  let free = name
  for (let number = 2; Object.hasOwn(metadata, free); number += 1) free = `${name}_${number}`
  // An assignment to `__proto__` would set the prototype.
  if (free !== '__proto__') metadata[free] = value
  else Object.defineProperty(metadata, free, { value, enumerable: true, configurable: true, writable: true })
}
