import { type KeyBackup, keyToHash } from './api-key.ts'
import { RegistryError, type RegistryStore } from './registry-store.ts'
import { CHANGE_PROJECT, CREATE_PROJECT, DELETE_PROJECT, IMPORT_PROJECT } from './scripts.ts'

/** Owns keys and rows. */
export interface Project {
  /** Lower-case letters, digits and hyphens. It never changes, and is the `project_id` of the project's rows. */
  readonly id: string
  readonly createdAt: string
  readonly enabled: boolean
  /** Of rows that are accepted from now on. */
  readonly retentionDays: number
  /** Until when rows with an earlier retention may exist, if the retention was changed. */
  readonly rowsUntil?: string
  /** Rate limits that differ from the defaults, if there are any. */
  readonly limits?: ProjectLimits
}

/** A project with its keys: everything that Redis has about it, except counters of rate limits. */
export interface ProjectBackup extends Project {
  readonly keys: readonly KeyBackup[]
}

export const PROJECT_ID = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * The allowed retentions. A batch may hold rows of many projects, and ClickHouse creates one part per expiry day in the
 * batch, so the number of retentions is kept small.
 */
export const retentionDaysAllowed = [1, 3, 7, 14, 30, 60, 90, 180, 365, 730] as const
export const retentionDaysDefault = 30

/**
 * How long the id of a deleted project and its keys are kept beyond the retention. The API may accept a row until its
 * caches expire, which may be on the next day, and ClickHouse drops expired rows with some delay.
 */
const KEPT_BEYOND_RETENTION_DAYS = 2
/** What scripts need for the time until which rows may exist. */
const daysOfRows = [retentionDaysDefault, KEPT_BEYOND_RETENTION_DAYS]

function requireRetention(retentionDays: number): void {
  if (!retentionDaysAllowed.some((days) => days === retentionDays))
    throw new RegistryError(`the retention must be one of ${retentionDaysAllowed.join(', ')} days`)
}

/** The projects in Redis. Every change is one Lua script. */
export class Projects {
  readonly #store: RegistryStore

  constructor(store: RegistryStore) {
    this.#store = store
  }

  /** @throws RegistryError when the id is malformed or taken, or the retention is not allowed */
  async create(id: string, retentionDays: number = retentionDaysDefault): Promise<Project> {
    if (!PROJECT_ID.test(id)) {
      throw new RegistryError(
        'a project id has 1–63 lower-case letters, digits and hyphens, and no hyphen at either end',
      )
    }
    requireRetention(retentionDays)
    const { names, now } = this.#store
    const createdAt = new Date(now()).toISOString()
    const created = await this.#store.run(
      CREATE_PROJECT,
      [names.project(id), names.projects, names.tombstone(id)],
      [id, createdAt, retentionDays, names.changesChannel],
    )
    if (created === 0) throw new RegistryError(`the project ${id} already exists`)
    if (created !== 1) {
      const freeOn = new Date(-Number(created)).toISOString()
      throw new RegistryError(
        `the project ${id} was deleted; its id is free again on ${freeOn}, when its rows have expired`,
      )
    }
    return { id, createdAt, enabled: true, retentionDays }
  }

  /**
   * Sets whether a project accepts rows. Its keys and stored rows do not change.
   *
   * @throws RegistryError when there is no such project
   */
  async setEnabled(id: string, enabled: boolean): Promise<void> {
    await this.#change(id, ['enabled', String(enabled)])
  }

  /**
   * Deletes a project permanently. Its rows stay until they expire. Until then its id stays reserved, and its keys stay
   * known, so that a client that still uses one learns that the project no longer exists.
   *
   * @returns until when the id is reserved
   * @throws RegistryError when there is no such project
   */
  async delete(id: string): Promise<Date> {
    const { names, now } = this.#store
    const nowMs = now()
    const deletedAt = new Date(nowMs).toISOString()
    const keptUntilMs = await this.#store.run(
      DELETE_PROJECT,
      [names.project(id), names.projects, names.tombstone(id), names.keysOfProject(id), names.keyIds],
      [id, nowMs, ...daysOfRows, names.apiKey(''), names.changesChannel, deletedAt],
    )
    if (keptUntilMs === 0) throw noSuchProject(id)
    return new Date(Number(keptUntilMs))
  }

  /**
   * Stores a project and its keys as they were when the backup was made, also if its id is reserved because it was deleted. A key that was
   * revoked or rotated since then stays revoked or replaced, and a key that was created since then stays deleted.
   *
   * @returns false if the project exists; then nothing is changed
   * @throws RegistryError when one of the keys belongs to another project, which may be deleted; then nothing is changed
   */
  async import({ keys, ...project }: ProjectBackup): Promise<boolean> {
    const { names } = this.#store
    const { id, createdAt, enabled, retentionDays, rowsUntil, limits = {} } = project
    const fields = Object.entries({
      createdAt,
      enabled: String(enabled),
      retentionDays: String(retentionDays),
      ...(rowsUntil === undefined ? {} : { rowsUntilMs: String(Date.parse(rowsUntil)) }),
      ...Object.fromEntries(Object.entries(limits).map(([name, value]) => [name, String(value)])),
    }).flat()
    const records = keys.map(({ hash, ...record }) => ({
      hash,
      id: record.id,
      fields: Object.entries(keyToHash({ ...record, projectId: id })).flat(),
    }))
    const imported = await this.#store.run(
      IMPORT_PROJECT,
      [names.project(id), names.projects, names.tombstone(id), names.keysOfProject(id), names.keyIds],
      [id, names.changesChannel, names.apiKey(''), JSON.stringify({ fields, keys: records })],
    )
    if (Array.isArray(imported)) {
      const [keyId, owner] = imported as string[]
      throw new RegistryError(
        `the project ${id} cannot be imported: its key ${keyId} belongs to the project ${owner}`,
      )
    }
    return imported === 1
  }

  /** All projects, ordered by id. */
  async list(): Promise<Project[]> {
    const ids = await this.#store.redis.smembers(this.#store.names.projects)
    const projects = await Promise.all(ids.toSorted().map((id) => this.find(id)))
    return projects.filter((project) => project !== undefined)
  }

  async find(id: string): Promise<Project | undefined> {
    if (!PROJECT_ID.test(id)) return undefined
    const fields = await this.#store.redis.hgetall(this.#store.names.project(id))
    const { createdAt, enabled, retentionDays, rowsUntilMs } = fields
    if (createdAt === undefined) return undefined
    const limits = limitsFromHash(fields)
    return {
      id,
      createdAt,
      enabled: enabled !== 'false',
      retentionDays: retentionDays === undefined ? retentionDaysDefault : Number(retentionDays),
      ...(rowsUntilMs === undefined ? {} : { rowsUntil: new Date(Number(rowsUntilMs)).toISOString() }),
      ...(limits === undefined ? {} : { limits }),
    }
  }

  /**
   * Changes the retention and some of the rate limits of a project. The others stay as they are, and so do stored rows.
   *
   * @throws RegistryError when there is no such project, or a value is not allowed
   */
  async update(id: string, { retentionDays, ...limits }: ProjectChanges): Promise<Project> {
    const set: (string | number)[] = []
    const removed: string[] = []
    if (retentionDays !== undefined) {
      requireRetention(retentionDays)
      set.push('retentionDays', retentionDays)
    }
    for (const name of projectLimitNames) {
      const value = limits[name]
      if (value === undefined) continue
      const reason = value === null ? undefined : explainLimit(name, value)
      if (reason !== undefined) throw new RegistryError(reason)
      if (value === null) removed.push(name)
      else set.push(name, value)
    }
    await this.#change(id, set, removed)
    const project = await this.find(id)
    if (project === undefined) throw noSuchProject(id)
    return project
  }

  /** @param set names and values of fields, alternating */
  async #change(
    id: string,
    set: readonly (string | number)[],
    removed: readonly string[] = [],
  ): Promise<void> {
    const { names, now } = this.#store
    const parameters = [id, names.changesChannel, now(), ...daysOfRows, set.length / 2, ...set, ...removed]
    if (
      !PROJECT_ID.test(id) ||
      (await this.#store.run(CHANGE_PROJECT, [names.project(id)], parameters)) === 0
    )
      throw noSuchProject(id)
  }
}

