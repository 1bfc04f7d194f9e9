import { startServices } from '@sluice/local'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

/** Where the integration tests' Redis and ClickHouse are. Each file has its own prefix and database in them. */
export interface Services {
  readonly redisUrl: string
  readonly clickhouse: { readonly url: string; readonly username: string; readonly password: string }
}

declare module 'vitest' {
  interface ProvidedContext {
    services: Services
  }
}

/** Starts one Redis and one ClickHouse for all integration tests, and stops them afterwards. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  const services = await startServices({ dataDir })
  project.provide('services', { redisUrl: services.redisUrl, clickhouse: services.clickhouse })
  return async () => {
    await services.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
