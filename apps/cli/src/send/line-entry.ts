import { levels, parseJsonExactly, parseTimestamp } from '@sluice/schema'

/** What lines that do not say it themselves are sent with. */
export interface EntryDefaults {
  readonly level: string
  readonly service: string | undefined
  readonly environment: string | undefined
}

type Fields = Readonly<Record<string, unknown>>

/** Other names and numbers (those of pino and bunyan) of the levels. */
const sameLevels: ReadonlyMap<string, string> = new Map([
  ['20', 'debug'],
  ['30', 'info'],
  ['40', 'warn'],
  ['50', 'error'],
  ['err', 'error'],
  ['information', 'info'],
  ['warning', 'warn'],
])

/** Levels that there are not, and the nearest that there is. The original is kept as `originalLevel`. */
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
 * Makes a line into an entry, as JSON text.
 *
 * A JSON object is sent with all its fields, as it is written where nothing has to be filled in. What it lacks is
 * filled in: level, service and environment from the defaults; the message from `msg`, else it is the line itself; the
 * timestamp from `time`, in ISO 8601 or as milliseconds since 1970. Levels of other loggers are translated. Any other
 * line is the message of an entry.
 *
 * Whether the entry is valid is for the service to say.
 */
export function lineToEntry(line: string, defaults: EntryDefaults): string {
  const fields = parseObject(line)
  if (fields === undefined)
    return JSON.stringify({ level: defaults.level, message: line, ...named(defaults) })
  const changes = { ...levelOf(fields, defaults), ...messageOf(fields, line), ...timestampOf(fields) }
  for (const [name, value] of Object.entries(named(defaults))) {
    if (isAbsent(fields[name])) changes[name] = value
  }
  if (Object.keys(changes).length === 0) return line
  return JSON.stringify({ ...(parseJsonExactly(line) as Fields), ...changes })
}

/** Undefined values are left out by JSON.stringify. */
type Changes = Record<string, unknown>

function named({ service, environment }: EntryDefaults): Changes {
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
  const known = levels.find((candidate) => candidate === name) ?? sameLevels.get(name)
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
  // As seconds, these would be dates up to 1970 and of tens of thousands of years.
  if (typeof time !== 'number' || time < EPOCH_MS_MIN || time > EPOCH_MS_MAX) return {}
  return { timestamp: new Date(time).toISOString(), time: undefined }
}

/** Numbers between these two, of the years 1973 and 2261, are taken for milliseconds; smaller ones may be seconds. */
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