export function noSuchProject(id: string): RegistryError {
  return new RegistryError(`there is no project ${id}`)
}

/**
 * The rate limits of a project that differ from the defaults of the API processes. An absent limit means the default. A
 * rate of 0 means no limit. A burst is the amount that may be sent at once after a pause.
 */
export interface ProjectLimits {
  readonly entriesPerSecond?: number
  readonly burstEntries?: number
  /** Counts decoded bodies. */
  readonly bytesPerSecond?: number
  readonly burstBytes?: number
}

export type ProjectLimitName = keyof ProjectLimits

/** Changes to a project. Null restores the default of a limit. */
export type ProjectChanges = { readonly [Name in ProjectLimitName]?: number | null } & {
  readonly retentionDays?: number
}

/**
 * The allowed values. The maxima are far above what any installation can process, and keep sums exact. A byte limit below
 * 1 KiB per second would allow less than one entry per second: almost certainly a mistake in the unit.
 */
const projectLimitRanges: Readonly<Record<ProjectLimitName, readonly [min: number, max: number]>> = {
  entriesPerSecond: [1, 1_000_000_000],
  burstEntries: [1, 1_000_000_000],
  bytesPerSecond: [1_024, 1_000_000_000_000],
  burstBytes: [1_024, 1_000_000_000_000],
}

export const projectLimitNames = Object.keys(projectLimitRanges) as readonly ProjectLimitName[]

/** A human-readable reason why the value is invalid, or undefined if it is valid. */
export function explainLimit(name: ProjectLimitName, value: number): string | undefined {
  const [min, max] = projectLimitRanges[name]
  const isRate = name === 'entriesPerSecond' || name === 'bytesPerSecond'
  if (Number.isInteger(value) && ((value >= min && value <= max) || (isRate && value === 0))) return undefined
  return `${name} must be a whole number from ${min} to ${max}${isRate ? ', or 0 for no limit' : ''}`
}

/** The limits in the fields of a project's hash; undefined when the project has none. */
function limitsFromHash(fields: Readonly<Record<string, string>>): ProjectLimits | undefined {
  const found = projectLimitNames.filter((name) => fields[name] !== undefined)
  return found.length === 0
    ? undefined
    : Object.fromEntries(found.map((name) => [name, Number(fields[name])]))
}
