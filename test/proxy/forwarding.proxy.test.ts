import { eventually, pause } from '@sluice/harness'
import { makeCertificates } from '@sluice/harness/certificates'
import { Supervisor } from '@sluice/local'
import { mkdirSync, readFileSync, renameSync } from 'node:fs'
import { request } from 'node:http'
import { request as requestTls } from 'node:https'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type ComposeProxy, startComposeProxy } from './compose-proxy.ts'
import { NameServer } from './name-server.ts'
import { RecordingServer } from './recording-server.ts'

/** Linux has all of 127.0.0.0/8. */
const ADDRESSES = ['127.0.0.21', '127.0.0.22', '127.0.0.23'] as const
/** Nothing listens there. */
const ABSENT = '127.0.0.29'
/** An API without a response is left out for more than one second. nginx counts whole seconds. */
const LEFT_OUT_MS = 2_500
const SMALL_BYTES = 100
/** The limit of the API, and more than the buffers of sockets and nginx. */
const LARGE_BYTES = 5 * 1024 * 1024

let supervisor: Supervisor
let nameServer: NameServer
let apis: RecordingServer[]
let apiPort: number

beforeEach(async () => {
  supervisor = new Supervisor()
  nameServer = await NameServer.open()
  apiPort = await supervisor.ports.free()
  apis = await Promise.all(ADDRESSES.map((address) => RecordingServer.open(address, apiPort)))
})

afterEach(async () => {
  await supervisor?.stop()
  await Promise.all((apis ?? []).map((api) => api.close()))
  await nameServer?.close()
})

async function startProxy(addresses: readonly string[]): Promise<ComposeProxy> {
  nameServer.addresses = addresses
  return startComposeProxy(supervisor, { nameServer, apiPort })
}

interface Post {
  readonly body?: Buffer
  readonly headers?: Readonly<Record<string, string>>
  readonly localAddress?: string
  /** With TLS. */
  readonly ca?: Buffer
  readonly servername?: string
}

/** @returns the status; 0 if the connection was closed without a response */
async function post(
  { port }: { readonly port: number },
  { body = Buffer.from('{}'), ...options }: Post = {},
): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  // A connection for each request: a broken one is not used again.
  const sent = (options.ca === undefined ? request : requestTls)({
    ...options,
    agent: false,
    port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/v1/logs',
  })
  sent.on('error', () => resolve(0))
  sent.on('response', (response) => {
    response.resume()
    response.on('end', () => resolve(response.statusCode ?? 0))
  })
  sent.end(body)
  return promise
}

const postsOf = (servers: readonly RecordingServer[]): number[] => servers.map(({ posts }) => posts.length)

it('distributes requests over all addresses of the name, and keeps the connections', async () => {
  const proxy = await startProxy(ADDRESSES)
  for (let count = 0; count < 90; count += 1) expect(await post(proxy)).toBe(202)
  for (const posts of postsOf(apis)) expect(posts).toBeGreaterThan(20)
  // At most one per process of nginx, and one of the health check.
  for (const { connections } of apis) expect(connections).toBeLessThanOrEqual(4)
})

it('finds new addresses, and forgets old ones', async () => {
  const proxy = await startProxy([ADDRESSES[0]])
  expect(await post(proxy)).toBe(202)
  nameServer.addresses = [ADDRESSES[1], ADDRESSES[2]]
  await eventually(async () => {
    expect(await post(proxy)).toBe(202)
    for (const posts of postsOf(apis.slice(1))) expect(posts).toBeGreaterThan(0)
  })
  await apis[0]?.close()
  for (let count = 0; count < 20; count += 1) expect(await post(proxy)).toBe(202)
})

it('sends a POST to another API if the connection fails', async () => {
  const proxy = await startProxy([...ADDRESSES, ABSENT])
  for (let count = 0; count < 60; count += 1)
    expect(await post(proxy, { body: Buffer.alloc(100_000, 'x') })).toBe(202)
  expect(apis.flatMap(({ posts }) => posts.map(({ bodyBytes }) => bodyBytes))).toEqual(
    Array.from({ length: 60 }, () => 100_000),
  )
})

