import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { buildTestApi, type TestApi } from '../../../apps/api/test/support/test-api.ts'
import { SluiceClient } from '../src/index.ts'
import { systemPlatform } from '../src/platform.ts'
import { findProgram } from './support/find-program.ts'
import { installPacked } from './support/packed-project.ts'

const node = (await findProgram('node')) ?? process.execPath

let project = ''
beforeAll(async () => {
  const packed = await installPacked('client')
  project = packed.path
  await cp(fileURLToPath(new URL('../examples/browser-proxy', import.meta.url)), project, { recursive: true })
  return packed.remove
}, 120_000)

let api: TestApi
let proxy: ChildProcess
let origin = ''
beforeEach(async () => {
  api = buildTestApi()
  const apiUrl = await api.app.listen({ host: '127.0.0.1', port: 0 })
  origin = `http://127.0.0.1:${await freePort()}`
  proxy = await startProxy({ SLUICE_API_URL: apiUrl, SLUICE_API_KEY: api.key })
})
afterEach(async () => {
  await stop(proxy)
  await api.close()
})

async function startProxy(environment: Readonly<Record<string, string>>): Promise<ChildProcess> {
  const child = spawn(node, ['server.mjs'], {
    cwd: project,
    env: { ...process.env, ...environment, ORIGIN: origin },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  await once(child.stdout, 'data')
  return child
}

async function stop(child: ChildProcess): Promise<void> {
  child.kill()
  await once(child, 'close')
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** A client as in a page: browsers add the origin to each POST. */
function pageClient(options: { readonly from?: string } = {}): SluiceClient {
  return new SluiceClient(
    {
      url: origin,
      service: 'page',
      onError: () => undefined,
      fetch: (url, init) =>
        fetch(url, { ...init, headers: { ...(init?.headers as object), origin: options.from ?? origin } }),
    },
    { ...systemPlatform(), scope: { window: { document: {} } } },
  )
}

function post(body: string): Promise<Response> {
  const headers = { origin, 'content-type': 'application/json', 'idempotency-key': 'key' }
  return fetch(`${origin}/v1/logs`, { method: 'POST', headers, body })
}

describe('the proxy for browsers', () => {
  test('adds the key, and stores the entries of the page', async () => {
    const client = pageClient()
    for (let i = 0; i < 120; i += 1) client.info('clicked', { i })
    expect(await client.close()).toMatchObject({ accepted: 120, rejected: 0, problem: undefined })
    expect(api.queue.rows).toHaveLength(120)
    expect(api.queue.rows[0]).toMatchObject({ service: 'page', source: 'client' })
  })

  test('responds to a retry from the idempotency record', async () => {
    const body = '{"logs":[{"level":"info","message":"once"}]}'
    for (const response of [await post(body), await post(body)]) {
      expect(response.status).toBe(202)
      expect(await response.json()).toEqual({ success: true, accepted: 1, rejected: 0 })
    }
    expect(api.queue.rows).toHaveLength(1)
  })

  test('rejects requests of other sites', async () => {
    const client = pageClient({ from: 'https://elsewhere.example' })
    client.info('forged')
    expect(await client.close()).toMatchObject({ accepted: 0, problem: { status: 403 } })
    expect(api.queue.rows).toEqual([])
  })

  test('rejects a body that is too large, without storing any of it', async () => {
    const { status } = await post('x'.repeat(1024 * 1024 + 1))
    expect(status).toBe(413)
    expect(api.queue.rows).toEqual([])
  })

  test('does not tell the page that its own key is wrong', async () => {
    await stop(proxy)
    proxy = await startProxy({ SLUICE_API_URL: 'http://127.0.0.1:9', SLUICE_API_KEY: 'slk_wrong' })
    expect((await post('{}')).status).toBe(502)
  })

  test('limits the requests of an address', async () => {
    const statuses = new Map<number, number>()
    for (let i = 0; i < 61; i += 1) {
      const { status } = await post('')
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    expect(statuses.get(429)).toBe(1)
  })

  test('serves the page, and the client for it', async () => {
    const page = await (await fetch(origin)).text()
    expect(page).toContain("import { SluiceClient } from '/client/index.js'")
    // Follows the imports, as a browser does.
    const modules = new Set(['/client/index.js'])
    for (const path of modules) {
      const response = await fetch(`${origin}${path}`)
      expect(`${path} ${response.status} ${response.headers.get('content-type')}`).toBe(
        `${path} 200 text/javascript; charset=utf-8`,
      )
      for (const [, specifier = ''] of (await response.text()).matchAll(/ from '([^']+)'/g))
        modules.add(new URL(specifier, new URL(path, origin)).pathname)
    }
    expect(modules.size).toBeGreaterThan(10)
    expect((await fetch(`${origin}/client/../package.json`)).status).toBe(404)
    expect((await fetch(`${origin}/client/%2e%2e/server.mjs`)).status).toBe(404)
  })
})
