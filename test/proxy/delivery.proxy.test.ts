import {
  HttpConnection,
  type HttpResponse,
  pause,
  postHead,
  postLogs,
  postText,
  seededRandom,
} from '@sluice/harness'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { isExactlyOnce, settle } from '@sluice/harness/settle'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { type Installation, Ports, startApi, type SupervisedProcess } from '@sluice/local'
import { generateApiKey } from '@sluice/projects'
import { queueNames } from '@sluice/queue'
import { request } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ComposeProxy, startComposeProxy } from './compose-proxy.ts'
import { NameServer } from './name-server.ts'

/** Linux has all of 127.0.0.0/8. */
const ADDRESSES = ['127.0.0.31', '127.0.0.32', '127.0.0.33'] as const
/** Compose trusts the private ranges. Here the proxy and its clients have loopback addresses. */
const environment = { TRUST_PROXY: 'loopback' }
const BODY_BYTES_MAX = 5 * 1024 * 1024
/** The API responds with 408 after 30 s. The rest is headroom for a busy machine. */
const STALLED_DEADLINE_MS = 38_000
const DOWN_MS = 1_500

let installation: Installation
let nameServer: NameServer
let proxy: ComposeProxy
let apis: readonly SupervisedProcess[]

beforeAll(async () => {
  const port = await new Ports().free()
  const [first, ...others] = ADDRESSES
  installation = await startTestInstallation({ api: { host: first, port, environment } })
  const { supervisor, redisUrl, prefix, processes } = installation
  const started = await Promise.all(
    others.map((host, index) =>
      startApi(supervisor, { redisUrl, prefix, host, port, environment, name: `api-${index + 2}` }),
    ),
  )
  apis = [processes.api, ...started.map((each) => each.process)]
  nameServer = await NameServer.open()
  nameServer.addresses = ADDRESSES
  proxy = await startComposeProxy(supervisor, { nameServer, apiPort: port })
})

afterAll(async () => {
  await installation?.stop({ force: true })
  await nameServer?.close()
})

const target = (): { apiUrl: string; apiKey: string } => ({
  apiUrl: `http://127.0.0.1:${proxy.port}`,
  apiKey: installation.apiKey,
})

/** Posts from an address of this machine. @returns the status */
async function postFrom(localAddress: string, key: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const sent = request({
    host: '127.0.0.1',
    port: proxy.port,
    localAddress,
    method: 'POST',
    path: '/v1/logs',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  })
  sent.on('error', reject)
  sent.on('response', (response) => {
    response.resume()
    response.on('end', () => resolve(response.statusCode ?? 0))
  })
  sent.end('{}')
  return promise
}

/** A valid body with this length. */
function bodyOf(bytes: number): string {
  const text = '{"level":"info","message":"large"}'
  return text + ' '.repeat(bytes - text.length)
}

it('accepts what the API accepts, and passes on its rejections', async () => {
  expect((await postLogs(target(), bodyOf(BODY_BYTES_MAX))).status).toBe(202)
  const tooLarge = await postLogs(target(), bodyOf(BODY_BYTES_MAX + 1))
  expect(tooLarge.status).toBe(413)
  expect(tooLarge.body).toMatchObject({ code: 'body_too_large' })
})

it('passes on the response to a request that is rejected before its body has arrived', async () => {
  for (let count = 0; count < 10; count += 1) {
    const answer = await postLogs({ ...target(), apiKey: 'wrong' }, bodyOf(BODY_BYTES_MAX))
    expect(answer.status).toBe(401)
  }
})

it('counts the failed attempts of each client separately', async () => {
  const statuses = new Set<number>()
  // Each of the APIs allows 20.
  for (let count = 0; count < 120; count += 1) statuses.add(await postFrom('127.0.0.51', generateApiKey()))
  expect(statuses).toEqual(new Set([401, 429]))
  expect(await postFrom('127.0.0.52', generateApiKey())).toBe(401)
})

it('waits for slow clients as long as the API does', async () => {
  const { apiKey } = installation
  const text = postText(apiKey, '{"level":"info","message":"slow"}')
  const slow = async (): Promise<number | undefined> => {
    const connection = await HttpConnection.open(proxy.port)
    for (const byte of text) {
      connection.write(byte)
      await pause(20)
    }
    const [response] = await connection.readResponses([false], STALLED_DEADLINE_MS)
    connection.destroy()
    return response?.status
  }
  const stalled = async (): Promise<HttpResponse | undefined> => {
    const connection = await HttpConnection.open(proxy.port)
    connection.write(`${postHead(apiKey, ['Content-Length: 100'])}{`)
    const [response] = await connection.readResponses([false], STALLED_DEADLINE_MS)
    connection.destroy()
    return response
  }
  const [status, rejection] = await Promise.all([slow(), stalled()])
  expect(status).toBe(202)
  expect(rejection?.status).toBe(408)
  expect(JSON.parse(rejection?.body ?? '')).toMatchObject({ status: 408 })
})

it('loses and duplicates nothing while API processes are killed under load', async () => {
  const { apiKey, redisUrl, clickhouse, prefix } = installation
  const journal = new Journal('proxy')
  const apiUrls = [target().apiUrl]
  const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(5), entriesPerSecond: 1_000 })
  load.start()
  await pause(DOWN_MS)
  for (const api of apis) {
    await api.stop({ signal: 'SIGKILL' })
    await pause(DOWN_MS)
    await api.start()
    await pause(DOWN_MS)
  }
  await apis[0]?.stop()
  await pause(DOWN_MS)
  await load.stop()
  const stores = { redisUrl, shards: [queueNames(prefix)], clickhouse }
  expect(await settle(stores, journal)).toSatisfy(isExactlyOnce)
  expect(journal.count('acknowledged')).toBeGreaterThan(0.9 * journal.size)
}, 180_000)
