import { eventually } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { type App, type Installation, startWorker } from '@sluice/local'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { afterAll, beforeAll, expect, it } from 'vitest'

let installation: Installation
let permissive: App
let redis: RedisConnection

beforeAll(async () => {
  installation = await startTestInstallation()
  const { supervisor, redisUrl, prefix, clickhouse } = installation
  permissive = await startWorker(supervisor, {
    redisUrl,
    prefix,
    clickhouse,
    name: 'permissive',
    environment: { REDIS_ALLOW_UNSAFE: 'true' },
  })
  redis = connectRedis(redisUrl, { failFast: false })
})

afterAll(async () => {
  redis?.disconnect()
  await installation?.stop()
})

async function readinessOf(opsUrl: string): Promise<{ readonly status: number; readonly body: string }> {
  const response = await fetch(`${opsUrl}/readyz`)
  return { status: response.status, body: await response.text() }
}

it('API and worker are not ready while Redis may lose entries, unless this is permitted', async () => {
  const { opsUrls } = installation
  const all = [opsUrls.api, opsUrls.worker, permissive.opsUrl]
  const statuses = async (): Promise<number[]> =>
    (await Promise.all(all.map(readinessOf))).map(({ status }) => status)
  expect(await statuses()).toEqual([200, 200, 200])
  await redis.config('SET', 'appendfsync', 'everysec')
  await eventually(async () => expect(await statuses()).toEqual([503, 503, 200]))
  for (const opsUrl of [opsUrls.api, opsUrls.worker])
    expect((await readinessOf(opsUrl)).body).toContain('appendfsync is everysec instead of always')
  await redis.config('SET', 'appendfsync', 'always')
  await eventually(async () => expect(await statuses()).toEqual([200, 200, 200]))
})
