import { parseJsonExactly, parseTimestamp } from '@sluice/rows'
import { levels } from '@sluice/schema'

/** Values for fields that a line does not have. */
export interface EntryDefaults {
  readonly level: string
  readonly service: string | undefined
  readonly environment: string | undefined
}

type Fields = Readonly<Record<string, unknown>>

/** Other names for the levels, and the numbers of pino and bunyan. */
const levelAliases: ReadonlyMap<string, string> = new Map([
  ['20', 'debug'],
  ['30', 'info'],
  ['40', 'warn'],
  ['50', 'error'],
  ['err', 'error'],
  ['information', 'info'],
  ['warning', 'warn'],
])

/** Levels that Sluice does not have, with the nearest level. The original level is kept as `originalLevel`. */
const nearestLevels: ReadonlyMap<string, string> = new Map([
  ['10', 'debug'],
  ['60', 'error'],
  ['alert', 'error'],
  ['crit', 'error'],
  ['critical', 'error'],
  ['emerg', 'error'],
  ['emergency', 'error'],
  ['fatal', 'error'],
  ['notice', 'info'],
  ['panic', 'error'],
  ['severe', 'error'],
  ['silly', 'debug'],
  ['trace', 'debug'],
  ['verbose', 'debug'],
])

/**
 * Converts a line into an entry, as JSON text.
 *
 * A JSON object becomes an entry with all its fields. Missing fields are filled in: level, service and environment from
 * the defaults; the message from `msg`, else it is the line itself; the timestamp from `time`, in ISO 8601 or as
 * milliseconds since 1970. Levels of other loggers are translated. If nothing has to be filled in or translated, the
 * text of the line is sent unchanged. Any other line becomes the message of an entry.
 *
 * The entry is not validated here: the API does that.
 */
export function lineToEntry(line: string, defaults: EntryDefaults): string {
  const fields = parseObject(line)
  if (fields === undefined)
    return JSON.stringify({ level: defaults.level, message: line, ...defaultFields(defaults) })
  const changes = { ...levelOf(fields, defaults), ...messageOf(fields, line), ...timestampOf(fields) }
  for (const [name, value] of Object.entries(defaultFields(defaults))) {
    if (isAbsent(fields[name])) changes[name] = value
  }
  if (Object.keys(changes).length === 0) return line
  return JSON.stringify({ ...(parseJsonExactly(line) as Fields), ...changes })
}

/** Fields to set. Fields that are set to undefined are removed: JSON.stringify leaves them out. */
type Changes = Record<string, unknown>

function defaultFields({ service, environment }: EntryDefaults): Changes {
  return {
    ...(service === undefined ? {} : { service }),
    ...(environment === undefined ? {} : { environment }),
  }
}

function levelOf(fields: Fields, defaults: EntryDefaults): Changes {
  const { level } = fields
  if (isAbsent(level)) return { level: defaults.level }
  if (typeof level !== 'string' && typeof level !== 'number') return {}
  const name = String(level).trim().toLowerCase()
  const known = levels.find((candidate) => candidate === name) ?? levelAliases.get(name)
  if (known !== undefined) return known === level ? {} : { level: known }
  const nearest = nearestLevels.get(name)
  return nearest === undefined ? {} : { level: nearest, originalLevel: level }
}

function messageOf(fields: Fields, line: string): Changes {
  if (!isAbsent(fields['message'])) return {}
  const { msg } = fields
  return typeof msg === 'string' ? { message: msg, msg: undefined } : { message: line }
}

function timestampOf({ timestamp, time }: Fields): Changes {
  if (!isAbsent(timestamp)) return {}
  if (typeof time === 'string' && parseTimestamp(time) !== undefined)
    return { timestamp: time, time: undefined }
  if (typeof time !== 'number' || time < EPOCH_MS_MIN || time > EPOCH_MS_MAX) return {}
  return { timestamp: new Date(time).toISOString(), time: undefined }
}

/**
 * Numbers in this range are milliseconds since 1970, in the years 1973 to 2261. As seconds, they would be dates after
 * the year 5138. Smaller numbers may be seconds and are not converted: as milliseconds, they would be dates up to 1973.
 */
const EPOCH_MS_MIN = 100_000_000_000
const EPOCH_MS_MAX = Date.UTC(2261, 11, 31)

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}

function parseObject(line: string): Fields | undefined {
  if (!/^\s*\{/.test(line)) return undefined
  try {
    return JSON.parse(line) as Fields
  } catch {
    return undefined
  }
}
