import { type Entry, type EntryError, environments, levels, sources } from '../entry.ts'
import { contractLimits } from '../limits.ts'
import { isLongerThan } from './utf8.ts'

/** Longer than any ISO 8601 date-time that the API accepts. */
const TIMESTAMP_CHARACTERS_MAX = 64

/** The texts of an entry and their limits, in characters. */
const texts = {
  service: contractLimits.serviceCharactersMax,
  url: contractLimits.urlCharactersMax,
  pathname: contractLimits.pathnameCharactersMax,
  stack: contractLimits.stackCharactersMax,
  timestamp: TIMESTAMP_CHARACTERS_MAX,
} as const
const textNames = Object.keys(texts) as (keyof typeof texts)[]

/** Finds the first field that the API would reject. Metadata is checked when it is converted. */
export function checkEntry(entry: Entry): EntryError | undefined {
  const { level, message, environment, source } = entry
  if (!levels.includes(level)) return notAllowed('level', levels)
  if (typeof message !== 'string') return wrongType('message')
  if (isLongerThan(message, contractLimits.messageCharactersMax))
    return tooLong('message', contractLimits.messageCharactersMax)
  if (isPresent(environment) && !environments.includes(environment))
    return notAllowed('environment', environments)
  if (isPresent(source) && !sources.includes(source)) return notAllowed('source', sources)
  for (const name of textNames) {
    const value = entry[name]
    if (!isPresent(value)) continue
    if (typeof value !== 'string') return wrongType(name)
    if (isLongerThan(value, texts[name])) return tooLong(name, texts[name])
  }
  return undefined
}

function isPresent<Value>(value: Value): value is NonNullable<Value> {
  return value !== undefined && value !== null
}

function notAllowed(name: string, values: readonly string[]): EntryError {
  return { path: `/${name}`, code: 'not_allowed', message: `must be one of ${values.join(', ')}` }
}

function wrongType(name: string): EntryError {
  return { path: `/${name}`, code: 'wrong_type', message: 'must be of type string' }
}

function tooLong(name: string, max: number): EntryError {
  return { path: `/${name}`, code: 'too_long', message: `must have at most ${max} characters` }
}
