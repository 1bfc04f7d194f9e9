import type { Redis } from 'ioredis'
import { generateApiKey, hashApiKey } from './api-key.ts'
import {
  explainLimit,
  limitsFromHash,
  projectLimitNames,
  type ProjectLimitChanges,
  type ProjectLimits,
} from './limits.ts'

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

export type Scope = 'ingest' | 'read'

/** What is kept of an API key. Times are ISO 8601. */
export interface ApiKeyRecord {
  /** Names the key for people; tells nothing of its secret. */
  readonly id: string
  readonly projectId: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: string
  readonly expiresAt: string | undefined
  readonly revokedAt: string | undefined
}

export const PROJECT_ID = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * The allowed retentions. A batch may hold rows of many projects, and ClickHouse makes a part for each day of expiry in
 * it, so their number is kept small.
 */
export const retentionDaysAllowed = [1, 3, 7, 14, 30, 60, 90, 180, 365, 730] as const
export const retentionDaysDefault = 30

/** KEYS: the project, the set of projects. ARGV: id, time of creation, retention in days. 0 when the id is taken. */
const CREATE_PROJECT = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'createdAt', ARGV[2], 'enabled', 'true', 'retentionDays', ARGV[3])
return redis.call('SADD', KEYS[2], ARGV[1])`

/** KEYS: the project. ARGV: how many fields are set, these with their values, the fields to remove. 0: no such project. */
const SET_LIMITS = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local last = 1 + 2 * tonumber(ARGV[1])
for i = 2, last, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
for i = last + 1, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
return 1`

/** An act that the registry refuses; the message is for the person who asked for it. */
export class RegistryError extends Error {
  override name = 'RegistryError'
}

/**
 * Projects and API keys in Redis.
 *
 * Keys of Redis, below the prefix: `projects` (set of ids), `project:ID` (hash), `project:ID:keys` (set of key hashes),
 * `key:HASH` (hash), `key-ids` (hash: key id → key hash). Changes are published on the channel `changes`, as the hash of
 * the key or the id of the project, so that caches let go of them.
 */
export class Registry {
  readonly #redis: Redis
  readonly #prefix: string
  readonly #now: () => number

  /** @param prefix `redisNames(…).registryPrefix` */
  constructor(redis: Redis, prefix: string, now: () => number = Date.now) {
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
    const keys = [this.#projectKey(id), `${this.#prefix}:projects`]
    const made = await this.#redis.eval(CREATE_PROJECT, 2, ...keys, id, project.createdAt, retentionDays)
    if (made === 0) throw new RegistryError(`there is a project ${id} already`)
    await this.#redis.publish(this.changesChannel, id)
    return project
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
    if ((await this.findProject(projectId)) === undefined)
      throw new RegistryError(`there is no project ${projectId}`)
    const key = generateApiKey()
    const keyHash = hashApiKey(key)
    const record: ApiKeyRecord = {
      id: `key_${keyHash.slice(0, 16)}`,
      projectId,
      name: options.name ?? '',
      scopes: options.scopes ?? ['ingest'],
      createdAt: this.#isoNow(),
      expiresAt: options.expiresAt?.toISOString(),
      revokedAt: undefined,
    }
    await this.#redis
      .multi()
      .hset(this.#keyKey(keyHash), toHash(record))
      .sadd(`${this.#projectKey(projectId)}:keys`, keyHash)
      .hset(`${this.#prefix}:key-ids`, record.id, keyHash)
      .publish(this.changesChannel, keyHash)
      .exec()
    return { key, record }
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
    return fromHash(await this.#redis.hgetall(this.#keyKey(keyHash)))
  }

  /**
   * Revokes a key, for ever. Revoking it again changes nothing.
   *
   * @throws RegistryError when there is no such key
   */
  async revokeKey(keyId: string): Promise<ApiKeyRecord> {
    const keyHash = await this.#redis.hget(`${this.#prefix}:key-ids`, keyId)
    const record = keyHash === null ? undefined : await this.findKey(keyHash)
    if (keyHash === null || record === undefined) throw new RegistryError(`there is no key ${keyId}`)
    const revokedAt = record.revokedAt ?? this.#isoNow()
    await this.#redis
      .multi()
      .hset(this.#keyKey(keyHash), { revokedAt })
      .publish(this.changesChannel, keyHash)
      .exec()
    return { ...record, revokedAt }
  }

  #projectKey(id: string): string {
    return `${this.#prefix}:project:${id}`
  }

  #keyKey(keyHash: string): string {
    return `${this.#prefix}:key:${keyHash}`
  }

  #isoNow(): string {
    return new Date(this.#now()).toISOString()
  }
}

function toHash({ scopes, expiresAt, revokedAt, ...record }: ApiKeyRecord): Record<string, string> {
  return {
    ...record,
    scopes: scopes.join(' '),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(revokedAt === undefined ? {} : { revokedAt }),
  }
}

function fromHash(fields: Record<string, string>): ApiKeyRecord | undefined {
  const { id, projectId, name = '', scopes = '', createdAt = '', expiresAt, revokedAt } = fields
  if (id === undefined || projectId === undefined) return undefined
  return { id, projectId, name, scopes: scopes.split(' ').filter(isScope), createdAt, expiresAt, revokedAt }
}

function isScope(scope: string): scope is Scope {
  return scope === 'ingest' || scope === 'read'
}
