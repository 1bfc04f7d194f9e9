import { eventually, FaultProxy, postLogs } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { type App, type Installation, startWorker } from '@sluice/local'
import { afterAll, beforeAll, expect, it } from 'vitest'

const REPORTED_WITHIN_MS = 10_000
/** A silent connection is given up after 15 s. */
const STORED_WITHIN_MS = 20_000

let installation: Installation
let proxy: FaultProxy
let worker: App

beforeAll(async () => {
  installation = await startTestInstallation()
  const { supervisor, redisUrl, prefix, clickhouse } = installation
  // Only this worker has the proxy, and it is the only one.
  await installation.processes.worker.stop({ signal: 'SIGTERM' })
  proxy = await FaultProxy.open(redisUrl)
  worker = await startWorker(supervisor, {
    redisUrl: proxy.url,
    prefix,
    clickhouse,
    name: 'worker-behind-proxy',
  })
})

afterAll(async () => {
  await proxy?.down()
  await installation?.stop()
})

async function statusOf(path: string): Promise<{ readonly status: number; readonly body: string }> {
  const response = await fetch(`${worker.opsUrl}${path}`)
  return { status: response.status, body: await response.text() }
}

async function storedRows(): Promise<number> {
  const query = "SELECT 1 FROM logs WHERE service = 'silent'"
  return (await select(installation.clickhouse, query)).length
}

it('a worker whose connection to Redis is silent is not ready, and continues with another connection', async () => {
  expect(await statusOf('/readyz')).toMatchObject({ status: 200 })
  expect(proxy.silence()).toBeGreaterThan(0)
  const silentAtMs = performance.now()
  const entry = { level: 'info', message: 'while silent', service: 'silent' }
  expect(await postLogs(installation, entry)).toMatchObject({ status: 202 })
  await eventually(async () => expect(await statusOf('/readyz')).toMatchObject({ status: 503 }))
  expect(performance.now() - silentAtMs).toBeLessThan(REPORTED_WITHIN_MS)
  expect((await statusOf('/readyz')).body).toContain('Redis has not answered for')
  expect(await statusOf('/livez')).toMatchObject({ status: 200 })
  await eventually(async () => expect(await storedRows()).toBe(1))
  expect(performance.now() - silentAtMs).toBeLessThan(STORED_WITHIN_MS)
  await eventually(async () => expect(await statusOf('/readyz')).toMatchObject({ status: 200 }))
})
