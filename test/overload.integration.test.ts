import { startStack, type Stack } from '@sluice/local'
import { connectClickHouse, connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { encodeChunk, IdSource, redisNames } from '@sluice/schema'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ChunkQueue } from '../apps/api/src/chunks/chunk-queue.ts'
import { chunkLimits } from '../apps/api/src/chunks/chunk-writer.ts'
import type { OverloadStatus } from '../apps/api/src/overload/overload-monitor.ts'
import { OverloadedError } from '../apps/api/src/overload/overloaded-error.ts'
import { eventually } from './support.ts'
import { startTestServices } from './test-services.ts'

/** Small enough to be filled in seconds. */
const MEMORY_BYTES = 64 * 1024 * 1024
/** At 8 MB a second, some two seconds of load fit between this mark and the peak that is allowed. */
const HIGH_PERCENT = 50
const PEAK_PERCENT_MAX = 80
/** How long the load goes on after the first refusal. */
const REFUSED_FOR_MS = 3_000
const SENDERS = 4
const ENTRIES_PER_REQUEST = 100
/** Four senders with 100 entries of 1 KB each: 8 MB a second. */
const REQUEST_INTERVAL_MS = 50
/** What the contract gives for an answer. */
const ANSWER_WITHIN_MS = 2_000

let stack: Stack
let redis: RedisConnection

beforeAll(async () => {
  stack = await startStack({
    services: await startTestServices({ redis: { memoryBytesMax: MEMORY_BYTES } }),
    api: { environment: { REDIS_MEMORY_HIGH_PERCENT: String(HIGH_PERCENT), REDIS_MEMORY_LOW_PERCENT: '40' } },
  })
  redis = connectRedis(stack.redisUrl, { failFast: false })
})

afterAll(async () => {
  redis?.disconnect()
  await stack?.stop()
})

interface Answer {
  readonly status: number
  readonly code: unknown
  readonly retryAfter: string | null
  readonly tookMs: number
}

let entriesMade = 0