it.each([
  ['reset', SMALL_BYTES],
  ['reset-early', SMALL_BYTES],
  ['reset', LARGE_BYTES],
  ['reset-early', LARGE_BYTES],
] as const)('never repeats a POST that was sent: %s with %s bytes', async (behaviour, bytes) => {
  const proxy = await startProxy(ADDRESSES)
  // Connections that have been used break in another way than new ones.
  for (let count = 0; count < 6; count += 1) expect(await post(proxy)).toBe(202)
  for (const api of apis) {
    api.requests.length = 0
    api.behaviour = behaviour
  }
  const ids: string[] = []
  for (let round = 0; round < 2; round += 1) {
    // Each finds one API that is not left out.
    for (let count = 0; count < ADDRESSES.length; count += 1) {
      const id = `request-${ids.length}`
      ids.push(id)
      const body = Buffer.alloc(bytes, 'x')
      const status = await post(proxy, { body, headers: { 'X-Request-Id': id } })
      // A client that is still sending may not read the response.
      expect(bytes === LARGE_BYTES ? [502, 0] : [502]).toContain(status)
    }
    await pause(LEFT_OUT_MS)
  }
  const arrived = apis.flatMap(({ posts }) => posts.map(({ headers }) => String(headers['x-request-id'])))
  expect(arrived.toSorted((a, b) => a.localeCompare(b))).toEqual(ids)
})

it('passes on the address of the client, and not what the client claims', async () => {
  const proxy = await startProxy([ADDRESSES[0]])
  await post(proxy, { localAddress: '127.0.0.41' })
  await post(proxy, {
    localAddress: '127.0.0.42',
    headers: { 'X-Forwarded-For': '8.8.8.8', 'X-Request-Id': 'mine' },
  })
  const headers = apis[0]?.posts.map((each) => each.headers)
  expect(headers?.map((each) => each['x-forwarded-for'])).toEqual(['127.0.0.41', '127.0.0.42'])
  expect(headers?.[1]?.['x-request-id']).toBe('mine')
})

it('forwards to the query processes on a port of their own, with the host and the protocol that the browser knows', async () => {
  const queryPort = await supervisor.ports.free()
  const query = await RecordingServer.open(ADDRESSES[0], queryPort)
  try {
    nameServer.addresses = [ADDRESSES[0]]
    const { port, explorerPort } = await startComposeProxy(supervisor, { nameServer, apiPort, queryPort })
    const headers = { Host: 'logs.example:8443', Origin: 'http://logs.example:8443' }
    expect(await post({ port: explorerPort }, { headers })).toBe(202)
    expect(query.posts[0]?.headers).toMatchObject({
      host: 'logs.example:8443',
      'x-forwarded-proto': 'http',
      'x-forwarded-for': '127.0.0.1',
    })
    await query.close()
    expect(await post({ port: explorerPort })).toBe(502)
    expect(await post({ port })).toBe(202)
  } finally {
    await query.close()
  }
})

it('terminates TLS', async () => {
  nameServer.addresses = ADDRESSES
  const folder = join(supervisor.dataDir, 'certificates')
  mkdirSync(folder)
  const { caFile, certificateFile, keyFile } = await makeCertificates(folder, 'localhost')
  renameSync(certificateFile, join(folder, 'fullchain.pem'))
  renameSync(keyFile, join(folder, 'privkey.pem'))
  const proxy = await startComposeProxy(supervisor, { nameServer, apiPort, certificatesFolder: folder })
  for (const port of [proxy.port, proxy.explorerPort])
    expect(await post({ port }, { servername: 'localhost', ca: readFileSync(caFile) })).toBe(202)
  const posts = apis.flatMap((api) => api.posts)
  expect(posts.map(({ headers }) => headers['x-forwarded-proto'])).toEqual(['https', 'https'])
})
