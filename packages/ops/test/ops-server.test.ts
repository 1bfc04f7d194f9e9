import type { Readiness } from '@sluice/runtime'
import { expect, it, onTestFinished } from 'vitest'
import { startOpsServer } from '../src/ops-server.ts'

const ready: Readiness = { ready: true, reasons: [] }
const notReady: Readiness = { ready: false, reasons: ['no Redis'] }

/** @returns fetches a page */
async function start(
  options: Partial<Parameters<typeof startOpsServer>[0]> = {},
): Promise<(path: string) => Promise<{ status: number; body: unknown }>> {
  const server = await startOpsServer({
    host: '127.0.0.1',
    port: 0,
    readiness: () => ready,
    dependencies: () => [],
    metrics: { contentType: 'text/plain', text: async () => '"metrics"' },
    ...options,
  })
  onTestFinished(() => server.close())
  return async (path) => {
    const response = await fetch(`${server.url}${path}`)
    return { status: response.status, body: await response.json() }
  }
}

it('returns 200 for /livez, ready or not, and 503 when only a restart can help', async () => {
  let isAlive = true
  const page = await start({ readiness: () => notReady, isAlive: () => isAlive })
  expect(await page('/livez')).toEqual({ status: 200, body: { status: 'ok' } })
  isAlive = false
  expect(await page('/livez')).toEqual({ status: 503, body: { status: 'stalled' } })
})

it('returns the current state and the dependencies for /readyz, and no password', async () => {
  const dependencies = [{ name: 'shard 1', state: 'down', seconds: 7, lastError: 'no' }] as const
  let state = ready
  const page = await start({ readiness: () => state, dependencies: () => dependencies })
  expect(await page('/readyz')).toEqual({ status: 200, body: { status: 'ok', dependencies } })
  state = { ready: false, reasons: ['no redis://me:secret@host', 'no disk'] }
  expect(await page('/readyz')).toEqual({
    status: 503,
    body: { status: 'unavailable', reasons: ['no redis://host', 'no disk'], dependencies },
  })
})

it('returns the metrics, the current content of further pages, and 404 for others', async () => {
  let load = 1
  const page = await start({ pages: new Map([['/load', () => ({ load })]]) })
  load = 2
  expect(await page('/load')).toEqual({ status: 200, body: { load: 2 } })
  expect(await page('/metrics')).toEqual({ status: 200, body: 'metrics' })
  for (const path of ['/', '/livez/', '/LIVEZ', '/%zz']) expect((await page(path)).status).toBe(404)
})
