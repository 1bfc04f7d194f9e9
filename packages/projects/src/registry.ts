import type { Cluster, Redis } from 'ioredis'
import { ApiKeys } from './api-keys.ts'
import { Projects } from './projects.ts'
import { RegistryStore } from './registry-store.ts'

/** Projects and API keys in Redis. */
export class Registry {
  readonly projects: Projects
  readonly keys: ApiKeys
  /** Redis channel: the id of each project and the hash of each key that changes, so that caches evict it. */
  readonly changesChannel: string

  /** @param prefix `redisNames(…).registryPrefix` */
  constructor(redis: Redis | Cluster, prefix: string, now: () => number = Date.now) {
    const store = new RegistryStore(redis, prefix, now)
    this.projects = new Projects(store)
    this.keys = new ApiKeys(store)
    this.changesChannel = store.names.changesChannel
  }
}
