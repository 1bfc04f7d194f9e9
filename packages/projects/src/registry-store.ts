import type { DurableRedis, RedisConnection } from '@sluice/runtime'

/** The registry rejected an operation. The message is meant for the operator who requested it. */
export class RegistryError extends Error {
  override name = 'RegistryError'
}

/** What projects and keys share: the connection to Redis, the clock and the names of the Redis keys. */
export class RegistryStore {
  readonly redis: RedisConnection
  readonly #durable: DurableRedis
  /** Wall clock, ms since 1970. */
  readonly now: () => number
  readonly names: RegistryNames

  constructor(redis: RedisConnection, prefix: string, now: () => number, durable: DurableRedis) {
    this.redis = redis
    this.#durable = durable
    this.now = now
    this.names = registryNames(prefix)
  }

  /** Runs one of the scripts in `scripts.ts`. */
  run(script: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.#durable.script(script)(keys, args)
  }
}

export type RegistryNames = ReturnType<typeof registryNames>

function registryNames(prefix: string) {
  const project = (id: string): string => `${prefix}:project:${id}`
  return {
    /** Channel: the id of each project and the hash of each key that changes. */
    changesChannel: `${prefix}:changes`,
    /** Set: the ids of all projects. */
    projects: `${prefix}:projects`,
    /** Hash: a project's record. */
    project,
    /** Set: the hashes of a project's keys. */
    keysOfProject: (id: string): string => `${project(id)}:keys`,
    /**
     * String: until when the id of a deleted project is reserved, ms since 1970. Project ids contain no colon, so this
     * name never collides with a project's record.
     */
    tombstone: (id: string): string => `${project(id)}:deleted`,
    /** Hash: the record of the API key with this hash. */
    apiKey: (keyHash: string): string => `${prefix}:key:${keyHash}`,
    /** Hash: key id → key hash. */
    keyIds: `${prefix}:key-ids`,
  }
}
