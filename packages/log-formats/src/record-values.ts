import { entrySchema, limits } from '@sluice/schema'
import { timeOfEpoch } from './epoch.ts'
import { timeOfIso } from './iso-time.ts'
import {
  isSynonym,
  type Level,
  levelOf,
  levelOfOtelNumber,
  levelOfPinoNumber,
  levelOfPythonNumber,
  levelOfSyslogSeverity,
} from './levels.ts'
import { isPlainObject, type Members } from './plain-object.ts'

export interface LevelReading {
  readonly level: Level
  /** Whether the level says all that the record says. `FATAL` says more than `error`. */
  readonly isExact: boolean
}

const numberReaders = {
  otel: { read: levelOfOtelNumber, exact: [5, 9, 13, 17] },
  pino: { read: levelOfPinoNumber, exact: [20, 30, 40, 50] },
  python: { read: levelOfPythonNumber, exact: [10, 20, 30, 40] },
  syslog: { read: levelOfSyslogSeverity, exact: [3, 4, 6, 7] },
} as const
export type LevelNumbers = keyof typeof numberReaders

/** @param numbers what a number means under the name of this value */
export function readLevel(value: unknown, numbers: LevelNumbers): LevelReading | undefined {
  const number = typeof value === 'string' && /^ ?\d{1,3}$/.test(value) ? Number(value) : value
  if (typeof number === 'number') {
    const { read, exact } = numberReaders[numbers]
    const level = read(number)
    return level === undefined ? undefined : { level, isExact: exact.some((one) => one === number) }
  }
  // Loguru: `{"name": "ERROR", "no": 40}`. The object is kept as the original level.
  if (isPlainObject(value) && typeof value['name'] === 'string') {
    const named = levelOf(value['name'])
    return named === undefined ? undefined : { level: named, isExact: false }
  }
  const level = typeof value === 'string' ? levelOf(value) : undefined
  return level === undefined ? undefined : { level, isExact: isSynonym(String(value)) }
}

interface RawJson {
  readonly rawJSON: string
}
/** ECMAScript 2026, which TypeScript's library does not declare yet. */
const json = JSON as unknown as { isRawJSON(value: unknown): value is RawJson }

/** A time in ISO 8601 or as a number since 1970, or one of the objects that loggers make of a time. */
export function readTime(value: unknown): string | undefined {
  if (typeof value === 'string') return timeOfIso(value.trim()) ?? timeOfEpoch(value)
  if (typeof value === 'number') return timeOfEpoch(String(value))
  if (json.isRawJSON(value)) return timeOfEpoch(value.rawJSON)
  if (!isPlainObject(value)) return undefined
  return isMongoDate(value) ? readTime(value.$date) : readTimeObject(value)
}

/** Log4j: `{"epochSecond": …, "nanoOfSecond": …}`. Google: `{"seconds": …, "nanos": …}`. PHP: `{"date": …, "timezone": "UTC"}`. Loguru: `{"repr": …}`. */
function readTimeObject(value: Members): string | undefined {
  const { seconds = value['epochSecond'], nanos = value['nanoOfSecond'], date, timezone, repr } = value
  if (typeof repr === 'string') return timeOfIso(repr)
  if (typeof date === 'string' && timezone === 'UTC') return timeOfIso(date)
  if (typeof seconds !== 'number' || typeof nanos !== 'number') return undefined
  return timeOfEpoch(`${seconds}.${String(nanos).padStart(9, '0')}`)
}

function isMongoDate(value: unknown): value is { readonly $date: string | number } {
  return isPlainObject(value) && ['string', 'number'].includes(typeof value['$date'])
}

/** The severities of MongoDB: a letter, and a digit for the verbosity of debug messages. */
export function readMongoLevel({ t, s }: Readonly<Record<string, unknown>>): LevelReading | undefined {
  if (!isMongoDate(t) || typeof s !== 'string') return undefined
  const level = mongoLevels.get(s.charAt(0))
  return level === undefined || s.length > 2
    ? undefined
    : { level, isExact: s !== 'F' && s.charAt(0) !== 'D' }
}
const mongoLevels: ReadonlyMap<string, Level> = new Map([
  ['F', 'error'],
  ['E', 'error'],
  ['W', 'warn'],
  ['I', 'info'],
  ['D', 'debug'],
])

/** Docker ends the text of `log` with the newline of the line. */
export function readMessage(value: unknown, name: string): string | undefined {
  if (typeof value !== 'string') return undefined
  return name === 'log' && value.endsWith('\n') ? value.slice(0, -1) : value
}

/** A stack trace as a text, or as an array of its lines. */
export function readStack(value: unknown, name: string): string | undefined {
  if (Array.isArray(value) && value.length > 0 && value.every((line) => typeof line === 'string')) {
    return value.join('\n')
  }
  return typeof value === 'string' && (value !== '' || name === 'stack') ? value : undefined
}

const environments: ReadonlyMap<string, string> = new Map([
  ...['development', 'develop', 'dev'].map((name): [string, string] => [name, 'development']),
  ...['staging', 'stage', 'stg'].map((name): [string, string] => [name, 'staging']),
  ...['production', 'prod', 'prd'].map((name): [string, string] => [name, 'production']),
])

export function readEnvironment(value: unknown): string | undefined {
  return typeof value === 'string' ? environments.get(value.toLowerCase()) : undefined
}

export function readSource(value: unknown): string | undefined {
  return typeof value === 'string' && entrySchema.properties.source.enum.some((known) => known === value)
    ? value
    : undefined
}

export const readService = textReader(limits.serviceCharactersMax)
export const readUrl = textReader(limits.urlCharactersMax)
export const readPathname = textReader(limits.pathnameCharactersMax)

function textReader(charactersMax: number): (value: unknown) => string | undefined {
  // Characters are code points. A text never has more of them than UTF-16 code units.
  return (value) =>
    typeof value === 'string' &&
    (value.length <= charactersMax ||
      (value.length <= charactersMax * 2 && Array.from(value).length <= charactersMax))
      ? value
      : undefined
}
