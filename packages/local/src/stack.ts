import { Registry, hashApiKey, keyState } from '@sluice/projects'
import { type ClickHouseAccess, connectRedis, migrate, readMigrations } from '@sluice/runtime'
import { migrationsFolder, redisNames } from '@sluice/schema'
import { type ApiApp, type App, startApi, startWorker } from './apps.ts'
import { type ClickHouseOptions, type ClickHouseServer, startClickHouse } from './clickhouse.ts'
import { type RedisOptions, type RedisServer, startRedis } from './redis.ts'
import type { SupervisedProcess } from './supervised-process.ts'
import { Supervisor } from './supervisor.ts'

export interface Services {
  readonly supervisor: Supervisor
  readonly dataDir: string
  readonly redisUrl: string
  readonly clickhouse: ClickHouseAccess
  readonly processes: { readonly redis: SupervisedProcess; readonly clickhouse: SupervisedProcess }
  /** Ends the processes, at once with `force`; a temporary data directory goes with them. */
  stop(options?: { force?: boolean }): Promise<void>
}

export interface ServicesOptions {
  /** Where the data is; a temporary directory without it. */
  readonly dataDir?: string | undefined
  /** Whoever has the data directory already. It is not asked for with `dataDir`. */
  readonly supervisor?: Supervisor | undefined
  readonly redis?: RedisOptions | undefined
  readonly clickhouse?: ClickHouseOptions | undefined
  readonly progress?: Progress | undefined
}

/** Told how the start goes on. */
export interface Progress {
  /** Something that takes long has begun. */
  note(text: string): void
  /** Something is done. */
  done(text: string, tookMs: number): void
}

/**
 * Starts Redis and ClickHouse. Without options they are empty, have random passwords, and go with their data at the end,
 * even if this process is killed.
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
): Promise<{ redis: RedisServer; clickhouse: ClickHouseServer }> {
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

export interface Stack extends Omit<Services, 'processes'> {
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

export interface StackOptions extends ServicesOptions {
  /** Run already, and are ended with the stack; the options for their start are not asked for. */
  readonly services?: Services | undefined
  /** Sets installations apart that share a Redis. */
  readonly prefix?: string | undefined
  /** The project that is made if it is missing. */
  readonly projectId?: string | undefined
  /** The project's key, from an earlier start. A new one is made where it is no longer good. */
  readonly apiKey?: string | undefined
  readonly api?: AppSettings & { readonly port?: number | undefined }
  readonly worker?: AppSettings
}

/** See `AppOptions`. */
export interface AppSettings {
  readonly opsPort?: number | undefined
  readonly environment?: Readonly<Record<string, string>> | undefined
  readonly entry?: string | undefined
}

/**
 * Starts everything: Redis and ClickHouse, migrated, a project with a key, an API and a worker. More of the two are
 * started by `startApi` and `startWorker` on the stack's supervisor.
 */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const { prefix = 'sluice', projectId = 'demo', progress = silent } = options
  const services = options.services ?? (await startServices(options))
  const { redisUrl, clickhouse } = services
  try {
    await timed(
      async () => migrate(clickhouse, await readMigrations(migrationsFolder)),
      (applied, tookMs) => progress.done(describeMigrations(applied.length), tookMs),
    )
    const apiKey = await ensureKey({ redisUrl, prefix, projectId, known: options.apiKey })
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
  { api, worker, progress = silent }: StackOptions,
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

const COMMAND_TIMEOUT_MS = 5_000

/** Makes the project if it is missing, and a key for it unless the known one is still good. */
async function ensureKey(options: {
  redisUrl: string
  prefix: string
  projectId: string
  known: string | undefined
}): Promise<string> {
  const { projectId, known } = options
  const redis = connectRedis(options.redisUrl, { failFast: false })
  redis.on('error', () => undefined)
  const timeout = setTimeout(() => redis.disconnect(), COMMAND_TIMEOUT_MS)
  try {
    const registry = new Registry(redis, redisNames(options.prefix).registryPrefix)
    if ((await registry.findProject(projectId)) === undefined) await registry.createProject(projectId)
    const record = known === undefined ? undefined : await registry.findKey(hashApiKey(known))
    const isGood = record?.projectId === projectId && keyState(record, Date.now()) === 'active'
    if (known !== undefined && isGood) return known
    const { key } = await registry.createKey(projectId, { name: 'local', scopes: ['ingest'] })
    return key
  } finally {
    clearTimeout(timeout)
    redis.disconnect()
  }
}

function describeMigrations(count: number): string {
  return count === 0 ? 'Tables are up to date' : `Tables made (${count} migration${count === 1 ? '' : 's'})`
}

async function timed<T, R>(act: () => Promise<T>, report: (result: T, tookMs: number) => R): Promise<R> {
  const startedAtMs = performance.now()
  const result = await act()
  return report(result, performance.now() - startedAtMs)
}

const silent: Progress = { note: () => undefined, done: () => undefined }
