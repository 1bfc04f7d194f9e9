import { connectClickHouse, migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import { randomUUID } from 'node:crypto'
import { afterAll, expect, inject, test } from 'vitest'
import { playUrl } from '../src/reporter.ts'

const clickhouse = { ...inject('services').clickhouse, database: `play_${randomUUID().replaceAll('-', '')}` }
const client = connectClickHouse(clickhouse, { requestTimeoutMs: 10_000, connectionsMax: 1 })

afterAll(async () => {
  await client.command({ query: `DROP DATABASE IF EXISTS ${clickhouse.database} SYNC` })
  await client.close()
})

test('the query of the query page shows current entries, whatever the number of entries of the future', async () => {
  await migrate(clickhouse, await readMigrations(migrationsFolder))
  await client.command({
    query: `INSERT INTO logs (id, project_id, timestamp, received_at, expires_on, level, message)
      SELECT generateUUIDv7(), 'demo', if(number = 0, now64(6), toDateTime64('2261-01-01', 6, 'UTC')), now64(3),
        today() + 30, 'info', if(number = 0, 'current', 'ahead')
      FROM numbers(200)`,
  })
  const url = playUrl({
    apiUrl: 'http://127.0.0.1:3000',
    apiKey: 'slk_x',
    projectId: 'demo',
    redisUrl: 'redis://127.0.0.1:4001',
    clickhouse,
    opsUrls: { api: 'http://127.0.0.1:4003', worker: 'http://127.0.0.1:4004' },
  })
  const query = Buffer.from(new URL(url).hash.slice(1), 'base64').toString()
  const result = await client.query({ query, format: 'JSONEachRow' })
  expect(await result.json()).toMatchObject([{ message: 'current' }])
})
