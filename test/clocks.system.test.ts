import { eventually, type LogsResponse, postLogs } from '@sluice/harness'
import { command, select } from '@sluice/harness/clickhouse'
import { drainQueue } from '@sluice/harness/drain'
import { HttpServer } from '@sluice/harness/http-server'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { type ApiApp, type App, type Installation, startApi, startWorker } from '@sluice/local'
import { ChunkQueue, queueNames } from '@sluice/queue'
import { connectRedis } from '@sluice/runtime'
import { randomUUIDv7 } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { textChunk } from '../packages/queue/test/support/text-chunk.ts'

const DAY_MS = 86_400_000
const ADD_WITHIN_MS = 5_000

let installation: Installation

beforeAll(async () => {
  installation = await startTestInstallation()
})

afterAll(() => installation?.stop())

/** The environment of a process whose wall clock is off. */
function shiftedBy(days: number): Readonly<Record<string, string>> {
  return {
    NODE_OPTIONS: `--import=${import.meta.resolve('@sluice/harness/shifted-clock')}`,
    CLOCK_SHIFT_MS: String(days * DAY_MS),
  }
}

function startShiftedApi(days: number): Promise<ApiApp> {
  const { supervisor, redisUrl, prefix } = installation
  const name = `api-shifted-by-${days}`
  return startApi(supervisor, { redisUrl, prefix, name, environment: shiftedBy(days), until: 'alive' })
}

/** Lets ClickHouse drop all rows that have expired by its clock. */
function dropExpired(table: string): Promise<void> {
  return command(installation.clickhouse, `OPTIMIZE TABLE ${table} FINAL`)
}

/** When the rows of a service were received. */
async function storedRows(service: string): Promise<number[]> {
  const query =
    'SELECT toUnixTimestamp64Milli(received_at)::Float64 AS atMs FROM logs WHERE service = {service: String}'
  const rows = await select<{ atMs: number }>(installation.clickhouse, query, { service })
  return rows.map(({ atMs }) => atMs)
}

/** A process that has just started responds with 503 until Redis has replied to it. */
async function postAccepted(apiUrl: string, service: string): Promise<LogsResponse> {
  return eventually(async () => {
    const answer = await postLogs({ apiUrl, apiKey: installation.apiKey }, entryOf(service))
    expect(answer).toMatchObject({ status: 202 })
    return answer
  })
}

const entryOf = (service: string) => ({ level: 'info', message: 'a clock is wrong', service })

