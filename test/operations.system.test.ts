import { eventually, postLogs } from '@sluice/harness'
import { readAccounts, type Samples, scrape, sumOf } from '@sluice/harness/metrics'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { type Installation, startApi, startQuery, startWorker } from '@sluice/local'
import { readProcesses } from '@sluice/ops'
import { FRAME_FIELD, queueNames } from '@sluice/queue'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { readdir, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { hostname } from 'node:os'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runStatus } from './sluice-command.ts'

let installation: Installation
let redis: RedisConnection

beforeAll(async () => {
  installation = await startTestInstallation({ api: { environment: { METRICS_PROJECTS_MAX: '10' } } })
  redis = connectRedis(installation.redisUrl, { failFast: false })
})

afterAll(async () => {
  redis?.disconnect()
  await installation?.stop()
})

it('`sluice status` shows both processes, and the lag of what was stored', async () => {
  expect((await postLogs(installation, { level: 'info', message: 'm' })).status).toBe(202)
  await eventually(async () => {
    const { status, code } = await runStatus(installation)
    expect(code).toBe(0)
    expect(status).toMatchObject({
      queue: { rows: 0, waiting: 0, inHand: 0, failed: 0, rates: { added: 0, inserted: 0 } },
      deadLetters: { total: 0, today: 0 },
      lag: { chunks: 1, meanS: expect.any(Number) as number, maxS: expect.any(Number) as number },
      processes: [
        { role: 'api', host: hostname(), pid: installation.processes.api.pid },
        { role: 'worker', host: hostname(), pid: installation.processes.worker.pid, chunksHeld: 0 },
      ],
      errors: [],
    })
  })
  await eventually(async () => {
    const processes = await readProcesses(redis, installation.prefix)
    expect(processes.map(({ notReady }) => notReady)).toEqual([undefined, undefined])
  })
})

const pages = (): Promise<Samples[]> => Promise.all(Object.values(installation.opsUrls).map(scrape))
const entry = { level: 'info', message: 'hello' }

it('counts requests, entries, chunks, batches and rows', async () => {
  const before = await pages()
  const logs = Array.from({ length: 9 }, () => entry)
  await postLogs(installation, { logs: [...logs, { level: 'info' }] })
  await postLogs(installation, entry)
  await postLogs(installation, { level: 'info' })
  await eventually(async () => {
    const after = await pages()
    const grown = (metric: string, label?: string): number =>
      sumOf(after, metric, label) - sumOf(before, metric, label)
    const posts = (status: string): number =>
      grown(`sluice_http_requests_total`, `route="/v1/logs",method="POST",status="${status}"`)
    expect([posts('202'), posts('400')]).toEqual([2, 1])
    expect(grown('sluice_entries_accepted_total')).toBe(10)
    expect(grown('sluice_project_entries_accepted_total')).toBe(10)
    expect(grown('sluice_entries_rejected_total', 'reason="missing"')).toBe(2)
    expect(grown('sluice_requests_rejected_total', 'reason="invalid_entry"')).toBe(1)
    expect(grown('sluice_ack_duration_seconds_count')).toBe(2)
    expect(grown('sluice_rows_inserted_total')).toBe(10)
    expect(grown('sluice_lag_seconds_count')).toBe(grown('sluice_chunk_rows_count'))
    expect(grown('sluice_rows_total', 'stage="added"')).toBe(10)
  })
  const accounts = await readAccounts(Object.values(installation.opsUrls))
  expect(accounts.added).toBe(accounts.inserted)
  expect(accounts).toMatchObject({ deadLettered: 0, removed: 0, queued: 0 })
})

