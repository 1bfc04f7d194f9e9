import type { Services } from '@sluice/local'
import type { TestProject } from 'vitest/node'
import { startTestServices } from './test-installation.ts'

/** The shared Redis and ClickHouse of the integration tests. Each file uses a separate prefix and database. */
type SharedServices = Pick<Services, 'redisUrl' | 'clickhouse'>

declare module 'vitest' {
  interface ProvidedContext {
    services: SharedServices
  }
}

/** Starts one Redis and one ClickHouse for all integration tests, and stops them at the end. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startTestServices()
  project.provide('services', { redisUrl: services.redisUrl, clickhouse: services.clickhouse })
  return () => services.stop()
}
