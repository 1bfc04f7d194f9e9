import { eventually, pause, postLogs } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { OverloadStatus } from '../apps/api/src/overload/overload-monitor.ts'

/** Small enough to fill up within seconds. */
const MEMORY_BYTES = 64 * 1024 * 1024
/** The high-water mark. At 8 MB per second, about two seconds of load fit between it and the allowed peak. */
const HIGH_PERCENT = 50
const PEAK_PERCENT_MAX = 80
/** How long the load continues after the first rejection. */
const REFUSED_FOR_MS = 3_000
const SENDERS = 4
const ENTRIES_PER_REQUEST = 100
/** Four senders with 100 entries of 1 KB each: 8 MB per second. */
const REQUEST_INTERVAL_MS = 50

let installation: Installation
let redis: RedisConnection

beforeAll(async () => {
  installation = await startTestInstallation({
    redis: { memoryBytesMax: MEMORY_BYTES },
    api: { environment: { REDIS_MEMORY_HIGH_PERCENT: String(HIGH_PERCENT) } },
  })
  redis = connectRedis(installation.redisUrl, { failFast: false })
})

afterAll(async () => {
  redis?.disconnect()
  await installation?.stop()
})

interface Answer {
  readonly status: number
  readonly code: unknown
  readonly retryAfter: string | null
}

let entriesMade = 0

/** Posts entries that cannot be compressed. Each has a different message. */
async function postEntries(count: number): Promise<Answer> {
  const logs = Array.from({ length: count }, () => {
    entriesMade += 1
    return {
      level: 'info',
      message: `${entriesMade} ${randomBytes(750).toString('base64')}`,
      service: 'overload',
    }
  })
  const { status, headers, body } = await postLogs(installation, { logs })
  const { code } = body as { code?: unknown }
  return { status, code, retryAfter: headers.get('retry-after') }
}

/** Posts at a constant rate, until some time after the first rejection. */
async function load(): Promise<Answer[]> {
  const answers: Answer[] = []
  let endMs = Number.POSITIVE_INFINITY
  const send = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const [answer] = await Promise.all([postEntries(ENTRIES_PER_REQUEST), pause(REQUEST_INTERVAL_MS)])
      answers.push(answer)
      if (answer.status !== 202) endMs = Math.min(endMs, performance.now() + REFUSED_FOR_MS)
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, send))
  return answers
}

async function overload(): Promise<OverloadStatus> {
  return (await fetch(`${installation.opsUrls.api}/overload`)).json() as Promise<OverloadStatus>
}

async function memoryField(name: string): Promise<number> {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(await redis.info('memory'))?.[1])
}

async function stored(): Promise<{ rows: number; distinct: number }> {
  const query =
    "SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(message)) AS distinct FROM logs WHERE service = 'overload'"
  const [row] = await select<{ rows: number; distinct: number }>(installation.clickhouse, query)
  return row ?? { rows: 0, distinct: 0 }
}

/** How often the API logged the message. */
async function timesLogged(message: string): Promise<number> {
  const log = await readFile(join(installation.dataDir, 'logs', 'api.log'), 'utf8')
  return log.split(`"msg":"${message}"`).length - 1
}

describe('without a running worker', () => {
  let answers: Answer[]

  beforeAll(async () => {
    await installation.processes.worker.stop()
    answers = await load()
  })

  it('entries are accepted up to the high-water mark, then rejected with a Retry-After', () => {
    const rejections = answers.filter(({ status }) => status !== 202)
    expect(answers.length - rejections.length).toBeGreaterThan(100)
    expect(rejections.length).toBeGreaterThan(30)
    for (const { status, code, retryAfter } of rejections) {
      expect({ status, code }).toEqual({ status: 503, code: 'overloaded' })
      expect(Number(retryAfter)).toBeGreaterThanOrEqual(5)
      expect(Number(retryAfter)).toBeLessThanOrEqual(15)
    }
  })

  it('the memory of Redis stays near the high-water mark, far from its maximum', async () => {
    const peakPercent = (100 * (await memoryField('used_memory_peak'))) / MEMORY_BYTES
    expect(peakPercent).toBeGreaterThanOrEqual(HIGH_PERCENT)
    expect(peakPercent).toBeLessThan(PEAK_PERCENT_MAX)
  })

  it('the status shows the reason and how many requests it has rejected, and it is logged once', async () => {
    const status = await overload()
    expect(status).toMatchObject({ overloaded: true, redisReadable: true })
    expect(status.signals.redis_memory).toMatchObject({ isOver: true, high: HIGH_PERCENT, low: 43 })
    expect(status.signals.queue_depth.value).toBeGreaterThan(0)
    expect(status.signals.queue_age.value).toBeGreaterThan(REFUSED_FOR_MS / 2_000)
    expect(status.signals.queue_age.value).toBeLessThan(60)
    const rejections = answers.filter(({ status: code }) => code !== 202)
    expect(status.refused).toMatchObject({
      redis_memory: rejections.length,
      queue_depth: 0,
    })
    expect(await timesLogged('overloaded, rejecting requests')).toBe(1)
  })

  it('when a worker is started, every acknowledged entry is stored once, and the API accepts entries again', async () => {
    await installation.processes.worker.start()
    const accepted = answers.filter(({ status }) => status === 202).length * ENTRIES_PER_REQUEST
    await eventually(async () => {
      expect(await stored()).toEqual({ rows: accepted, distinct: accepted })
    })
    await eventually(async () => expect(await overload()).toMatchObject({ overloaded: false }))
    expect(await timesLogged('no longer overloaded')).toBe(1)
    expect(await postEntries(1)).toMatchObject({ status: 202 })
    await eventually(async () => {
      expect(await stored()).toEqual({ rows: accepted + 1, distinct: accepted + 1 })
    })
  })
})
