import type { RedisConnection, RedisScript } from '@sluice/runtime'

/** The registry rejected an operation. The message is meant for the operator who requested it. */
export class RegistryError extends Error {
  override name = 'RegistryError'
}

export interface RegistryStore {
  readonly redis: RedisConnection
  readonly now: () => number
  readonly names: ReturnType<typeof registryNames>
  /** Runs one of the scripts in `scripts.ts`. */
  readonly run: (script: string, ...parameters: Parameters<RedisScript<unknown>>) => Promise<unknown>
}

/** An object as the fields and values of a Redis hash, alternating. Undefined and null have no field. */
export const hashFields = (object: object): string[] =>
  Object.entries(object).flatMap(([name, value]) => ((value ?? null) === null ? [] : [name, String(value)]))

export function registryNames(prefix: string) {
  const project = (id: string): string => `${prefix}:project:${id}`
  return {
    /** Hash: what the installation is known by. */
    identity: `${prefix}:identity`,
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
    /** String: the hash of the key of a session, or of a link with which one can be begun. */
    session: (kind: 'session' | 'link', tokenHash: string): string => `${prefix}:${kind}:${tokenHash}`,
  }
}
