import { connectClickHouse } from '@sluice/clickhouse'
import { eventually, FaultProxy, postLogs } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { type App, type Installation, startWorker } from '@sluice/local'
import { afterAll, beforeAll, expect, it } from 'vitest'

const REPORTED_WITHIN_MS = 10_000
const STORED_WITHIN_MS = 20_000

let installation: Installation
let proxy: FaultProxy
let worker: App

beforeAll(async () => {
  installation = await startTestInstallation()
  const { supervisor, redisUrl, prefix, clickhouse } = installation
  // Only this worker has the proxy, and it is the only one.
  await installation.processes.worker.stop({ signal: 'SIGTERM' })
  proxy = await FaultProxy.open(clickhouse.url)
  worker = await startWorker(supervisor, {
    redisUrl,
    prefix,
    clickhouse: { ...clickhouse, url: proxy.url },
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

const READY = { status: 200 }

async function send(service: string): Promise<void> {
  const entry = { level: 'info', message: 'while silent', service }
  expect(await postLogs(installation, entry)).toMatchObject({ status: 202 })
}

/** The number of rows of a service, read without the proxy. */
async function storedRows(service: string): Promise<number> {
  const client = connectClickHouse(installation.clickhouse, { requestTimeoutMs: 5_000, connectionsMax: 1 })
  try {
    const result = await client.query({
      query: 'SELECT toUInt32(count()) AS rows FROM logs WHERE service = {service: String}',
      query_params: { service },
      format: 'JSONEachRow',
    })
    const [row] = await result.json<{ rows: number }>()
    return row?.rows ?? 0
  } finally {
    await client.close()
  }
}

it('a worker whose connections to ClickHouse are silent is not ready, and stores its rows over new ones', async () => {
  expect(await statusOf('/readyz')).toMatchObject(READY)
  await send('before')
  await eventually(async () => expect(await storedRows('before')).toBe(1))
  // The connection of this insert stays open for two seconds, for the next one.
  expect(proxy.silence()).toBeGreaterThan(0)
  const silentAtMs = performance.now()
  const silentMs = (): number => performance.now() - silentAtMs
  await send('after')
  await eventually(async () =>
    expect(await statusOf('/readyz')).toMatchObject({
      status: 503,
      body: expect.stringContaining('ClickHouse does not run queries that wait for its answer'),
    }),
  )
  expect(silentMs()).toBeLessThan(REPORTED_WITHIN_MS)
  await eventually(async () => expect(await storedRows('after')).toBe(1))
  expect(silentMs()).toBeLessThan(STORED_WITHIN_MS)
  await eventually(async () => expect(await statusOf('/readyz')).toMatchObject(READY))
  expect(await storedRows('before')).toBe(1)
  expect(await storedRows('after')).toBe(1)
})

it('a worker is not ready while ClickHouse is silent on new connections too, and stores its rows afterwards', async () => {
  proxy.hold('both')
  await send('silence')
  const startMs = performance.now()
  await eventually(async () =>
    expect(await statusOf('/readyz')).toMatchObject({
      status: 503,
      body: expect.stringContaining('ClickHouse does not answer on new connections'),
    }),
  )
  expect(performance.now() - startMs).toBeLessThan(REPORTED_WITHIN_MS)
  expect(await statusOf('/livez')).toMatchObject({ status: 200 })
  proxy.silence()
  proxy.resume()
  await eventually(async () => expect(await storedRows('silence')).toBe(1))
  await eventually(async () => expect(await statusOf('/readyz')).toMatchObject(READY))
  expect(await storedRows('silence')).toBe(1)
})
