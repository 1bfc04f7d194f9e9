import { pause, postLogs, seededRandom } from '@sluice/harness'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { isExactlyOnce, settle } from '@sluice/harness/settle'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { type Installation, Ports, startApi, type SupervisedProcess } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ComposeProxy, startComposeProxy } from './compose-proxy.ts'
import { NameServer } from './name-server.ts'

/** Linux has all of 127.0.0.0/8. */
const ADDRESSES = ['127.0.0.31', '127.0.0.32', '127.0.0.33'] as const
/** Compose trusts the private ranges. Here the proxy and its clients have loopback addresses. */
const environment = { TRUST_PROXY: 'loopback' }
const BODY_BYTES_MAX = 5 * 1024 * 1024
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
