import { type ApiApp, type App, startApi, startWorker, type Supervisor } from '@sluice/local'
import { Registry } from '@sluice/projects'
import {
  type ClickHouseAccess,
  connectRedis,
  migrate,
  readMigrations,
  type RedisConnection,
  type RedisTuning,
} from '@sluice/runtime'
import { migrationsFolder, redisNames } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { inject } from 'vitest'

export interface InstallationOptions {
  readonly supervisor: Supervisor
  readonly redisUrl: string
  readonly prefix: string
  readonly workers: number
  /** More of the environment of all processes. */
  readonly environment?: Readonly<Record<string, string>>
  /** How the test itself reaches Redis. */
  readonly tuning?: Pick<RedisTuning, 'tlsCaFile' | 'sentinelPassword'>
}

/** An API and workers on a Redis of the test's own, and on a database of their own in the tests' ClickHouse. */
export interface Installation {
  readonly api: ApiApp
  readonly workers: readonly App[]
  readonly apiKey: string
  readonly registry: Registry
  readonly clickhouse: ClickHouseAccess
  /** The test's own way to Redis. */
  readonly redis: RedisConnection
  readonly startWorkers: () => Promise<void>
}

const PROJECT_ID = 'scaling'

/** Starts all but the workers. */
export async function install(options: InstallationOptions): Promise<Installation> {
  const { supervisor, redisUrl, prefix, tuning = {} } = options
  const clickhouse = {
    ...inject('services').clickhouse,
    database: `scaling_${randomUUID().replaceAll('-', '')}`,
  }
  await migrate(clickhouse, await readMigrations(migrationsFolder))
  const redis = connectRedis(redisUrl, { ...tuning, failFast: false })
  redis.on('error', () => undefined)
  const registry = new Registry(redis, redisNames(prefix).registryPrefix)
  await registry.createProject(PROJECT_ID)
  const { key: apiKey } = await registry.createKey(PROJECT_ID)
  const environment = { LOCK_DURATION_MS: '2000', BATCH_WAIT_MS: '100', ...options.environment }
  const app = { redisUrl, prefix, environment }
  const api = await startApi(supervisor, app)
  const workers: App[] = []
  const startWorkers = async (): Promise<void> => {
    const names = Array.from({ length: options.workers }, (_, i) => `worker-${i + 1}`)
    workers.push(
      ...(await Promise.all(names.map((name) => startWorker(supervisor, { ...app, name, clickhouse })))),
    )
  }
  return { api, workers, apiKey, registry, clickhouse, redis, startWorkers }
}
