import type { TestProject } from 'vitest/node'
import { startTestServices } from './test-services.ts'

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
  const services = await startTestServices()
  project.provide('services', { redisUrl: services.redisUrl, clickhouse: services.clickhouse })
  return () => services.stop()
}
