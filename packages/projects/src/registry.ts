import type { Cluster, Redis } from 'ioredis'
import { type ApiKeyRecord, keyFromHash, keyToHash, type MadeKey, makeKey, type Scope } from './key-record.ts'
import {
  explainLimit,
  limitsFromHash,
  projectLimitNames,
  type ProjectLimitChanges,
  type ProjectLimits,
} from './limits.ts'
import {
  CREATE_KEY,
  CREATE_PROJECT,
  DELETE_PROJECT,
  ENABLE_PROJECT,
  NOTE_KEYS_USED,
  REVOKE_KEY,
  ROTATE_KEY,
  SET_LIMITS,
} from './scripts.ts'

/** Owns keys and rows. */
export interface Project {
  /** Lower-case letters, digits and hyphens; chosen once, and the `project_id` of its rows. */
  readonly id: string
  readonly createdAt: string
  readonly enabled: boolean
  readonly retentionDays: number
  /** Its own limits on traffic, where it has any. */
  readonly limits?: ProjectLimits
}

export const PROJECT_ID = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * The allowed retentions. A batch may hold rows of many projects, and ClickHouse makes a part for each day of expiry in
 * it, so their number is kept small.
 */
export const retentionDaysAllowed = [1, 3, 7, 14, 30, 60, 90, 180, 365, 730] as const
export const retentionDaysDefault = 30

/**
 * How long the id of a deleted project and its keys are kept beyond its retention: a row may be received until the caches
 * of the API know, on the next day by then, and ClickHouse drops what has expired in its own time.
 */
const KEPT_BEYOND_RETENTION_DAYS = 2
/** A name is one cell of a table on a terminal. */
const KEY_NAME_CHARACTERS_MAX = 200
/** A script runs alone in Redis, and takes some 2 µs a key: 2 ms. */
const KEYS_NOTED_AT_ONCE_MAX = 1_000

/** An act that the registry refuses; the message is for the person who asked for it. */
export class RegistryError extends Error {
  override name = 'RegistryError'
}

/**
 * Projects and API keys in Redis.
 *
 * Keys of Redis, below the prefix: `projects` (set of ids), `project:ID` (hash), `project:ID:keys` (set of key hashes),
 * `project:ID:deleted` (until when a deleted project's id is kept, ms), `key:HASH` (hash), `key-ids` (hash: key id → key
 * hash). Changes are published on the channel `changes`, as the hash of the key or the id of the project, so that caches
 * let go of them.
 *
 * Keys are found by the SHA-256 of what a client sent, and that comparison need not take constant time: whoever measures
 * it learns at most how far a hash agrees with those that are kept, and cannot choose a key whose hash agrees further
 * without trying as many keys as if nothing had been learnt.
 */
export class Registry {
  readonly #redis: Redis | Cluster
  readonly #prefix: string
  readonly #now: () => number

  /** @param prefix `redisNames(…).registryPrefix` */
  constructor(redis: Redis | Cluster, prefix: string, now: () => number = Date.now) {
    this.#redis = redis
    this.#prefix = prefix
    this.#now = now
  }

  get changesChannel(): string {
    return `${this.#prefix}:changes`
  }

  /** @throws RegistryError when the id is malformed or taken */
  async createProject(id: string, retentionDays: number = retentionDaysDefault): Promise<Project> {
    if (!PROJECT_ID.test(id)) {
      throw new RegistryError(
        'a project is named by 1–63 lower-case letters, digits and hyphens, no hyphen at its ends',
      )
    }
    if (!retentionDaysAllowed.some((days) => days === retentionDays)) {
      throw new RegistryError(`a retention is one of ${retentionDaysAllowed.join(', ')} days`)
    }
    const project: Project = { id, createdAt: this.#isoNow(), enabled: true, retentionDays }
    const keys = [this.#projectKey(id), `${this.#prefix}:projects`, this.#tombstoneKey(id)]
    const made = await this.#run(CREATE_PROJECT, keys, [
      id,
      project.createdAt,
      retentionDays,
      this.changesChannel,
    ])
    if (made === 0) throw new RegistryError(`there is a project ${id} already`)
    if (made !== 1) {
      const freeOn = new Date(-Number(made)).toISOString()
      throw new RegistryError(
        `the project ${id} was deleted; its id is free again on ${freeOn}, when its rows are gone`,
      )
    }
    return project
  }

  /**
   * Lets a project receive rows, or refuses them. Its keys and its rows stay as they are.
   *
   * @throws RegistryError when there is no such project
   */
  async enableProject(id: string, enabled: boolean): Promise<void> {
    const known = await this.#run(
      ENABLE_PROJECT,
      [this.#projectKey(id)],
      [id, String(enabled), this.changesChannel],
    )
    if (known === 0) throw new RegistryError(`there is no project ${id}`)
  }

