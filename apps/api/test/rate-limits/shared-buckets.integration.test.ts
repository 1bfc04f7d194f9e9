import { FaultProxy } from '@sluice/harness'
import type { Project } from '@sluice/projects'
import { connectRedis, createLogger, installationNames, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { Problem } from '../../src/problems.ts'
import type { RateLimit } from '../../src/rate-limits/rate-limit.ts'
import { projectRateLimits, type RateLimits } from '../../src/rate-limits/allowance.ts'
import {
  type Lease,
  type LeaseRequest,
  type LeaseShared,
  sharedBuckets,
} from '../../src/rate-limits/shared-buckets.ts'

const none = { entries: 0, bytes: 0 }
const unlimited = { RATE_LIMIT_ENTRIES_PER_SECOND: 0, RATE_LIMIT_BYTES_PER_SECOND: 0 }
/** A rate so low that the bucket does not refill during a test. */
const limit: RateLimit = {
  perSecond: { entries: 0.001, bytes: 0.001 },
  burst: { entries: 100, bytes: 5_000 },
}

let prefix: string
let names: ReturnType<typeof installationNames>
let redis: RedisConnection
let proxy: FaultProxy
let connections: RedisConnection[]
let buckets: LeaseShared

async function connect(url: string): Promise<RedisConnection> {
  const connection = connectRedis(url, { failFast: true, commandTimeoutMs: 1_800 })
  connection.on('error', () => undefined)
  connections.push(connection)
  await vi.waitUntil(() => connection.status === 'ready')
  return connection
}

beforeEach(async () => {
  const { redisUrl } = inject('services')
  prefix = `test-shared-buckets-${randomUUID()}`
  names = installationNames(prefix)
  connections = []
  proxy = await FaultProxy.open(redisUrl)
  redis = await connect(redisUrl)
  buckets = sharedBuckets(redis, names)
})

afterEach(async () => {
  const left = await redis.keys(`?${prefix}?:*`)
  if (left.length > 0) await redis.del(left)
  for (const connection of connections) connection.disconnect()
  proxy.resume()
  await proxy.down()
})

const lease = (request: Partial<LeaseRequest> = {}, of = limit, projectId = 'demo'): Promise<Lease> =>
  buckets(projectId, of, { back: none, costs: [], ahead: none, ...request })
const pay = (...costs: [entries: number, bytes: number][]): Promise<Lease> =>
  lease({ costs: costs.map(([entries, bytes]) => ({ entries, bytes })) })

describe('a bucket', () => {
  it('is full at first, and pays each cost that both units cover, in full or not at all', async () => {
    const { paid, level } = await pay([60, 10], [60, 10], [40, 4_000], [0, 4_000], [1, 10])
    expect(paid).toEqual([true, false, true, false, false])
    expect(level).toEqual({ entries: 0, bytes: 990 })
    // Each project has a bucket of its own.
    expect((await lease({}, limit, 'other')).level.entries).toBe(100)
  })

  it('leases in advance what is available, or nothing if it rejects a cost', async () => {
    const ahead = { entries: 70, bytes: 10 }
    expect(await lease({ ahead })).toMatchObject({ ahead, level: { entries: 30, bytes: 4_990 } })
    const costs = [{ entries: 31, bytes: 1 }]
    expect(await lease({ costs, ahead })).toMatchObject({ ahead: none, level: { entries: 30 } })
    expect(await lease({ ahead })).toMatchObject({ ahead: { entries: 30 }, level: { entries: 0 } })
  })

  it('accepts returned tokens up to the burst', async () => {
    await pay([60, 0])
    const back = { entries: 40, bytes: 40 }
    for (const entries of [80, 100]) expect((await lease({ back })).level).toEqual({ entries, bytes: 5_000 })
  })

  it('does not limit a unit without a limit, and is full in this unit when it gets one', async () => {
    const entriesOnly = { perSecond: { entries: 0.001, bytes: 0 }, burst: { entries: 100, bytes: 0 } }
    await pay([0, 9_000])
    expect(await lease({ costs: [{ entries: 1, bytes: 0 }] }, entriesOnly)).toMatchObject({
      paid: [true],
      level: { entries: 99, bytes: 0 },
    })
    expect((await pay([1, 5_000])).paid).toEqual([true])
  })

  it('refills at its rate, and expires when it is full', async () => {
    const fast = { perSecond: { entries: 1_000, bytes: 0 }, burst: { entries: 1_000, bytes: 0 } }
    await lease({ costs: [{ entries: 1_000, bytes: 0 }] }, fast)
    const ttlMs = await redis.pttl(names.rateLimitKey('demo'))
    expect(ttlMs).toBeGreaterThan(0)
    expect(ttlMs).toBeLessThanOrEqual(1_000)
    await sleep(100)
    expect((await lease({}, fast)).level.entries).toBeGreaterThanOrEqual(90)
  })
})

const projectWith = (limits: Project['limits']): Project => ({
  id: 'demo',
  createdAt: '',
  enabled: true,
  retentionDays: 30,
  ...(limits === undefined ? {} : { limits }),
})

/** The result of a request: `passed`, or the seconds of `Retry-After`. */
async function send(rateLimits: RateLimits, project: Project, entries: number): Promise<number | 'passed'> {
  try {
    await rateLimits(project)?.take({ entries, bytes: entries })
    return 'passed'
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return Number(error.headers['retry-after'])
  }
}

async function apiProcess(url: string): Promise<RateLimits> {
  const own = sharedBuckets(await connect(url), names)
  return projectRateLimits(own, unlimited, createLogger('test', 'silent'))
}

it.each([
  [{ entriesPerSecond: 100, burstEntries: 100 }, 80],
  [{ entriesPerSecond: 40, burstEntries: 60 }, 100],
  [{ bytesPerSecond: 1_024, burstBytes: 1_024 }, 1_500],
])('waiting for Retry-After suffices under %j for %i, in every process', async (limits, entries) => {
  const { redisUrl } = inject('services')
  const processes = await Promise.all([1, 2, 3].map(() => apiProcess(redisUrl)))
  const project = projectWith(limits)
  let rejections = 0
  for (let request = 0; rejections < 2; request += 1) {
    const at = (turn: number): RateLimits => processes[turn % 3] as RateLimits
    const seconds = await send(at(request), project, entries)
    if (seconds === 'passed') continue
    rejections += 1
    expect(seconds).toBeLessThanOrEqual(3)
    await sleep(seconds * 1_000)
    expect(await send(at(request + rejections), project, entries)).toBe('passed')
  }
})

describe('a Redis that becomes unavailable', () => {
  // A rate so low that the bucket does not refill during the test.
  const project = projectWith({ entriesPerSecond: 1, burstEntries: 500 })
  let rateLimits: RateLimits

  beforeEach(async () => {
    rateLimits = await apiProcess(proxy.url)
    await send(rateLimits, project, 1)
  })

  it('leaves the process one burst while it is down, and leases continue when it is back', async () => {
    await proxy.down()
    await redis.del(names.rateLimitKey('demo'))
    for (let i = 0; i < 19; i += 1) expect(await send(rateLimits, project, 25)).toBe('passed')
    expect(await send(rateLimits, project, 500)).toBeTypeOf('number')
    await proxy.up()
    const isLeased = async (): Promise<boolean> => {
      await send(rateLimits, project, 25)
      return (await redis.exists(names.rateLimitKey('demo'))) === 1
    }
    await vi.waitUntil(isLeased, { interval: 5 })
  })
})
