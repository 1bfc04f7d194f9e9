import { type KeyBackup, keyToHash } from './api-key.ts'
import { hashFields, RegistryError, type RegistryStore } from './registry-store.ts'
import { ADD_PROJECT, CHANGE_PROJECT, DELETE_PROJECT } from './scripts.ts'

export interface Project {
  /** Lower-case letters, digits and hyphens. It never changes, and is the `project_id` of the project's rows. */
  readonly id: string
  readonly createdAt: string
  readonly enabled: boolean
  /** Of rows that are accepted from now on. */
  readonly retentionDays: number
  /** Until when rows with an earlier retention may exist, if the retention was changed. */
  readonly rowsUntil?: string | undefined
  /** Rate limits that differ from the defaults, if there are any. */
  readonly limits?: ProjectLimits | undefined
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

function requireRetention(retentionDays: number): void {
  if (!retentionDaysAllowed.some((days) => days === retentionDays))
    throw new RegistryError(`the retention must be one of ${retentionDaysAllowed.join(', ')} days`)
}

export class Projects {
  readonly #store: RegistryStore

  constructor(store: RegistryStore) {
    this.#store = store
  }

  /** @throws RegistryError when the id is malformed or taken, or the retention is not allowed */
  async create(id: string, retentionDays: number = retentionDaysDefault): Promise<Project> {
    if (!PROJECT_ID.test(id))
      throw new RegistryError(
        'a project id has 1–63 lower-case letters, digits and hyphens, and no hyphen at either end',
      )
    requireRetention(retentionDays)
    const createdAt = new Date(this.#store.now()).toISOString()
    const fields = { createdAt, enabled: true, retentionDays }
    const created = await this.#run(ADD_PROJECT, id, [JSON.stringify({ fields: hashFields(fields) })])
    if (created === 0) throw new RegistryError(`the project ${id} already exists`)
    if (created !== 1)
      throw new RegistryError(
        `the project ${id} was deleted; its id is free again on ${new Date(Number(created)).toISOString()}, when its rows have expired`,
      )
    return { id, ...fields }
  }

  /**
   * Deletes a project permanently. Its rows stay until they expire. Until then its id stays reserved, and its keys stay
   * known, so that a client that still uses one learns that the project no longer exists.
   *
   * @returns until when the id is reserved
   * @throws RegistryError when there is no such project
   */
  async delete(id: string): Promise<Date> {
    const nowMs = this.#store.now()
    const keptUntilMs = await this.#run(DELETE_PROJECT, id, [nowMs, new Date(nowMs).toISOString()])
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
  async import({ id, rowsUntil, limits, keys: backups, ...rest }: ProjectBackup): Promise<boolean> {
    const rowsUntilMs = rowsUntil && Date.parse(rowsUntil)
    const fields = hashFields({ ...rest, rowsUntilMs, ...limits })
    const keys = backups.map(({ hash, ...record }) => ({
      hash,
      id: record.id,
      fields: keyToHash({ ...record, projectId: id }),
    }))
    const imported = await this.#run(ADD_PROJECT, id, [JSON.stringify({ fields, keys })])
    if (Array.isArray(imported)) {
      const [keyId, owner] = imported as string[]
      throw new RegistryError(
        `the project ${id} cannot be imported: its key ${keyId} belongs to the project ${owner}`,
      )
    }
    return imported === 1
  }

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
    const limits = projectLimitNames.flatMap((name) => (name in fields ? [[name, Number(fields[name])]] : []))
    return {
      id,
      createdAt,
      enabled: enabled !== 'false',
      retentionDays: Number(retentionDays),
      rowsUntil: rowsUntilMs && new Date(Number(rowsUntilMs)).toISOString(),
      limits: limits.length === 0 ? undefined : Object.fromEntries(limits),
    }
  }

  /**
   * Changes what is given of a project: whether it accepts rows, their retention, and its rate limits. Its keys and stored rows stay as they
   * are.
   *
   * @throws RegistryError when there is no such project, or a value is not allowed
   */
  async update(id: string, changes: ProjectChanges): Promise<Project> {
    if (changes.retentionDays !== undefined) requireRetention(changes.retentionDays)
    requireLimits(changes)
    const json = JSON.stringify(changes, (_, value: number | boolean | object | null) =>
      typeof value === 'object' ? value : String(value),
    )
    if (PROJECT_ID.test(id)) await this.#run(CHANGE_PROJECT, id, [this.#store.now(), json])
    const project = await this.find(id)
    if (project === undefined) throw noSuchProject(id)
    return project
  }

  /** Runs a script with all keys of a project, and the arguments that the scripts have in common. */
  #run(script: string, id: string, args: readonly (string | number)[]): Promise<unknown> {
    const { names, run } = this.#store
    return run(
      script,
      [names.project(id), names.projects, names.tombstone(id), names.keysOfProject(id), names.keyIds],
      [id, names.apiKey(''), ...args],
    )
  }
}

export const noSuchProject = (id: string): RegistryError => new RegistryError(`there is no project ${id}`)

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
  readonly enabled?: boolean
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

const projectLimitNames = Object.keys(projectLimitRanges) as readonly ProjectLimitName[]

/** @returns the limits among some fields @throws RegistryError if one is neither absent, nor null, nor valid */
export function requireLimits(
  fields: { readonly [Name in ProjectLimitName]?: unknown },
  place = '',
): ProjectLimits {
  const limits = projectLimitNames.map((name) => {
    const [value, [min, max]] = [fields[name] ?? undefined, projectLimitRanges[name]] as const
    const isRate = name === 'entriesPerSecond' || name === 'bytesPerSecond'
    const isValid =
      Number.isInteger(value) && Number(value) <= max && (Number(value) >= min || (isRate && value === 0))
    if (value !== undefined && !isValid)
      throw new RegistryError(
        `${place}${name} must be a whole number from ${min} to ${max}${isRate ? ', or 0 for no limit' : ''}`,
      )
    return [name, value]
  })
  return Object.fromEntries(limits)
}
