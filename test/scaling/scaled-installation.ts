import { type ClickHouseAccess, migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import {
  type ApiApp,
  type App,
  provisionProject,
  startApi,
  startWorker,
  type Supervisor,
} from '@sluice/local'
import { Registry } from '@sluice/projects'
import { connectRedis, installationNames, type RedisConnection, type RedisTuning } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { inject } from 'vitest'

export interface ScaledInstallationOptions {
  readonly supervisor: Supervisor
  readonly redisUrl: string
  readonly prefix: string
  readonly workers: number
  /** Additional environment variables of all processes. */
  readonly environment?: Readonly<Record<string, string>>
  /** For the test's connection to Redis. */
  readonly tuning?: Pick<RedisTuning, 'tlsCaFile' | 'sentinelPassword'>
}

/** An installation on any kind of Redis, with a separate database in the shared ClickHouse of the tests. */
export interface ScaledInstallation {
  readonly api: ApiApp
  readonly workers: readonly App[]
  readonly apiUrl: string
  readonly apiKey: string
  readonly registry: Registry
  readonly clickhouse: ClickHouseAccess
  /** The test's connection to Redis. */
  readonly redis: RedisConnection
  startWorkers(): Promise<void>
}

const PROJECT_ID = 'scaling'

/** Starts everything except the workers. */
export async function startScaledInstallation(
  options: ScaledInstallationOptions,
): Promise<ScaledInstallation> {
  const { supervisor, redisUrl, prefix, tuning = {} } = options
  const clickhouse = {
    ...inject('services').clickhouse,
    database: `scaling_${randomUUID().replaceAll('-', '')}`,
  }
  await migrate(clickhouse, await readMigrations(migrationsFolder))
  const redis = connectRedis(redisUrl, { ...tuning, failFast: false })
  redis.on('error', () => undefined)
  const registry = new Registry(redis, installationNames(prefix).registryPrefix)
  const apiKey = await provisionProject(registry, PROJECT_ID)
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
  return { api, workers, apiUrl: api.url, apiKey, registry, clickhouse, redis, startWorkers }
}