async function readPage(opsUrl: string, path: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${opsUrl}${path}`)
  return { status: response.status, body: await response.json() }
}

/** Waits until a process is not ready for a reason that contains this string. @returns all reasons */
async function notReadyReason(opsUrl: string, text = 'the clock of'): Promise<string> {
  return eventually(async () => {
    const { status, body } = await readPage(opsUrl, '/readyz')
    expect(status).toBe(503)
    const reasons = (body as { reasons: string[] }).reasons.join('; ')
    expect(reasons).toContain(text)
    return reasons
  })
}

it.each([-40, 40])(
  'an API process whose clock is off by %i days stamps entries with the time of Redis, so that they are stored and stay',
  async (days) => {
    const api = await startShiftedApi(days)
    onTestFinished(() => api.process.stop())
    const service = `api-${days}`
    const { body } = await postAccepted(api.url, service)
    await eventually(async () => expect(await storedRows(service)).toHaveLength(1))
    await dropExpired('logs')
    const times = [...(await storedRows(service)), Date.parse((body as { timestamp: string }).timestamp)]
    expect(times).toHaveLength(2)
    for (const atMs of times) expect(Math.abs(atMs - Date.now())).toBeLessThan(DAY_MS / 2)
  },
)

it.each([-2, 2])(
  'entries do not make any process reject others as overloaded if one clock is off by %i days',
  async (days) => {
    const { worker } = installation.processes
    const [api] = await Promise.all([startShiftedApi(days), worker.stop()])
    const service = `age-${days}`
    try {
      const processes = [api, { url: installation.apiUrl, opsUrl: installation.opsUrls.api }]
      // By the wall clocks, the first chunk is the older one.
      for (const { url } of days < 0 ? processes : processes.toReversed()) await postAccepted(url, service)
      for (const { url, opsUrl } of processes) {
        await eventually(async () => {
          const { body } = await readPage(opsUrl, '/overload')
          expect(body).toMatchObject({ queue: { waiting: expect.toSatisfy((chunks) => chunks >= 2) } })
        })
        const { apiKey } = installation
        const answer = await postLogs({ apiUrl: url, apiKey }, entryOf(`${service}-after-reading`))
        expect(answer).toMatchObject({ status: 202 })
        expect(await readPage(opsUrl, '/overload')).toMatchObject({ body: { overloaded: false } })
      }
    } finally {
      await Promise.all([api.process.stop(), worker.start()])
    }
    await eventually(async () => {
      expect(await storedRows(service)).toHaveLength(2)
      expect(await storedRows(`${service}-after-reading`)).toHaveLength(2)
    })
  },
  60_000,
)

/** Runs another worker than the one of the installation, which is stopped from now on. */
async function withWorker(
  environment: Readonly<Record<string, string>>,
  test: (worker: App) => Promise<void>,
): Promise<void> {
  const { supervisor, redisUrl, prefix, clickhouse: access, processes } = installation
  await processes.worker.stop()
  const worker = await startWorker(supervisor, {
    redisUrl,
    prefix,
    clickhouse: access,
    name: `worker-${randomUUIDv7()}`,
    environment,
    until: 'alive',
  })
  try {
    await test(worker)
  } finally {
    await worker.process.stop()
  }
}

/** Queues a chunk of an earlier version with a row that ClickHouse rejects. */
async function addInvalidRow(text: string): Promise<void> {
  const redis = connectRedis(installation.redisUrl, { failFast: false })
  const queue = new ChunkQueue(redis, queueNames(installation.prefix))
  await queue.add(randomUUIDv7(), textChunk([`${text}\n`]), performance.now() + ADD_WITHIN_MS)
  await queue.close()
  redis.disconnect()
}

describe.each([-100, 40])('a worker whose clock is off by %i days', (days) => {
  it('stores rows and dead letters so that they stay, and is not ready', async () => {
    const [service, text] = [`worker-${days}`, `not a row ${days}`]
    await withWorker(shiftedBy(days), async (worker) => {
      await postAccepted(installation.apiUrl, service)
      await addInvalidRow(text)
      const counts = async (): Promise<[rows: number, letters: number]> => {
        const query = 'SELECT 1 FROM dead_letters WHERE text = {text: String}'
        const letters = await select(installation.clickhouse, query, { text })
        return [(await storedRows(service)).length, letters.length]
      }
      await eventually(async () => expect(await counts()).toEqual([1, 1]))
      await dropExpired('logs')
      await dropExpired('dead_letters')
      expect(await counts()).toEqual([1, 1])
      const difference = `${Math.abs(days)} days ${days < 0 ? 'behind' : 'ahead of'} that of Redis`
      expect(await notReadyReason(worker.opsUrl)).toContain(`the clock of this process is ${difference}`)
    })
  })
})

describe("ClickHouse's clock", () => {
  let shiftDays = 0
  let proxy: HttpServer

  beforeAll(async () => {
    proxy = new HttpServer((request, response) => {
      forward(request).then(
        (text) => response.end(text),
        () => response.writeHead(502).end(),
      )
    })
    await proxy.listen()
  })

  afterAll(() => proxy?.close())

  /** Forwards a request to ClickHouse. The response to a query of its clock is shifted. */
  async function forward(request: IncomingMessage): Promise<Buffer | string> {
    const body = Buffer.concat(await request.toArray())
    const { authorization = '', 'content-encoding': encoding } = request.headers
    const answer = await fetch(`${installation.clickhouse.url}${request.url}`, {
      method: 'POST',
      headers: { authorization, ...(encoding !== undefined && { 'content-encoding': encoding }) },
      body,
    })
    if (!answer.ok) throw new Error('ClickHouse rejected a request')
    const content = Buffer.from(await answer.arrayBuffer())
    if (!body.includes('now64')) return content
    return content.toString().replace(/\d{13}/, (ms) => String(Number(ms) + shiftDays * DAY_MS))
  }

  it('is off by 40 days: nothing is inserted until it is right again, and then each row is stored once', async () => {
    await withWorker({ CLICKHOUSE_URL: proxy.url }, async (worker) => {
      for (const days of [-40, 40]) {
        const service = `clickhouse-${days}`
        shiftDays = days
        // Until the worker reads the clock again, it inserts.
        await notReadyReason(worker.opsUrl, 'the clock of ClickHouse is 40 days')
        await postAccepted(installation.apiUrl, service)
        const reasons = await notReadyReason(worker.opsUrl, 'batch not inserted: ClockSkewError')
        expect(reasons).toMatch(/the clock of ClickHouse is 40 days .* that of Redis/)
        expect(await storedRows(service)).toEqual([])
        const { wait, active, failed } = await drainQueue(installation.redisUrl, queueNames('sluice'), 0)
        expect([wait + active, failed]).toEqual([1, 0])
        shiftDays = 0
        await eventually(async () => expect(await storedRows(service)).toHaveLength(1))
        await eventually(async () =>
          expect(await readPage(worker.opsUrl, '/readyz')).toMatchObject({ status: 200 }),
        )
      }
    })
    for (const days of [-40, 40]) expect(await storedRows(`clickhouse-${days}`)).toHaveLength(1)
  }, 90_000)
})
