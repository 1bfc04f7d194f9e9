import {
  hashApiKey,
  keyIdOf,
  keyState,
  Registry,
  RegistryError,
  retentionDaysDefault,
} from '@sluice/projects'
import { queuedRows, readRowTotals, ShardCount } from '@sluice/queue'
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

const KEY_NAME = 'local'
type Note = (text: string) => void

/** Restores the project of an earlier run if Redis has no projects and does not know its key: Redis has lost its data. */
export async function restoreProject(
  { projects, keys, identity }: Registry,
  { projectId: id, apiKey }: { readonly projectId: string; readonly apiKey: string },
  note: Note,
): Promise<void> {
  const hash = hashApiKey(apiKey)
  // The key of a deleted project stays known.
  if ((await projects.list()).length > 0 || (await keys.find(hash)) !== undefined) return
  const createdAt = new Date().toISOString()
  const key = {
    hash,
    id: keyIdOf(hash),
    name: KEY_NAME,
    scopes: ['ingest'],
    createdAt,
    expiresAt: undefined,
    revokedAt: undefined,
  } as const
  await projects.import({ id, createdAt, enabled: true, retentionDays: retentionDaysDefault, keys: [key] })
  await identity.accept()
  note(
    'Redis has lost its data: entries that were not yet stored are lost. ' +
      `The project ${id} and its key are restored from local.json.`,
  )
}

/** Says how many entries are in the queue. Failed chunks are not on their way: they need an operator. */
export async function noteQueued(redis: RedisConnection, prefix: string, note: Note): Promise<void> {
  const shards = new ShardCount(redis, prefix, 1)
  await shards.refresh()
  const counts = shards.names.map(async ({ waitKey, activeKey, delayedKey, totalsKey }) => {
    const isQueued = (await redis.exists(waitKey, activeKey, delayedKey)) > 0
    return isQueued ? queuedRows(readRowTotals(await redis.hgetall(totalsKey))) : 0
  })
  const queued = (await Promise.all(counts)).reduce((sum, rows) => sum + rows, 0)
  if (queued === 0) return
  const [entries, way] = queued === 1 ? ['entry', 'is on its way'] : ['entries', 'are on their way']
  note(`${queued.toLocaleString('en-US')} ${entries} of the last run ${way} to ClickHouse.`)
}

/** A user who deletes the project after every start needs a new id each time. The ids become free after 32 days. */
const PROJECTS_MAX = 1_000

/**
 * The id of a project that accepts entries: the earlier one, or `demo`, created if it is missing, or `demo-2` and so on. The id of a deleted
 * project stays reserved until its rows have expired, and a user may have disabled a project on purpose. `note` receives a line for each
 * such id.
 */
export async function usableProject({ projects }: Registry, note: Note, earlierId?: string): Promise<string> {
  if (earlierId !== undefined && (await projects.find(earlierId))?.enabled === true) return earlierId
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
  return knownKey !== undefined && isActive
    ? knownKey
    : (await keys.create(projectId, { name: KEY_NAME })).key
}