it('exports what docs/metrics.md describes, and describes what it exports', async () => {
  const document = await readFile(new URL('../docs/metrics.md', import.meta.url), 'utf8')
  const described = new Set(
    Array.from(document.matchAll(/`((?:sluice|nodejs|process)_\w+)`/g), ([, name]) => name),
  )
  const query = await startQuery(installation.supervisor, { ...installation, name: 'query', environment: {} })
  const opsUrls = [...Object.values(installation.opsUrls), query.opsUrl]
  const texts = await Promise.all(opsUrls.map(async (opsUrl) => (await fetch(`${opsUrl}/metrics`)).text()))
  await query.process.stop()
  const exported = new Set(Array.from(texts.join('\n').matchAll(/^# TYPE (\w+) /gm), ([, name]) => name))
  expect([...described].filter((name) => !exported.has(name))).toEqual([])
  expect(
    [...exported].filter((name) => name?.startsWith('sluice_') === true && !described.has(name)),
  ).toEqual([])
})

const SECRET = 'hunter2-in-a-message'

it('no page of the ops servers and no log line has a part of a chunk, waiting or inserted', async () => {
  const { apiUrl, apiKey, dataDir, opsUrls, prefix, processes } = installation
  const names = queueNames(prefix)
  processes.worker.kill('SIGSTOP')
  /** The middle of the chunk's frame, as text in the forms in which a log line or a page might have it. */
  let partsOfFrame: string[] = []
  const expectNoSecret = async (...urls: string[]): Promise<void> => {
    const requests = urls.flatMap((url) =>
      ['/livez', '/readyz', '/metrics', '/overload'].map((path) => url + path),
    )
    const found = await Promise.all(requests.map(async (url) => (await fetch(url)).text()))
    for (const file of await readdir(`${dataDir}/logs`))
      if (/^(api|worker)/.test(file)) found.push(await readFile(`${dataDir}/logs/${file}`, 'utf8'))
    for (const secret of [
      SECRET,
      apiKey,
      Buffer.from(SECRET).toString('base64').slice(2, 20),
      ...partsOfFrame,
    ])
      expect(found.join('')).not.toContain(secret)
  }
  try {
    expect((await postLogs({ apiUrl, apiKey }, { level: 'info', message: SECRET })).status).toBe(202)
    const id = (await redis.lindex(names.waitKey, 0)) ?? ''
    const frame = (await redis.hgetBuffer(names.jobKey(id), FRAME_FIELD)) ?? Buffer.alloc(0)
    expect(frame.length).toBeGreaterThan(24)
    const part = frame.subarray(12, 24)
    partsOfFrame = [part.toString('base64'), part.toString('hex'), part.join(',')]
    await expectNoSecret(opsUrls.api)
  } finally {
    processes.worker.kill('SIGCONT')
  }
  await eventually(async () => expect(await redis.exists(names.waitKey, names.activeKey)).toBe(0))
  await expectNoSecret(opsUrls.api, opsUrls.worker)
})

/** More than the default of Node, which is 511. */
const CLIENTS = 1_500

it('clients can connect although the process is too busy to accept them', async () => {
  const { processes, apiUrl } = installation
  processes.api.kill('SIGSTOP')
  const port = Number(new URL(apiUrl).port)
  let connected = 0
  const sockets = Array.from({ length: CLIENTS }, () =>
    connect(port, '127.0.0.1', () => {
      connected += 1
    }).on('error', () => undefined),
  )
  const systemMax = Number(await readFile('/proc/sys/net/core/somaxconn', 'utf8'))
  try {
    await eventually(async () => expect(connected).toBeGreaterThanOrEqual(Math.min(CLIENTS, systemMax)))
  } finally {
    for (const socket of sockets) socket.destroy()
    processes.api.kill('SIGCONT')
  }
})

it('API and worker are not ready while Redis may lose entries, unless this is permitted', async () => {
  const { opsUrls, supervisor } = installation
  const options = { ...installation, name: 'permissive', environment: { REDIS_ALLOW_UNSAFE: 'true' } }
  const permissive = [
    await startApi(supervisor, options),
    await startWorker(supervisor, { ...options, name: 'permissive-worker' }),
  ]
  const urls = [...Object.values(opsUrls), ...permissive.map(({ opsUrl }) => opsUrl)]
  const statuses = (): Promise<number[]> =>
    Promise.all(urls.map(async (url) => (await fetch(`${url}/readyz`)).status))
  await redis.config('SET', 'appendfsync', 'everysec')
  await eventually(async () => expect(await statuses()).toEqual([503, 503, 200, 200]))
  await redis.config('SET', 'appendfsync', 'always')
  await eventually(async () => expect(await statuses()).toEqual([200, 200, 200, 200]))
})
