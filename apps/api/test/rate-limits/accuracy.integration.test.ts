import type { Project } from '@sluice/projects'
import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { Problem } from '../../src/problems.ts'
import { RateLimits } from '../../src/rate-limits/rate-limits.ts'
import { SharedBuckets } from '../../src/rate-limits/shared-buckets.ts'

/** What the contract allows, with several processes. */
const TOLERANCE = 0.1
const PER_SECOND = 2_000
const BURST = 2_000
const project: Project = {
  id: 'demo',
  createdAt: '',
  enabled: true,
  retentionDays: 30,
  limits: { entriesPerSecond: PER_SECOND, burstEntries: BURST },
}

let names: ReturnType<typeof redisNames>
let connections: RedisConnection[]
/** Another connection, which no lease is in the way of. */
let clock: RedisConnection
/** Three API processes: each has its own connection, and knows nothing of the others. */
let processes: RateLimits[]

beforeEach(async () => {
  clock = connectRedis(inject('services').redisUrl, { failFast: false })
  names = redisNames(`test-rate-limits-${randomUUID()}`)
  connections = Array.from({ length: 3 }, () =>
    connectRedis(inject('services').redisUrl, { failFast: true, commandTimeoutMs: 1_800 }),
  )
  await vi.waitUntil(() => connections.every(({ status }) => status === 'ready'))
  processes = connections.map(
    (redis, index) =>
      new RateLimits(
        new SharedBuckets(redis, names, `process-${index}`),
        { entriesPerSecond: 0, bytesPerSecond: 0 },
        createLogger('test', 'silent'),
      ),
  )
})

afterEach(async () => {
  await clock.del(names.rateLimitKey(project.id))
  for (const redis of [clock, ...connections]) redis.disconnect()
})

/** Seconds, on the clock that the bucket is on. */
async function redisSeconds(): Promise<number> {
  const [seconds, microseconds] = (await clock.call('TIME')) as [string, string]
  return Number(seconds) + Number(microseconds) / 1e6
}

interface Offer {
  /** Which of the processes gets the next request. */
  readonly process: (request: number, elapsedMs: number) => number
  /** How many entries it has. */
  readonly entries: (request: number) => number
  readonly perSecond: number
  readonly forMs: number
}

/** A round that came later than this was held up by a busy machine. */
const STALL_MS = 25
/** How many rounds without a stall there must be before the end, so that nothing is left behind by one. */
const CALM_ROUNDS = 40

/** Offers entries in the rhythm that is asked for, catching up after each stall; none waits for another. */
async function offer({ process, entries, perSecond, forMs }: Offer) {
  let admitted = 0
  let refused = 0
  let offered = 0
  let request = 0
  const pending: Promise<void>[] = []
  const startS = await redisSeconds()
  const startMs = performance.now()
  let elapsedMs = 0
  for (let calmRounds = 0; elapsedMs < forMs || calmRounds < CALM_ROUNDS;) {
    const beforeMs = elapsedMs
    elapsedMs = performance.now() - startMs
    calmRounds = elapsedMs - beforeMs > STALL_MS ? 0 : calmRounds + 1
    while (offered < (perSecond * elapsedMs) / 1_000) {
      const cost = entries(request)
      offered += cost
      const allowance = processes[process(request, elapsedMs)]?.of(project)
      request += 1
      const decided = async (): Promise<void> => {
        try {
          await allowance?.take({ entries: cost, bytes: cost })
          admitted += cost
        } catch (error) {
          if (!(error instanceof Problem)) throw error
          refused += cost
        }
      }
      pending.push(decided())
    }
    await sleep(2)
  }
  await Promise.all(pending)
  const allowed = BURST + PER_SECOND * ((await redisSeconds()) - startS)
  return { admitted, refused, offered, allowed, requests: request }
}

const even = (request: number): number => request % 3
const loads = {
  'on one process': () => 0,
  'spread evenly': even,
  'spread unevenly': (request: number) => [0, 0, 0, 0, 0, 0, 0, 0, 1, 2][request % 10] ?? 0,
  'switching every 300 ms': (_request: number, elapsedMs: number) => Math.floor(elapsedMs / 300) % 3,
}

describe.each(Object.entries(loads))('three processes under a load %s', (_how, process) => {
  it.each([
    ['single entries', () => 1, 8_000],
    ['requests of all sizes', (request: number) => [1, 1, 3, 17, 100][request % 5] ?? 1, 8_000],
    ['little more than the limit', () => 10, 4_500],
    // Again when a lease took a stalled machine or disk longer than it has: the processes then grant on their own.
  ])('let through what the limit allows, in %s', { retry: 2 }, async (_what, entries, perSecond) => {
    const { admitted, allowed, offered } = await offer({ process, entries, perSecond, forMs: 2_000 })
    expect(offered).toBeGreaterThan(allowed)
    expect(admitted / allowed).toBeGreaterThan(1 - TOLERANCE)
    expect(admitted / allowed).toBeLessThan(1 + TOLERANCE)
  })

  it('refuse nothing of a load within the limit', async () => {
    const { refused } = await offer({ process, entries: () => 5, perSecond: PER_SECOND / 2, forMs: 1_000 })
    expect(refused).toBe(0)
  })
})

it('ask Redis far less often than they are asked', async () => {
  const asked = connections.map((redis) => vi.spyOn(redis, 'eval'))
  const { requests } = await offer({ process: even, entries: () => 1, perSecond: 8_000, forMs: 1_000 })
  const leases = asked.reduce((sum, { mock }) => sum + mock.calls.length, 0)
  expect(leases).toBeLessThan(requests / 10)
})
