import { hashApiKey, keyState, Registry, RegistryError } from '@sluice/projects'
import { connectRedis, installationNames, type RedisConnection } from '@sluice/runtime'

const DEADLINE_MS = 5_000

/** Calls `use` with the registry of an installation. The connection is closed when `use` has finished, or after 5 s. */
export async function withRegistry<T>(
  { redisUrl, prefix }: { readonly redisUrl: string; readonly prefix: string },
  use: (registry: Registry, redis: RedisConnection) => Promise<T>,
): Promise<T> {
  const redis = connectRedis(redisUrl, { failFast: false })
  redis.on('error', () => undefined)
  const timeout = setTimeout(() => redis.disconnect(), DEADLINE_MS)
  try {
    return await use(new Registry(redis, installationNames(prefix).registryPrefix), redis)
  } finally {
    clearTimeout(timeout)
    redis.disconnect()
  }
}

/** A user who deletes the project after every start needs a new id each time. The ids become free after 32 days. */
const PROJECTS_MAX = 1_000

/**
 * The id of a project that accepts entries: `demo`, created if it is missing, or `demo-2` and so on. The id of a deleted project stays
 * reserved until its rows have expired, and a user may have disabled a project on purpose. `note` receives a line for each such id.
 */
export async function usableProject({ projects }: Registry, note: (text: string) => void): Promise<string> {
  for (let number = 1; number <= PROJECTS_MAX; number++) {
    const id = number === 1 ? 'demo' : `demo-${number}`
    const project = await projects.find(id)
    if (project?.enabled === true) return id
    if (project !== undefined) {
      note(`The project ${id} is disabled. To enable it: ./sluice projects enable ${id}`)
      continue
    }
    try {
      return (await projects.create(id)).id
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error
      note(`The project ${id} was deleted.`)
    }
  }
  throw new Error('all projects of npm start are deleted or disabled; set SLUICE_DATA_DIR to a new folder')
}

/** Creates the project if it is missing, and a key unless `knownKey` is still active. @returns the active key */
export async function provisionProject(
  { projects, keys }: Registry,
  projectId: string,
  knownKey?: string,
): Promise<string> {
  if ((await projects.find(projectId)) === undefined) await projects.create(projectId)
  const record = knownKey === undefined ? undefined : await keys.find(hashApiKey(knownKey))
  const isActive = record?.projectId === projectId && keyState(record, Date.now()) === 'active'
  return knownKey !== undefined && isActive ? knownKey : (await keys.create(projectId, { name: 'local' })).key
}
