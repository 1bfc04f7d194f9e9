import {
  createKey,
  hashApiKey,
  keyState,
  Registry,
  RegistryError,
  retentionDaysDefault,
  type Scope,
} from '@sluice/projects'
import { queuedRows, readRowTotals, ShardCount } from '@sluice/queue'
import { installationNames, type RedisConnection } from '@sluice/runtime'
import { withRedis } from './redis.ts'

/** Calls `use` with the registry of an installation. */
export function withRegistry<T>(
  { redisUrl, prefix }: { readonly redisUrl: string; readonly prefix: string },
  use: (registry: Registry, redis: RedisConnection) => Promise<T>,
): Promise<T> {
  const { registryPrefix } = installationNames(prefix)
  return withRedis(redisUrl, (redis) => use(new Registry(redis, registryPrefix), redis))
}

const KEY_NAME = 'local'
type Note = (text: string) => void

/** Restores the project of an earlier run if Redis has no projects and does not know its key: Redis has lost its data. */
export async function restoreProject(
  { projects, keys, identity }: Registry,
  { projectId, apiKey }: { readonly projectId: string; readonly apiKey: string },
  note: Note,
): Promise<void> {
  const fields = { projectId, name: KEY_NAME, scopes: ['ingest'], expiresAt: undefined } as const
  const { keyHash: hash, record } = createKey(fields, Date.now(), apiKey)
  // The key of a deleted project stays known.
  if ((await projects.list()).length > 0 || (await keys.find(hash)) !== undefined) return
  const { createdAt } = record
  const project = { id: projectId, createdAt, enabled: true, retentionDays: retentionDaysDefault }
  await projects.import({ ...project, keys: [{ ...record, hash }] })
  await identity.accept()
  note(
    'Redis has lost its data: entries that were not yet stored are lost. ' +
      `The project ${projectId} and its key are restored from local.json.`,
  )
}

export async function noteQueued(redis: RedisConnection, prefix: string, note: Note): Promise<void> {
  const shards = new ShardCount(redis, prefix, 1)
  await shards.refresh()
  const totals = await Promise.all(shards.names.map(({ totalsKey }) => redis.hgetall(totalsKey)))
  const queued = totals.reduce((sum, hash) => sum + queuedRows(readRowTotals(hash)), 0)
  if (queued > 0) note(`Entries of the last run that are still in the queue: ${queued}.`)
}

const isDeleted = (error: unknown): undefined => {
  if (!(error instanceof RegistryError)) throw error
}

/**
 * The id of a project that accepts entries: the earlier one, or `demo`, created if it is missing, or `demo-2` and so on. The id of a deleted
 * project stays reserved until its rows have expired, and a user may have disabled a project on purpose.
 */
export async function usableProject({ projects }: Registry, note: Note, earlierId?: string): Promise<string> {
  if (earlierId !== undefined && (await projects.find(earlierId))?.enabled === true) return earlierId
  for (let number = 1; ; number++) {
    const id = number === 1 ? 'demo' : `demo-${number}`
    const project = (await projects.find(id)) ?? (await projects.create(id).catch(isDeleted))
    if (project?.enabled === true) return id
    if (project === undefined) note(`The project ${id} was deleted.`)
    else note(`The project ${id} is disabled. To enable it: ./sluice projects enable ${id}`)
  }
}

/** Creates the project if it is missing, and a key unless `knownKey` is still active and has the scopes. @returns the active key */
export async function provisionProject(
  { projects, keys }: Registry,
  projectId: string,
  knownKey = '',
  scopes: readonly Scope[] = ['ingest'],
) {
  if ((await projects.find(projectId)) === undefined) await projects.create(projectId)
  const record = await keys.find(hashApiKey(knownKey))
  const isActive = record?.projectId === projectId && keyState(record, Date.now()) === 'active'
  const isEnough = isActive && scopes.every((scope) => record.scopes.includes(scope))
  return isEnough ? knownKey : (await keys.create(projectId, { name: KEY_NAME, scopes })).key
}
