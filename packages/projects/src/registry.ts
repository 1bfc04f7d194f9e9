import { type DurableRedis, plainRedis, type RedisConnection } from '@sluice/runtime'
import { ApiKeys } from './api-keys.ts'
import { RegistryIdentity } from './identity.ts'
import { Projects } from './projects.ts'
import { registryNames, type RegistryStore } from './registry-store.ts'

/** Projects and API keys in Redis. */
export class Registry {
  readonly projects: Projects
  readonly keys: ApiKeys
  readonly identity: RegistryIdentity

  /** @param prefix `installationNames(…).registryPrefix` @param durable what the changes run on */
  constructor(
    redis: RedisConnection,
    prefix: string,
    now: () => number = Date.now,
    durable: DurableRedis = plainRedis(redis),
  ) {
    const names = registryNames(prefix)
    const run: RegistryStore['run'] = (script, keys, args) => durable.script(script)(keys, args)
    const store = { redis, now, names, run }
    this.projects = new Projects(store)
    this.keys = new ApiKeys(store)
    this.identity = new RegistryIdentity(store)
  }
}
