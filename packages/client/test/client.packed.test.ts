import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { HttpServer } from '@sluice/harness/http-server'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { buildTestApi, type TestApi } from '../../../apps/api/test/support/test-api.ts'
import { SluiceClient } from '../src/index.ts'
import { systemPlatform } from '../src/platform.ts'
import { findProgram } from './support/find-program.ts'
import { checkInstalled, compile, installPacked } from './support/packed-project.ts'

const run = promisify(execFile)

const node = findProgram('node') ?? process.execPath
const nodeVersion = (await run(node, ['--version'])).stdout.trim()
const deno = findProgram('deno')
const bun = findProgram('bun')

let project = ''
beforeAll(async () => {
  const packed = await installPacked('client')
  project = packed.path
  await cp(fileURLToPath(new URL('../../../examples/browser-proxy', import.meta.url)), project, {
    recursive: true,
  })
  return packed.remove
}, 120_000)

const installed = (path: string): string => join(project, 'node_modules/@sluice/client', path)

let api: TestApi
let url = ''
beforeEach(async () => {
  api = buildTestApi()
  url = await api.app.listen({ host: '127.0.0.1', port: 0 })
})
afterEach(() => api.close())

/** Sends 150 entries through a spool, one of them with everything that needs encoding. */
const program = (): string =>
  `import { SluiceClient } from '@sluice/client'
     import { DiskSpool } from '@sluice/client/spool'
     const client = new SluiceClient({
       url: '${url}',
       apiKey: '${api.key}',
       service: 'packed',
       // More than ten at once, which Node must not take for a leak.
       requestsInFlightMax: 20,
       batchEntriesMax: 10,
       spool: new DiskSpool({ directory: '${join(project, 'spool')}' }),
       onRejected: ({ error }) => console.error(error),
     })
     for (let i = 0; i < 149; i += 1) client.child({ i }).info('entry', { text: 'é😀' })
     client.error(new TypeError('no', { cause: new Error('why') }))
     console.log(JSON.stringify(await client.close()))`

/** Checks what the API stored, after the program. @returns what the program printed */
async function sentBy(runtime: string, ...options: string[]): Promise<unknown> {
  await writeFile(join(project, 'send.mjs'), program())
  const { stdout, stderr } = await run(runtime, [...options, join(project, 'send.mjs')])
  expect(stderr).toBe('')
  expect(api.queue.rows).toHaveLength(150)
  const error = api.queue.rows.find(({ level }) => level === 'error')
  expect(error).toMatchObject({ message: 'no', service: 'packed' })
  expect(error?.['stack']).toContain('TypeError: no')
  expect(await readdir(join(project, 'spool'))).toEqual([])
  return JSON.parse(stdout)
}

const result = { accepted: 150, rejected: 0, dropped: 0, pending: 0 }

describe('the installed archive', () => {
  test(`sends entries with Node ${nodeVersion}`, async () => {
    expect(await sentBy(node)).toEqual(result)
  })

  test.skipIf(deno === undefined)('sends entries with Deno', async () => {
    expect(await sentBy(deno ?? '', 'run', '--allow-all', '--quiet')).toEqual(result)
  })

  test.skipIf(bun === undefined)('sends entries with Bun', async () => {
    expect(await sentBy(bun ?? '')).toEqual(result)
  })

  test('has compiled files, declarations, license and documentation, and nothing else', async () => {
    expect(await checkInstalled(installed(''))).not.toHaveProperty('dependencies')
  })

  test('imports modules of Node only in the spool', async () => {
    const files = await readdir(installed('dist'), { recursive: true })
    const core = files.filter((file) => file.endsWith('.js') && !file.startsWith('spool/'))
    expect(core.length).toBeGreaterThan(10)
    for (const file of core)
      expect(await readFile(installed(`dist/${file}`), 'utf8')).not.toMatch(/from ['"](?!\.)/)
  })
})

test('the declarations are complete', async () => {
  const consumer = `
    import { type Entry, SluiceClient, type SluiceError } from '@sluice/client'
    import { DiskSpool } from '@sluice/client/spool'
    const entry: Entry = { level: 'info', message: 'm', metadata: { a: 1 } }
    interface Order { id: number }
    const order: Order = { id: 1 }
    await using client = new SluiceClient({
      url: 'https://logs.example.com',
      apiKey: process.env.SLUICE_API_KEY,
      environment: 'production',
      spool: new DiskSpool({ directory: '/var/spool/app' }),
      onError: (error: SluiceError) => void error.kind,
      onRejected: ({ entry, error }) => void [entry, error.code, error.path],
      onDropped: (entries, reason) => void [entries.length, reason === 'overflow'],
    })
    client.send(entry)
    client.info('paid', order)
    client.error(new Error('no'))
    // @ts-expect-error -- not a level
    client.send({ level: 'fatal', message: 'm' })
    // @ts-expect-error -- not an option
    new SluiceClient({ url: '', retries: 3 })
    const { accepted, problem } = await client.flush({ timeoutMs: 1_000 })
    const kind: 'configuration' | 'spool' | 'hook' | 'rejection' | undefined = problem?.kind
    export const result: [number, typeof kind] = [accepted, kind]
  `

  expect(await compile(project, consumer)).toBe('')
})

let proxy: ChildProcess
let origin = ''

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

/** Of a free port. */
async function freeOrigin(): Promise<string> {
  const server = new HttpServer(() => undefined)
  await server.listen()
  const { url: free } = server
  await server.close()
  return free
}

/** A client as in a page: browsers add the origin to each POST. */
function pageClient(from = origin): SluiceClient {
  return new SluiceClient(
    {
      url: origin,
      service: 'page',
      onError: () => undefined,
      fetch: (address, init) => fetch(address, { ...init, headers: { ...init.headers, origin: from } }),
    },
    { ...systemPlatform(), scope: { window: { document: {} } } },
  )
}

function post(body: string): Promise<Response> {
  const headers = { origin, 'content-type': 'application/json', 'idempotency-key': 'key' }
  return fetch(`${origin}/v1/logs`, { method: 'POST', headers, body })
}

describe('the proxy for browsers', () => {
  beforeEach(async () => {
    origin = await freeOrigin()
    proxy = await startProxy({ SLUICE_API_URL: url, SLUICE_API_KEY: api.key })
  })
  afterEach(() => stop(proxy))

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
    const client = pageClient('https://elsewhere.example')
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
    const statuses: number[] = []
    for (let i = 0; i < 61; i += 1) statuses.push((await post('')).status)
    expect(statuses.filter((status) => status === 429)).toHaveLength(1)
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
