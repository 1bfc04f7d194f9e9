import { entryFields } from '@sluice/schema'
import { type Level, type LevelReading, readLevel } from './levels.ts'
import { addMember, isPlainObject, type Members, setMember } from './members.ts'
import { isIn, type NameRole, parents, roleOfName, roleOfWrapped, wrappers } from './names.ts'
import { isNumber, readTime } from './times.ts'
import { readEnvironment, readStack, readString } from './values.ts'

type Fields = Readonly<Record<string, unknown>>

/** A value that becomes a field of the entry. */
interface Use {
  readonly rank: number
  /** The name in the record, and those within the objects that the value is in. */
  readonly path: Path
  readonly value: unknown
}
type Uses = Map<string, Use>
type Path = readonly string[]

/**
 * Makes an entry of the contract from a JSON record of any common logger.
 *
 * Fields of the contract that are valid stay as they are. Missing ones are taken from the names that other loggers use, and
 * translated. What is not used stays in the metadata under its own name. This includes values that are not usable, such
 * as a level that is unknown; the default is then used. A level that says more than the contract's, such as `FATAL`, is
 * kept as `originalLevel`. A record without a message gets its own JSON as the message.
 *
 * Message and stack may exceed the limits of the contract: nothing is cut here.
 */
export function entryOfRecord(
  record: Fields,
  options: { readonly defaultLevel: Level },
): Record<string, unknown> {
  const uses = findUses(record)
  const level = uses.get('level')?.value as LevelReading | undefined
  const entry: Record<string, unknown> = {}
  const timestamp = uses.get('timestamp')
  if (timestamp !== undefined) entry['timestamp'] = timestamp.value
  entry['level'] = level?.level ?? options.defaultLevel
  entry['message'] = uses.has('message') ? uses.get('message')?.value : jsonOf(record)
  for (const field of ['service', 'environment', 'source', 'url', 'pathname', 'stack']) {
    const use = uses.get(field)
    if (use !== undefined) entry[field] = use.value
  }
  const metadata = collectMetadata(record, uses)
  const levelUse = uses.get('level')
  if (level?.isExact === false && levelUse !== undefined) {
    addMember(metadata, 'originalLevel', valueAt(record, levelUse.path))
  }
  if (uses.has('metadata') || Object.keys(metadata).length > 0) entry['metadata'] = metadata
  return entry
}

/** A record as JSON; '' if it is nested deeper than JavaScript can write. Such metadata is above the limit of the contract. */
function jsonOf(record: Fields): string {
  try {
    return JSON.stringify(record)
  } catch (error) {
    if (error instanceof RangeError) return ''
    throw error
  }
}

/** Finds the best usable value for each field. */
function findUses(record: Fields): Uses {
  const uses: Uses = new Map()
  const offer = (path: Path, value: unknown, role: NameRole | undefined): void => {
    if (role === undefined || (uses.get(role.field)?.rank ?? Number.POSITIVE_INFINITY) <= role.rank) return
    const isOther = role.condition !== undefined && !isMet[role.condition](record)
    const read = isOther ? undefined : readers[role.reading](value, role, record)
    if (read !== undefined) uses.set(role.field, { rank: role.rank, path, value: read })
  }
  /** @param prefix of the names that have a role together with those around them @param around the path of the object */
  const search = (object: Fields, roleOf: typeof roleOfName, prefix = '', around: Path = []): void => {
    for (const name of Object.keys(object)) {
      const value = object[name]
      const path = [...around, name]
      offer(path, value, roleOf(prefix + name))
      if (!isPlainObject(value)) continue
      if (prefix === '' && isIn(parents, name)) search(value, roleOf, `${name}.`, path)
      if (roleOf === roleOfName && isIn(wrappers, prefix + name)) search(value, roleOfWrapped, '', path)
    }
  }
  search(record, roleOfName)
  return uses
}

/** Undefined if the value is not usable. */
type Reader = (value: unknown, role: NameRole, record: Fields) => unknown

const readers: Readonly<Record<NameRole['reading'], Reader>> = {
  time: readTime,
  // GELF has the severity of syslog as `level`.
  level: (value, { numbering }, record) =>
    readLevel(value, numbering === 'pino' && Object.hasOwn(record, 'short_message') ? 'syslog' : numbering),
  text: (value) => (typeof value === 'string' ? value : undefined),
  // Docker ends the string of `log` with the newline of the line.
  line: (value) => (typeof value === 'string' ? value.replace(/\n$/, '') : undefined),
  string: (value, { field }) => readString(value, field),
  environment: readEnvironment,
  stack: readStack,
  object: (value) => (isPlainObject(value) ? value : undefined),
}

/** Whether a record is one of those that a name belongs to. */
const isMet: Readonly<Record<NonNullable<NameRole['condition']>, (record: Fields) => boolean>> = {
  // Transports for Splunk and Elasticsearch move its host, or change its level. The number of its format remains.
  bunyan: (record) =>
    Object.hasOwn(record, 'pid') &&
    (Object.hasOwn(record, 'v') || (isNumber(record['level']) && Object.hasOwn(record, 'hostname'))),
  mongo: ({ t }) => isPlainObject(t) && Object.hasOwn(t, '$date'),
}

/** The metadata of the record, and all values that are not used. */
function collectMetadata(record: Fields, uses: Uses): Members {
  const metadata: Members = {}
  const given = uses.get('metadata')?.value
  if (isPlainObject(given)) {
    for (const name of Object.keys(given)) setMember(metadata, name, given[name])
  }
  const used = [...uses.values()].map(({ path }) => path)
  for (const name of Object.keys(record)) {
    const rest = withoutUsed(record[name], below(used, name))
    // For a field of the contract, null means that it is absent.
    const isAbsent = rest === undefined || (rest === null && entryFields.has(name))
    if (!isAbsent) addMember(metadata, name, rest)
  }
  return metadata
}

/** The paths that begin with a name, from there. */
function below(paths: readonly Path[], name: string): Path[] {
  return paths.filter(([first]) => first === name).map(([, ...rest]) => rest)
}

/** @returns undefined if nothing is left */
function withoutUsed(value: unknown, used: readonly Path[]): unknown {
  if (used.length === 0) return value
  if (used.some(([first]) => first === undefined) || !isPlainObject(value)) return undefined
  const rest = Object.entries(value)
    .map(([name, member]) => [name, withoutUsed(member, below(used, name))] as const)
    .filter(([, member]) => member !== undefined)
  return rest.length === 0 ? undefined : Object.fromEntries(rest)
}

function valueAt(record: unknown, path: Path): unknown {
  return path.reduce((value, name) => (isPlainObject(value) ? value[name] : value), record)
}
