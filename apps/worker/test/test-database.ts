import { connectClickHouse, migrate, readMigrations, type ClickHouseClient } from '@sluice/runtime'
import { migrationsFolder } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { inject } from 'vitest'

/** Makes a database with Sluice's tables in the tests' ClickHouse. */
export async function openTestDatabase(): Promise<ClickHouseClient> {
  const access = { ...inject('services').clickhouse, database: `test_${randomUUID().slice(0, 8)}` }
  await migrate(access, await readMigrations(migrationsFolder))
  return connectClickHouse(access, { requestTimeoutMs: 20_000, connectionsMax: 1 })
}
