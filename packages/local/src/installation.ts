import { type ClickHouseAccess, migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import { type ApiApp, type App, startApi, startWorker } from './apps.ts'
import { type ClickHouseOptions, type ClickHouseProcess, startClickHouse } from './clickhouse-process.ts'
import { provisionProject, usableProject, withRegistry } from './provision.ts'
import { type RedisOptions, type RedisProcess, startRedis } from './redis-process.ts'
import type { SupervisedProcess } from './supervised-process.ts'
import { Supervisor } from './supervisor.ts'

/** A running Redis and a running ClickHouse. */
export interface Services {
  readonly supervisor: Supervisor
  readonly dataDir: string
  readonly redisUrl: string
  readonly clickhouse: ClickHouseAccess
  readonly processes: { readonly redis: SupervisedProcess; readonly clickhouse: SupervisedProcess }
  /** Stops the processes, immediately with `force`. Deletes the data directory if it is a temporary one. */
  stop(options?: { force?: boolean }): Promise<void>
}

export interface ServicesOptions {
  /** The folder for the data. Default: a temporary directory. */
  readonly dataDir?: string | undefined
  /** A supervisor that has already opened a data directory; `dataDir` is then ignored. */
  readonly supervisor?: Supervisor | undefined
  readonly redis?: RedisOptions | undefined
  readonly clickhouse?: ClickHouseOptions | undefined
  readonly progress?: Progress | undefined
}

/** Receives the progress of a start. */
export interface Progress {
  /** A slow step has begun. */
  note(text: string): void
  /** A step is done. */
  done(text: string, tookMs: number): void
}

/**
 * Starts Redis and ClickHouse. By default they are empty and have random passwords, and their data is deleted when they
 * stop, even if this process is killed.
 */
export async function startServices(options: ServicesOptions = {}): Promise<Services> {
  const supervisor = options.supervisor ?? (await Supervisor.open({ dataDir: options.dataDir }))
  try {
    const { redis, clickhouse } = await startBoth(supervisor, options)
    return {
      supervisor,
      dataDir: supervisor.dataDir,
      redisUrl: redis.url,
      clickhouse: clickhouse.access,
      processes: { redis: redis.process, clickhouse: clickhouse.process },
      stop: (how) => supervisor.stop(how),
    }
  } catch (error) {
    await supervisor.stop({ force: true })
    throw error
  }
}

async function startBoth(
  supervisor: Supervisor,
  { redis, clickhouse, progress = silent }: ServicesOptions,
): Promise<{ redis: RedisProcess; clickhouse: ClickHouseProcess }> {
  const report = <T extends { version: string; port: number }>(started: T, tookMs: number): T => {
    progress.done(`${started.version} on 127.0.0.1:${started.port}`, tookMs)
    return started
  }
  const log = (line: string): void => progress.note(line)
  const [a, b] = await Promise.all([
    timed(() => startRedis(supervisor, { log, ...redis }), report),
    timed(() => startClickHouse(supervisor, clickhouse), report),
  ])
  return { redis: a, clickhouse: b }
}

/** A running Sluice: services, an API, a worker, and a project with a key. */
export interface Installation extends Omit<Services, 'processes'> {
  readonly apiUrl: string
  readonly opsUrls: { readonly api: string; readonly worker: string }
  readonly prefix: string
  readonly projectId: string
  readonly apiKey: string
  readonly processes: Services['processes'] & {
    readonly api: SupervisedProcess
    readonly worker: SupervisedProcess
  }
}

export interface InstallationOptions extends ServicesOptions {
  /** Services that are already running. They stop with the installation; the options for starting them are ignored. */
  readonly services?: Services | undefined
  /** Separates installations that share a Redis. */
  readonly prefix?: string | undefined
  /** The project, created if it is missing. Default: `demo`, or `demo-2` and so on where the former were deleted or disabled. */
  readonly projectId?: string | undefined
  /** The project's key from an earlier start. If it is not active, a new one is created. */
  readonly apiKey?: string | undefined
  readonly api?: AppSettings & { readonly port?: number | undefined; readonly host?: string | undefined }
  readonly worker?: AppSettings
}

/** See `AppOptions`. */
export interface AppSettings {
  readonly opsPort?: number | undefined
  readonly environment?: Readonly<Record<string, string>> | undefined
  readonly entry?: string | undefined
}

/**
 * Starts an installation: Redis and ClickHouse with migrated tables, a project with a key, an API and a worker. `startApi`
 * and `startWorker` add more of them with the supervisor of the installation.
 */
export async function startInstallation(options: InstallationOptions = {}): Promise<Installation> {
  const { prefix = 'sluice', progress = silent } = options
  const services = options.services ?? (await startServices(options))
  const { redisUrl, clickhouse } = services
  try {
    await timed(
      async () => migrate(clickhouse, await readMigrations(migrationsFolder)),
      (applied, tookMs) => progress.done(describeMigrations(applied.length), tookMs),
    )
    const { projectId, apiKey } = await withRegistry({ redisUrl, prefix }, async (registry) => {
      const id = options.projectId ?? (await usableProject(registry, (text) => progress.note(text)))
      return { projectId: id, apiKey: await provisionProject(registry, id, options.apiKey) }
    })
    const { api, worker } = await startApps(services, prefix, options)
    return {
      ...services,
      apiUrl: api.url,
      opsUrls: { api: api.opsUrl, worker: worker.opsUrl },
      prefix,
      projectId,
      apiKey,
      processes: { ...services.processes, api: api.process, worker: worker.process },
    }
  } catch (error) {
    await services.stop({ force: true })
    throw error
  }
}

async function startApps(
  { supervisor, redisUrl, clickhouse }: Services,
  prefix: string,
  { api, worker, progress = silent }: InstallationOptions,
): Promise<{ api: ApiApp; worker: App }> {
  const [a, b] = await Promise.all([
    timed(
      () => startApi(supervisor, { ...api, redisUrl, prefix }),
      (app, tookMs) => {
        progress.done(`API on ${app.url}`, tookMs)
        return app
      },
    ),
    timed(
      () => startWorker(supervisor, { ...worker, redisUrl, prefix, clickhouse }),
      (app, tookMs) => {
        progress.done('Worker', tookMs)
        return app
      },
    ),
  ])
  return { api: a, worker: b }
}

function describeMigrations(count: number): string {
  return count === 0
    ? 'Tables are up to date'
    : `Tables created (${count} migration${count === 1 ? '' : 's'})`
}

async function timed<T, R>(act: () => Promise<T>, report: (result: T, tookMs: number) => R): Promise<R> {
  const startedAtMs = performance.now()
  const result = await act()
  return report(result, performance.now() - startedAtMs)
}

const silent: Progress = { note: () => undefined, done: () => undefined }
