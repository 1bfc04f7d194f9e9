import { entryFields } from '@sluice/schema'
import { type Level, type LevelReading, readLevel } from './levels.ts'
import { addMember, isPlainObject, type Members, setMember } from './members.ts'
import { isParent, type NameRole, roleOfName } from './names.ts'
import { isNumber, readTime } from './times.ts'
import { readEnvironment, readStack, readString } from './values.ts'

type Fields = Readonly<Record<string, unknown>>

/** A value that becomes a field of the entry. */
interface Use {
  readonly rank: number
  /** The name in the record. */
  readonly name: string
  /** The name within the object under `name`, if the value is in one. */
  readonly child: string | undefined
  readonly value: unknown
}
type Uses = Map<string, Use>

/**
 * Makes an entry of the contract from a JSON record of any common logger.
 *
 * Fields of the contract that are valid stay as they are. Missing ones are taken from the names that other loggers use, and
 * translated. What is not used stays in the metadata under its own name. This includes values that are not usable, such
 * as a level that is unknown; the default is then used. A level that says more than the contract's, such as `FATAL`, is
 * kept as `originalLevel`. A record without a message gets its own JSON as the message.
 *
 * A record that needs no change is returned itself.
 *
 * Message and stack may exceed the limits of the contract: nothing is cut here.
 */
export function entryOfRecord(
  record: Fields,
  options: { readonly defaultLevel: Level },
): Record<string, unknown> {
  const uses = findUses(record)
  if (isUnchanged(record, uses)) return record
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
    addMember(metadata, 'originalLevel', valueAt(record, levelUse))
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
  const offer = (name: string, child: string | undefined, value: unknown): void => {
    const role = roleOfName(child === undefined ? name : `${name}.${child}`)
    if (role === undefined || (uses.get(role.field)?.rank ?? Number.POSITIVE_INFINITY) <= role.rank) return
    const isOther = role.condition !== undefined && !isMet[role.condition](record)
    const read = isOther ? undefined : readers[role.reading](value, role, record)
    if (read !== undefined) uses.set(role.field, { rank: role.rank, name, child, value: read })
  }
  for (const name of Object.keys(record)) {
    const value = record[name]
    offer(name, undefined, value)
    if (!isPlainObject(value) || !isParent(name)) continue
    for (const child of Object.keys(value)) offer(name, child, value[child])
  }
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
  bunyan: (record) =>
    isNumber(record['level']) && Object.hasOwn(record, 'pid') && Object.hasOwn(record, 'hostname'),
  mongo: ({ t }) => isPlainObject(t) && Object.hasOwn(t, '$date'),
}

function isUnchanged(record: Fields, uses: Uses): boolean {
  if (!uses.has('level') || !uses.has('message')) return false
  for (const [field, { name, value }] of uses) {
    if (name !== field) return false
    const read = field === 'level' ? (value as LevelReading).level : value
    if (read !== record[name]) return false
  }
  for (const field of entryFields) {
    if (!uses.has(field) && record[field] !== undefined && record[field] !== null) return false
  }
  return !isRepeated(record, uses.get('metadata')?.value)
}

/** Whether a field that becomes metadata has the name of a value in it: the API would replace one by the other. */
function isRepeated(record: Fields, metadata: unknown): boolean {
  if (!isPlainObject(metadata)) return false
  return Object.keys(record).some((name) => !entryFields.has(name) && Object.hasOwn(metadata, name))
}

/** The metadata of the record, and all values that are not used. */
function collectMetadata(record: Fields, uses: Uses): Members {
  const metadata: Members = {}
  const given = uses.get('metadata')?.value
  if (isPlainObject(given)) {
    for (const name of Object.keys(given)) setMember(metadata, name, given[name])
  }
  const used = new Map<string, Set<string | undefined>>()
  for (const { name, child } of uses.values()) {
    used.set(name, (used.get(name) ?? new Set<string | undefined>()).add(child))
  }
  for (const name of Object.keys(record)) {
    const rest = withoutUsed(record[name], used.get(name))
    // For a field of the contract, null means that it is absent.
    const isAbsent = rest === undefined || (rest === null && entryFields.has(name))
    if (!isAbsent) addMember(metadata, name, rest)
  }
  return metadata
}

/** @returns undefined if nothing is left */
function withoutUsed(value: unknown, used: ReadonlySet<string | undefined> | undefined): unknown {
  if (used === undefined) return value
  if (used.has(undefined) || !isPlainObject(value)) return undefined
  const rest = Object.fromEntries(Object.entries(value).filter(([name]) => !used.has(name)))
  return Object.keys(rest).length === 0 ? undefined : rest
}

function valueAt(record: Fields, { name, child }: Use): unknown {
  const value = record[name]
  return child !== undefined && isPlainObject(value) ? value[child] : value
}