/** Posts entries that no compression makes small; each has its own message. */
async function postEntries(count: number): Promise<Answer> {
  const logs = Array.from({ length: count }, () => {
    entriesMade += 1
    return {
      level: 'info',
      message: `${entriesMade} ${randomBytes(750).toString('base64')}`,
      service: 'overload',
    }
  })
  const startedMs = performance.now()
  const response = await fetch(`${stack.apiUrl}/v1/logs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ logs }),
    signal: AbortSignal.timeout(10_000),
  })
  const { code } = (await response.json()) as { code?: unknown }
  const tookMs = performance.now() - startedMs
  return { status: response.status, code, retryAfter: response.headers.get('retry-after'), tookMs }
}

/** Posts without heed of what it is told, until some time after the first refusal. */
async function load(): Promise<Answer[]> {
  const answers: Answer[] = []
  let endMs = Number.POSITIVE_INFINITY
  const send = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const [answer] = await Promise.all([postEntries(ENTRIES_PER_REQUEST), sleep(REQUEST_INTERVAL_MS)])
      answers.push(answer)
      if (answer.status !== 202) endMs = Math.min(endMs, performance.now() + REFUSED_FOR_MS)
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, send))
  return answers
}

/** How long each call of /livez took, ms, until the signal. */
async function watchLiveness(signal: AbortSignal): Promise<number[]> {
  const times: number[] = []
  while (!signal.aborted) {
    const startedMs = performance.now()
    const response = await fetch(`${stack.apiUrl}/livez`)
    await response.text()
    if (response.status === 200) times.push(performance.now() - startedMs)
    await sleep(50)
  }
  return times
}

async function overload(): Promise<OverloadStatus> {
  return (await fetch(`${stack.opsUrls.api}/overload`)).json() as Promise<OverloadStatus>
}

async function memoryField(name: string): Promise<number> {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(await redis.info('memory'))?.[1])
}

async function stored(): Promise<{ rows: number; distinct: number }> {
  const clickhouse = connectClickHouse(stack.clickhouse, { requestTimeoutMs: 5_000, connectionsMax: 1 })
  try {
    const query =
      "SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(message)) AS distinct FROM logs WHERE service = 'overload'"
    const result = await clickhouse.query({ query, format: 'JSONEachRow' })
    const [row] = await result.json<{ rows: number; distinct: number }>()
    return row ?? { rows: 0, distinct: 0 }
  } finally {
    await clickhouse.close()
  }
}

/** How often the API has logged the message. */
async function timesLogged(message: string): Promise<number> {
  const log = await readFile(join(stack.dataDir, 'logs', 'api.log'), 'utf8')
  return log.split(`"msg":"${message}"`).length - 1
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

describe('while no worker takes what comes', () => {
  let answers: Answer[]
  let liveness: number[]

  beforeAll(async () => {
    await stack.processes.worker.stop()
    const watch = new AbortController()
    const watching = watchLiveness(watch.signal)
    answers = await load()
    watch.abort()
    liveness = await watching
  })

  it('everything is accepted up to the mark, then refused with a time to try again', () => {
    const refused = answers.filter(({ status }) => status !== 202)
    expect(answers.length - refused.length).toBeGreaterThan(100)
    expect(refused.length).toBeGreaterThan(30)
    for (const { status, code, retryAfter } of refused) {
      expect({ status, code }).toEqual({ status: 503, code: 'overloaded' })
      expect(Number(retryAfter)).toBeGreaterThanOrEqual(5)
      expect(Number(retryAfter)).toBeLessThanOrEqual(15)
    }
  })

  it("Redis' memory stays near the mark, and never comes near its maximum", async () => {
    const peakPercent = (100 * (await memoryField('used_memory_peak'))) / MEMORY_BYTES
    expect(peakPercent).toBeGreaterThanOrEqual(HIGH_PERCENT)
    expect(peakPercent).toBeLessThan(PEAK_PERCENT_MAX)
  })

  it('refusals are quick, and the API lives and is ready', async () => {
    const refused = answers.filter(({ status }) => status !== 202).map(({ tookMs }) => tookMs)
    expect(median(refused)).toBeLessThan(ANSWER_WITHIN_MS / 4)
    expect(Math.max(...refused)).toBeLessThan(ANSWER_WITHIN_MS)
    expect(liveness.length).toBeGreaterThan(20)
    expect(median(liveness)).toBeLessThan(ANSWER_WITHIN_MS / 4)
    expect(Math.max(...liveness)).toBeLessThan(ANSWER_WITHIN_MS)
    expect((await fetch(`${stack.opsUrls.api}/readyz`)).status).toBe(200)
  })

  it('the reason is told with what was refused for it, and logged once', async () => {
    const status = await overload()
    expect(status).toMatchObject({ overloaded: true, redisReadable: true })
    expect(status.signals.redis_memory).toMatchObject({ isOver: true, high: HIGH_PERCENT, low: 40 })
    expect(status.signals.queue_depth.value).toBeGreaterThan(0)
    expect(status.signals.queue_age.value).toBeGreaterThan(REFUSED_FOR_MS / 2_000)
    expect(status.signals.queue_age.value).toBeLessThan(60)
    const refused = answers.filter(({ status: code }) => code !== 202)
    expect(status.refused).toMatchObject({ redis_memory: refused.length, queue_depth: 0, bytes_in_flight: 0 })
    expect(await timesLogged('overloaded, refusing requests')).toBe(1)
  })

  it('and once a worker is back, all that was acknowledged arrives, once, and more is taken', async () => {
    await stack.processes.worker.start()
    const accepted = answers.filter(({ status }) => status === 202).length * ENTRIES_PER_REQUEST
    await eventually(20_000, async () => {
      expect(await stored()).toEqual({ rows: accepted, distinct: accepted })
    })
    await eventually(5_000, async () => expect(await overload()).toMatchObject({ overloaded: false }))
    expect(await timesLogged('no longer overloaded')).toBe(1)
    expect(await postEntries(1)).toMatchObject({ status: 202 })
    await eventually(5_000, async () => {
      expect(await stored()).toEqual({ rows: accepted + 1, distinct: accepted + 1 })
    })
  })
})

describe('a Redis that is full all the same', () => {
  const names = redisNames('full')
  const ids = new IdSource(Date.now)
  const chunk = encodeChunk(1, Buffer.from('{"a":1}\n'))
  let connection: RedisConnection
  let queue: ChunkQueue

  beforeAll(async () => {
    connection = connectRedis(stack.redisUrl, { failFast: true, commandTimeoutMs: chunkLimits.addDeadlineMs })
    await eventually(5_000, () => connection.ping())
    queue = new ChunkQueue(connection, names, createLogger('test', 'silent'))
    await queue.add(ids.next(), chunk, performance.now() + chunkLimits.addDeadlineMs)
    await stack.processes.worker.stop()
    await redis.config('SET', 'maxmemory', '1mb')
  })

  afterAll(async () => {
    await redis.config('SET', 'maxmemory', String(MEMORY_BYTES))
    await queue.close()
    connection.disconnect()
  })

  const add = (to: ChunkQueue): Promise<void> =>
    to.add(ids.next(), chunk, performance.now() + chunkLimits.addDeadlineMs)

  it('is not asked again, and keeps nothing of what it refuses', async () => {
    const before = await redis.keys(`${names.queuePrefix}*`)
    const startedMs = performance.now()
    const error: unknown = await add(queue).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OverloadedError)
    expect(error).toMatchObject({ reason: 'redis_memory', cause: { message: expect.stringMatching(/OOM/) } })
    expect(performance.now() - startedMs).toBeLessThan(chunkLimits.addDeadlineMs / 2)
    expect((await redis.keys(`${names.queuePrefix}*`)).toSorted()).toEqual(before.toSorted())
    expect(await redis.llen(names.waitKey)).toBe(1)
  })

  it('is told so by the first add of a process, too', async () => {
    const fresh = new ChunkQueue(connection, names, createLogger('test', 'silent'))
    await expect(add(fresh)).rejects.toThrow(OverloadedError)
    await fresh.close()
  })

  it('has requests refused within the time to answer, until there is room again', async () => {
    const before = await redis.llen(redisNames(stack.prefix).waitKey)
    const refused = await postEntries(1)
    expect(refused).toMatchObject({ status: 503, code: 'overloaded' })
    expect(refused.tookMs).toBeLessThan(ANSWER_WITHIN_MS)
    expect(await redis.llen(redisNames(stack.prefix).waitKey)).toBe(before)
    await redis.config('SET', 'maxmemory', String(MEMORY_BYTES))
    await eventually(5_000, async () => expect(await postEntries(1)).toMatchObject({ status: 202 }))
  })
})
