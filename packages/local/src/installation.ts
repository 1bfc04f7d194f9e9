import { type ClickHouseAccess, migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import { type Address, type AppSettings, startApi, startQuery, startWorker } from './apps.ts'
import { type ClickHouseOptions, startClickHouse } from './clickhouse.ts'
import { noteQueued, provisionProject, restoreProject, usableProject, withRegistry } from './provision.ts'
import { type RedisOptions, startRedis } from './redis.ts'
import type { SupervisedProcess } from './supervised-process.ts'
import { Supervisor } from './supervisor.ts'

export interface Services {
  readonly supervisor: Supervisor
  readonly dataDir: string
  readonly redisUrl: string
  readonly clickhouse: ClickHouseAccess
  /** Of a user who can only read entries, if there is one. */
  readonly readAccess?: ClickHouseAccess
  readonly processes: Readonly<Record<'redis' | 'clickhouse', SupervisedProcess>>
  /** Stops the processes, immediately with `force`. Deletes the data directory if it is a temporary one. */
  stop(options?: { force?: boolean }): Promise<void>
}

export interface ServicesOptions {
  readonly dataDir?: string | undefined
  /** A supervisor that has already opened a data directory; `dataDir` is then ignored. */
  readonly supervisor?: Supervisor | undefined
  readonly redis?: RedisOptions | undefined
  readonly clickhouse?: ClickHouseOptions | undefined
  readonly note?: ((text: string) => void) | undefined
}

/** Starts Redis and ClickHouse. By default they are empty and have random passwords, and their data is deleted when they stop. */
export async function startServices(options: ServicesOptions = {}): Promise<Services> {
  const supervisor = options.supervisor ?? new Supervisor({ dataDir: options.dataDir })
  try {
    const [redis, clickhouse] = await Promise.all([
      startRedis(supervisor, { note: options.note, ...options.redis }),
      startClickHouse(supervisor, options.clickhouse),
    ])
    return {
      supervisor,
      dataDir: supervisor.dataDir,
      redisUrl: redis.url,
      clickhouse: clickhouse.access,
      readAccess: clickhouse.readAccess,
      processes: { redis: redis.process, clickhouse: clickhouse.process },
      stop: (how) => supervisor.stop(how),
    }
  } catch (error) {
    await supervisor.stop({ force: true })
    throw error
  }
}

export interface Installation extends Omit<Services, 'processes'> {
  readonly apiUrl: string
  readonly opsUrls: { readonly api: string; readonly worker: string; readonly query?: string }
  /** Of the query process, if there is one. */
  readonly queryUrl?: string
  /** With the scopes `read` and `admin`. */
  readonly readKey?: string
  readonly prefix: string
  readonly projectId: string
  readonly apiKey: string
  readonly processes: Services['processes'] &
    Readonly<Record<'api' | 'worker', SupervisedProcess> & Partial<Record<'query', SupervisedProcess>>>
}

export interface InstallationOptions extends ServicesOptions {
  /** Services that are already running. They stop with the installation; the options for starting them are ignored. */
  readonly services?: Services | undefined
  readonly prefix?: string | undefined
  /** The project and the key of an earlier run. They are restored if Redis has lost them. */
  readonly earlier?:
    | { readonly projectId: string; readonly apiKey: string; readonly readKey?: string | undefined }
    | undefined
  readonly api?: AppSettings & Address
  readonly worker?: AppSettings
  /** Default: there is no query process. */
  readonly query?: (AppSettings & Address) | undefined
}

/** Starts Redis and ClickHouse with migrated tables, a project with keys, an API, a worker, and perhaps a query process. `startApi` and `startWorker` add more. */
export async function startInstallation(options: InstallationOptions = {}): Promise<Installation> {
  const { prefix = 'sluice', note = () => undefined, earlier } = options
  const services = options.services ?? (await startServices(options))
  const { supervisor, redisUrl, clickhouse, readAccess = clickhouse } = services
  try {
    await migrate(clickhouse, await readMigrations(migrationsFolder))
    const project = await withRegistry({ redisUrl, prefix }, async (registry, redis) => {
      if (earlier !== undefined) await restoreProject(registry, earlier, note)
      await noteQueued(redis, prefix, note)
      const projectId = await usableProject(registry, note, earlier?.projectId)
      const apiKey = await provisionProject(registry, projectId, earlier?.apiKey)
      if (options.query === undefined) return { projectId, apiKey }
      return {
        projectId,
        apiKey,
        readKey: await provisionProject(registry, projectId, earlier?.readKey, ['read', 'admin']),
      }
    })
    const [api, worker, query] = await Promise.all([
      startApi(supervisor, { ...options.api, redisUrl, prefix }),
      startWorker(supervisor, { ...options.worker, redisUrl, prefix, clickhouse }),
      options.query && startQuery(supervisor, { ...options.query, redisUrl, prefix, clickhouse: readAccess }),
    ])
    return {
      ...services,
      ...project,
      apiUrl: api.url,
      ...(query && { queryUrl: query.url }),
      opsUrls: { api: api.opsUrl, worker: worker.opsUrl, ...(query && { query: query.opsUrl }) },
      prefix,
      processes: {
        ...services.processes,
        api: api.process,
        worker: worker.process,
        ...(query && { query: query.process }),
      },
    }
  } catch (error) {
    await services.stop({ force: true })
    throw error
  }
}
