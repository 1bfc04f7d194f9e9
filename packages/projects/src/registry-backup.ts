import { type KeyBackup, keyIdOf, requireKey, type Scope, scopeNames } from './api-key.ts'
import { type ProjectBackup, PROJECT_ID, requireLimits, retentionDaysAllowed } from './projects.ts'
import { RegistryError } from './registry-store.ts'

const FORMAT = 'sluice-projects'
const VERSION = 1

export function writeBackup(projects: readonly ProjectBackup[]): string {
  return `${JSON.stringify({ format: FORMAT, version: VERSION, projects }, null, 2)}\n`
}

/** @throws RegistryError with the place and the reason if it is not a backup */
export function readBackup(json: string): readonly ProjectBackup[] {
  let backup: unknown
  try {
    backup = JSON.parse(json)
  } catch (error) {
    throw new RegistryError(`the backup is not valid JSON: ${(error as Error).message}`, { cause: error })
  }
  const { format, version, projects } = anObject(backup, 'the backup')
  if (format !== FORMAT) throw new RegistryError(`the file is no backup: its format is not "${FORMAT}"`)
  if (version !== VERSION)
    throw new RegistryError(`the backup has the version ${String(version)} instead of ${VERSION}`)
  return listOf(projectBackup)(projects, 'projects')
}

/** Checks and returns a value of the backup. @throws RegistryError with its place */
type Read<Value> = (value: unknown, place: string) => Value

function valid<Value>(expected: string, isValid: (value: unknown) => boolean): Read<Value> {
  return (value, place) => {
    if (!isValid(value)) throw new RegistryError(`${place} must be ${expected}`)
    return value as Value
  }
}

const anObject = valid<Readonly<Record<string, unknown>>>(
  'an object',
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
)
const listOf =
  <Value>(read: Read<Value>): Read<readonly Value[]> =>
  (value, place) =>
    valid<readonly unknown[]>('an array', Array.isArray)(value, place).map((each, i) =>
      read(each, `${place}[${i}]`),
    )
const optional =
  <Value>(read: Read<Value>): Read<Value | undefined> =>
  (value, place) =>
    value === undefined ? undefined : read(value, place)
const matching = (pattern: RegExp, expected: string): Read<string> =>
  valid(expected, (value) => typeof value === 'string' && pattern.test(value))
/** Some days that no month has are read as days of the next one. */
const time = valid<string>('a time such as 2026-11-23T08:00:00.000Z', (value) => {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return !Number.isNaN(ms) && new Date(ms).toISOString() === value
})

/** Reads the fields of an object, and no others. */
function fields<Fields>(reads: { readonly [Name in keyof Fields]-?: Read<Fields[Name]> }): Read<Fields> {
  return (value, place) => {
    const object = anObject(value, place)
    const entries = Object.entries<Read<unknown>>(reads)
    return Object.fromEntries(
      entries.map(([name, read]) => [name, read(object[name], `${place}.${name}`)]),
    ) as Fields
  }
}

const key = fields<KeyBackup>({
  hash: matching(/^[0-9a-f]{64}$/, '64 hexadecimal digits'),
  id: matching(/^/, 'a string'),
  name: matching(/^/, 'a string'),
  scopes: valid<readonly Scope[]>(
    `some of ${scopeNames.join(', ')}`,
    (value) => Array.isArray(value) && value.every((scope) => scopeNames.includes(scope as Scope)),
  ),
  createdAt: time,
  expiresAt: optional(time),
  revokedAt: optional(time),
  replacedBy: optional(matching(/^key_[0-9a-f]{16}$/, 'the id of a key')),
  lastUsedAt: optional(time),
})

const keyBackup: Read<KeyBackup> = (value, place) => {
  const found = key(value, place)
  requireKey(found, `${place}: `)
  const id = keyIdOf(found.hash)
  valid(`${id}, which follows from its hash`, (given) => given === id)(found.id, `${place}.id`)
  return found
}

const projectBackup = fields<ProjectBackup>({
  id: matching(PROJECT_ID, 'the id of a project'),
  createdAt: time,
  enabled: valid('true or false', (value) => typeof value === 'boolean'),
  retentionDays: valid(`one of ${retentionDaysAllowed.join(', ')}`, (value) =>
    retentionDaysAllowed.some((days) => days === value),
  ),
  rowsUntil: optional(time),
  limits: optional((value, place) => requireLimits(anObject(value, place), `${place}: `)),
  keys: listOf(keyBackup),
})
