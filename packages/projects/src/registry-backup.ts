import { explainKey, type KeyBackup, keyIdOf, type Scope, scopeNames } from './api-key.ts'
import {
  explainLimit,
  type ProjectBackup,
  PROJECT_ID,
  projectLimitNames,
  type ProjectLimits,
  retentionDaysAllowed,
} from './projects.ts'
import { RegistryError } from './registry-store.ts'

const FORMAT = 'sluice-projects'
const VERSION = 1
const KEY_HASH = /^[0-9a-f]{64}$/
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** @returns a backup, in JSON */
export function writeBackup(projects: readonly ProjectBackup[]): string {
  return `${JSON.stringify({ format: FORMAT, version: VERSION, projects }, null, 2)}\n`
}

/** @throws RegistryError with the place and the reason if it is not a backup */
export function readBackup(json: string): ProjectBackup[] {
  let backup: unknown
  try {
    backup = JSON.parse(json)
  } catch (error) {
    throw new RegistryError(`the backup is not valid JSON: ${(error as Error).message}`, { cause: error })
  }
  const { format, version, projects } = objectAt(backup, 'the backup')
  if (format !== FORMAT) throw new RegistryError(`the file is no backup: its format is not "${FORMAT}"`)
  if (version !== VERSION)
    throw new RegistryError(`the backup has the version ${String(version)} instead of ${VERSION}`)
  const read = arrayAt(projects, 'projects').map((project, i) => readProject(project, `projects[${i}]`))
  requireUnique(read.map(({ id }, i) => [id, `projects[${i}].id`]))
  requireUnique(
    read.flatMap(({ keys }, i) => keys.map(({ id }, k) => [id, `projects[${i}].keys[${k}].id`] as const)),
  )
  return read
}

function requireUnique(ids: readonly (readonly [id: string, place: string])[]): void {
  const places = new Map<string, string>()
  for (const [id, place] of ids) {
    const first = places.get(id)
    if (first !== undefined) throw new RegistryError(`${place} is the same as ${first}`)
    places.set(id, place)
  }
}

function readProject(value: unknown, place: string): ProjectBackup {
  const { id, createdAt, enabled, retentionDays, rowsUntil, limits, keys } = objectAt(value, place)
  const found = retentionDaysAllowed.find((days) => days === retentionDays)
  if (found === undefined)
    throw invalid(`${place}.retentionDays`, `one of ${retentionDaysAllowed.join(', ')}`)
  if (typeof enabled !== 'boolean') throw invalid(`${place}.enabled`, 'true or false')
  return {
    id: textAt(id, `${place}.id`, PROJECT_ID, 'the id of a project'),
    createdAt: timeAt(createdAt, `${place}.createdAt`),
    enabled,
    retentionDays: found,
    ...(rowsUntil === undefined ? {} : { rowsUntil: timeAt(rowsUntil, `${place}.rowsUntil`) }),
    ...(limits === undefined ? {} : { limits: readLimits(limits, `${place}.limits`) }),
    keys: arrayAt(keys, `${place}.keys`).map((key, i) => readKey(key, `${place}.keys[${i}]`)),
  }
}

function readLimits(value: unknown, place: string): ProjectLimits {
  const limits = objectAt(value, place)
  return Object.fromEntries(
    projectLimitNames.flatMap((name) => {
      const limit = limits[name]
      if (limit === undefined) return []
      const reason = typeof limit === 'number' ? explainLimit(name, limit) : `${name} must be a number`
      if (reason !== undefined) throw new RegistryError(`${place}: ${reason}`)
      return [[name, limit as number]]
    }),
  )
}

function readKey(value: unknown, place: string): KeyBackup {
  const fields = objectAt(value, place)
  const { id, name, replacedBy } = fields
  const hash = textAt(fields['hash'], `${place}.hash`, KEY_HASH, '64 hexadecimal digits')
  const optionalTime = (field: string): string | undefined =>
    fields[field] === undefined ? undefined : timeAt(fields[field], `${place}.${field}`)
  if (typeof name !== 'string') throw invalid(`${place}.name`, 'a string')
  const scopes = arrayAt(fields['scopes'], `${place}.scopes`) as readonly Scope[]
  if (!scopes.every((scope) => scopeNames.includes(scope)))
    throw invalid(`${place}.scopes`, `some of ${scopeNames.join(', ')}`)
  const reason = explainKey(name, scopes)
  if (reason !== undefined) throw new RegistryError(`${place}: ${reason}`)
  if (id !== keyIdOf(hash)) throw invalid(`${place}.id`, `${keyIdOf(hash)}, which follows from its hash`)
  return {
    hash,
    id,
    name,
    scopes,
    createdAt: timeAt(fields['createdAt'], `${place}.createdAt`),
    expiresAt: optionalTime('expiresAt'),
    revokedAt: optionalTime('revokedAt'),
    replacedBy:
      replacedBy === undefined
        ? undefined
        : textAt(replacedBy, `${place}.replacedBy`, KEY_ID, 'the id of a key'),
    lastUsedAt: optionalTime('lastUsedAt'),
  }
}

const KEY_ID = /^key_[0-9a-f]{16}$/

function objectAt(value: unknown, place: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(place, 'an object')
  return value as Record<string, unknown>
}

function arrayAt(value: unknown, place: string): readonly unknown[] {
  if (!Array.isArray(value)) throw invalid(place, 'an array')
  return value as unknown[]
}

function textAt(value: unknown, place: string, pattern: RegExp, expected: string): string {
  if (typeof value === 'string' && pattern.test(value)) return value
  throw invalid(place, expected)
}

function timeAt(value: unknown, place: string): string {
  const expected = 'a time such as 2026-11-23T08:00:00.000Z'
  const time = textAt(value, place, ISO_TIME, expected)
  const date = new Date(time)
  // Some days that no month has are read as days of the next one.
  if (Number.isNaN(date.getTime()) || date.toISOString() !== time) throw invalid(place, expected)
  return time
}

function invalid(place: string, expected: string): RegistryError {
  return new RegistryError(`${place} must be ${expected}`)
}
