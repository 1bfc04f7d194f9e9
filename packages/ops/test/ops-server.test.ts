import type { Readiness } from '@sluice/runtime'
import { afterEach, describe, expect, it } from 'vitest'
import { type OpsServer, startOpsServer } from '../src/ops-server.ts'

const servers: OpsServer[] = []
const start = async (readiness: () => Readiness): Promise<OpsServer> => {
  const server = await startOpsServer({ host: '127.0.0.1', port: 0, readiness })
  servers.push(server)
  return server
}
const ready = (): Readiness => ({ ready: true, reasons: [] })

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

describe('the ops server', () => {
  it('answers /livez with 200, ready or not', async () => {
    const { url } = await start(() => ({ ready: false, reasons: ['no Redis'] }))
    const response = await fetch(`${url}/livez`)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ status: 'ok' })
  })

  it('answers /livez with 503 when only a restart can help', async () => {
    let alive = true
    const isAlive = (): boolean => alive
    const server = await startOpsServer({ host: '127.0.0.1', port: 0, readiness: ready, isAlive })
    servers.push(server)
    expect((await fetch(`${server.url}/livez`)).status).toBe(200)
    alive = false
    const response = await fetch(`${server.url}/livez`)
    expect(response.status).toBe(503)
    expect(await response.json()).toEqual({ status: 'stalled' })
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  })

  it('answers /readyz with 200 when the process is ready', async () => {
    const { url } = await start(ready)
    const response = await fetch(`${url}/readyz`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toEqual({ status: 'ok' })
  })

  it('returns the current reasons why the process is not ready', async () => {
    let state: Readiness = ready()
    const { url } = await start(() => state)
    state = { ready: false, reasons: ['no Redis', 'no disk'] }
    const response = await fetch(`${url}/readyz`)
    expect(response.status).toBe(503)
    expect(await response.json()).toEqual({ status: 'unavailable', reasons: ['no Redis', 'no disk'] })
    state = ready()
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
  })

  it('shows the dependencies on /readyz, ready or not, and no password', async () => {
    const dependencies = [{ name: 'shard 1', state: 'down', seconds: 7, lastError: 'no' }] as const
    let state: Readiness = ready()
    const server = await startOpsServer({
      host: '127.0.0.1',
      port: 0,
      readiness: () => state,
      dependencies: () => dependencies,
    })
    servers.push(server)
    expect(await (await fetch(`${server.url}/readyz`)).json()).toEqual({ status: 'ok', dependencies })
    state = { ready: false, reasons: ['no redis://me:secret@host'] }
    const response = await fetch(`${server.url}/readyz`)
    expect(response.status).toBe(503)
    expect(await response.json()).toEqual({
      status: 'unavailable',
      reasons: ['no redis://host'],
      dependencies,
    })
  })

  it('serves the current content of further pages', async () => {
    let load = 1
    const server = await startOpsServer({
      host: '127.0.0.1',
      port: 0,
      readiness: ready,
      pages: new Map([['/load', () => ({ load })]]),
    })
    servers.push(server)
    load = 2
    const response = await fetch(`${server.url}/load`)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ load: 2 })
    expect((await fetch(`${server.url}/lo`)).status).toBe(404)
  })

  it.each(['/', '/livez/', '/metrics', '/LIVEZ', '/%zz'])('answers %s with 404', async (path) => {
    const { url } = await start(ready)
    const response = await fetch(url + path)
    expect(response.status).toBe(404)
    await response.body?.cancel()
  })
})
