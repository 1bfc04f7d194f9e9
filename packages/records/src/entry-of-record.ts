import { entryFields } from '@sluice/schema'
import { type Level, type LevelReading, readLevel, readMongoLevel } from './levels.ts'
import { addMember, isPlainObject, type Members, setMember } from './members.ts'
import { isParent, type NameRole, type Role, roleOfName, roles } from './names.ts'
import { readTime } from './times.ts'
import {
  readEnvironment,
  readMessage,
  readPathname,
  readService,
  readSource,
  readStack,
  readUrl,
} from './values.ts'

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
  const offer = (name: string, child: string | undefined, { role, rank }: NameRole, value: unknown): void => {
    const { field, rank: rankOfRole } = roles[role]
    const total = rank + rankOfRole
    if ((uses.get(field)?.rank ?? Number.POSITIVE_INFINITY) <= total) return
    const read = readers[role](value, child ?? name, record)
    if (read !== undefined) uses.set(field, { rank: total, name, child, value: read })
  }
  for (const name of Object.keys(record)) {
    const value = record[name]
    const role = roleOfName(name)
    if (role !== undefined) offer(name, undefined, role, value)
    if (!isPlainObject(value) || !isParent(name)) continue
    for (const child of Object.keys(value)) {
      const childRole = roleOfName(`${name}.${child}`)
      if (childRole !== undefined) offer(name, child, childRole, value[child])
    }
  }
  const mongoLevel = uses.has('level') ? undefined : readMongoLevel(record)
  if (mongoLevel !== undefined) {
    uses.set('level', { rank: 0, name: 's', child: undefined, value: mongoLevel })
  }
  return uses
}

/** Undefined if the value is not usable. */
type RoleReader = (value: unknown, name: string, record: Fields) => unknown

const readers: Readonly<Record<Role, RoleReader>> = {
  time: readTime,
  level: (value, name, record) => readLevel(value, isSyslogNumber(name, record) ? 'syslog' : 'pino'),
  levelSyslog: (value) => readLevel(value, 'syslog'),
  levelOtel: (value) => readLevel(value, 'otel'),
  levelPython: (value) => readLevel(value, 'python'),
  message: readMessage,
  service: readService,
  serviceOfBunyan: (value, _name, record) => (isBunyanRecord(record) ? readService(value) : undefined),
  environment: readEnvironment,
  source: readSource,
  url: readUrl,
  pathname: readPathname,
  stack: readStack,
  metadata: (value) => (isPlainObject(value) ? value : undefined),
}

/** Elsewhere `name` is the name of a logger or of a thing. */
function isBunyanRecord(record: Fields): boolean {
  return (
    typeof record['level'] === 'number' && Object.hasOwn(record, 'pid') && Object.hasOwn(record, 'hostname')
  )
}

/** GELF has the severity of syslog as `level`. A number under `severity` is syslog's too (RFC 5424). */
function isSyslogNumber(name: string, record: Fields): boolean {
  return name === 'severity' || (name === 'level' && Object.hasOwn(record, 'short_message'))
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