  /**
   * Deletes a project for ever. Its rows stay until they expire, and for that time nobody else gets its id, and its
   * keys stay known, so that whoever still sends with one is told that the project is gone.
   *
   * @returns until when its id is kept
   * @throws RegistryError when there is no such project
   */
  async deleteProject(id: string): Promise<Date> {
    const keys = [
      this.#projectKey(id),
      `${this.#prefix}:projects`,
      this.#tombstoneKey(id),
      `${this.#projectKey(id)}:keys`,
      `${this.#prefix}:key-ids`,
    ]
    const keptUntilMs = await this.#run(DELETE_PROJECT, keys, [
      id,
      this.#now(),
      retentionDaysDefault,
      KEPT_BEYOND_RETENTION_DAYS,
      this.#keyKey(''),
      this.changesChannel,
    ])
    if (keptUntilMs === 0) throw new RegistryError(`there is no project ${id}`)
    return new Date(Number(keptUntilMs))
  }

  async listProjects(): Promise<Project[]> {
    const ids = await this.#redis.smembers(`${this.#prefix}:projects`)
    const projects = await Promise.all(ids.toSorted().map((id) => this.findProject(id)))
    return projects.filter((project) => project !== undefined)
  }

  async findProject(id: string): Promise<Project | undefined> {
    if (!PROJECT_ID.test(id)) return undefined
    const fields = await this.#redis.hgetall(this.#projectKey(id))
    const { createdAt, enabled, retentionDays } = fields
    if (createdAt === undefined) return undefined
    const limits = limitsFromHash(fields)
    return {
      id,
      createdAt,
      enabled: enabled !== 'false',
      retentionDays: retentionDays === undefined ? retentionDaysDefault : Number(retentionDays),
      ...(limits === undefined ? {} : { limits }),
    }
  }

  /**
   * Changes some of a project's limits on traffic; those that are not named stay as they are.
   *
   * @throws RegistryError when there is no such project, or a value is not allowed
   */
  async setLimits(id: string, changes: ProjectLimitChanges): Promise<Project> {
    const set: (string | number)[] = []
    const removed: string[] = []
    for (const name of projectLimitNames) {
      const value = changes[name]
      const reason = typeof value === 'number' ? explainLimit(name, value) : undefined
      if (reason !== undefined) throw new RegistryError(reason)
      if (value === null) removed.push(name)
      else if (value !== undefined) set.push(name, value)
    }
    const found =
      PROJECT_ID.test(id) &&
      (await this.#redis.eval(SET_LIMITS, 1, this.#projectKey(id), set.length / 2, ...set, ...removed)) === 1
    if (found) await this.#redis.publish(this.changesChannel, id)
    const project = found ? await this.findProject(id) : undefined
    if (project === undefined) throw new RegistryError(`there is no project ${id}`)
    return project
  }

  /**
   * Makes a key for a project.
   *
   * @returns the key itself, which is kept nowhere, and its record
   * @throws RegistryError when there is no such project
   */
  async createKey(
    projectId: string,
    options: { name?: string; scopes?: readonly Scope[]; expiresAt?: Date } = {},
  ): Promise<{ key: string; record: ApiKeyRecord }> {
    const name = options.name ?? ''
    if (name.length > KEY_NAME_CHARACTERS_MAX) {
      throw new RegistryError(`a key's name has at most ${KEY_NAME_CHARACTERS_MAX} characters`)
    }
    if (!PROJECT_ID.test(projectId)) throw new RegistryError(`there is no project ${projectId}`)
    const expiresAt = options.expiresAt?.toISOString()
    const made = makeKey({ projectId, name, scopes: options.scopes ?? ['ingest'], expiresAt }, this.#now())
    const { key, keyHash, record } = made
    const known = await this.#run(CREATE_KEY, this.#keysOfMade(made), [
      keyHash,
      record.id,
      this.changesChannel,
      ...Object.entries(keyToHash(record)).flat(),
    ])
    if (known === 0) throw new RegistryError(`there is no project ${projectId}`)
    return { key, record }
  }

  /**
   * Makes a key in place of another one: of the same project, name, scopes and length of life. The old one ends after
   * the overlap, or when it would have ended, whichever is first.
   *
   * @returns the new key itself, which is kept nowhere, its record, and the old one's
   * @throws RegistryError when there is no such key, or it is not good any more, or was rotated already
   */
  async rotateKey(
    keyId: string,
    overlapMs: number,
  ): Promise<{ key: string; record: ApiKeyRecord; replaced: ApiKeyRecord }> {
    const { keyHash: oldHash, record: old } = await this.#findKeyById(keyId)
    const nowMs = this.#now()
    const { projectId, name, scopes, createdAt } = old
    const lifeMs = old.expiresAt === undefined ? undefined : Date.parse(old.expiresAt) - Date.parse(createdAt)
    const expiresAt = lifeMs === undefined ? undefined : new Date(nowMs + lifeMs).toISOString()
    const made = makeKey({ projectId, name, scopes, expiresAt }, nowMs)
    const { key, keyHash, record } = made
    const outcome = await this.#run(
      ROTATE_KEY,
      [...this.#keysOfMade(made), this.#keyKey(oldHash)],
      [
        keyHash,
        record.id,
        this.changesChannel,
        oldHash,
        new Date(nowMs).toISOString(),
        new Date(nowMs + overlapMs).toISOString(),
        ...Object.entries(keyToHash(record)).flat(),
      ],
    )
    if (outcome !== 'done')
      throw new RegistryError(`the key ${keyId} cannot be rotated: ${reasonOf(outcome)}`)
    return { key, record, replaced: (await this.findKey(oldHash)) ?? old }
  }

  /** The keys of a project, oldest first, revoked ones included. */
  async listKeys(projectId: string): Promise<ApiKeyRecord[]> {
    const hashes = await this.#redis.smembers(`${this.#projectKey(projectId)}:keys`)
    const records = await Promise.all(hashes.map((keyHash) => this.findKey(keyHash)))
    return records
      .filter((record) => record !== undefined)
      .toSorted((a, b) => a.createdAt.localeCompare(b.createdAt))
  }

  /** @param keyHash from `hashApiKey` */
  async findKey(keyHash: string): Promise<ApiKeyRecord | undefined> {
    return keyFromHash(await this.#redis.hgetall(this.#keyKey(keyHash)))
  }

  /**
   * Revokes a key, for ever. Revoking it again changes nothing.
   *
   * @throws RegistryError when there is no such key
   */
  async revokeKey(keyId: string): Promise<ApiKeyRecord> {
    const { keyHash, record } = await this.#findKeyById(keyId)
    const revokedAt = await this.#run(
      REVOKE_KEY,
      [this.#keyKey(keyHash)],
      [keyHash, this.#isoNow(), this.changesChannel],
    )
    if (typeof revokedAt !== 'string') throw new RegistryError(`there is no key ${keyId}`)
    return { ...record, revokedAt }
  }

  /** @param uses when keys were last used, ms since 1970, by their hashes */
  async noteKeysUsed(uses: ReadonlyMap<string, number>): Promise<void> {
    const all = [...uses]
    for (let from = 0; from < all.length; from += KEYS_NOTED_AT_ONCE_MAX) {
      const some = all.slice(from, from + KEYS_NOTED_AT_ONCE_MAX)
      await this.#run(
        NOTE_KEYS_USED,
        some.map(([keyHash]) => this.#keyKey(keyHash)),
        some.map(([, usedMs]) => new Date(usedMs).toISOString()),
      )
    }
  }

  /** The first KEYS of the scripts that make a key. */
  #keysOfMade({ keyHash, record: { projectId } }: MadeKey): string[] {
    const project = this.#projectKey(projectId)
    return [project, `${project}:keys`, this.#keyKey(keyHash), `${this.#prefix}:key-ids`]
  }

  async #findKeyById(keyId: string): Promise<{ keyHash: string; record: ApiKeyRecord }> {
    const keyHash = await this.#redis.hget(`${this.#prefix}:key-ids`, keyId)
    const record = keyHash === null ? undefined : await this.findKey(keyHash)
    if (keyHash === null || record === undefined) throw new RegistryError(`there is no key ${keyId}`)
    return { keyHash, record }
  }

  #run(script: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.#redis.eval(script, keys.length, ...keys, ...args)
  }

  #projectKey(id: string): string {
    return `${this.#prefix}:project:${id}`
  }

  /** No project has an id with a colon, so this is none's record. */
  #tombstoneKey(id: string): string {
    return `${this.#projectKey(id)}:deleted`
  }

  #keyKey(keyHash: string): string {
    return `${this.#prefix}:key:${keyHash}`
  }

  #isoNow(): string {
    return new Date(this.#now()).toISOString()
  }
}

/** Why a key is not rotated, in words. */
function reasonOf(outcome: unknown): string {
  switch (outcome) {
    case 'revoked':
      return 'it is revoked'
    case 'expired':
      return 'it has expired'
    case 'replaced':
      return 'it was rotated already; rotate the key that took its place'
    default:
      return 'its project is gone'
  }
}
