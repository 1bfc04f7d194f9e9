import type { Project } from '@sluice/projects'
import { connectRedis, createLogger, installationNames, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { Problem } from '../../src/problems.ts'
import { projectRateLimits, type RateLimits } from '../../src/rate-limits/allowance.ts'
import { sharedBuckets } from '../../src/rate-limits/shared-buckets.ts'

/** The deviation that the API promises not to exceed, with several processes. */
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

let names: ReturnType<typeof installationNames>
let connections: RedisConnection[]
/** A separate connection, so that leases do not delay it. */
let clock: RedisConnection
/** Three API processes with separate connections, independent of each other. */
let processes: RateLimits[]

beforeEach(async () => {
  clock = connectRedis(inject('services').redisUrl, { failFast: false })
  names = installationNames(`test-rate-limits-${randomUUID()}`)
  connections = Array.from({ length: 3 }, () =>
    connectRedis(inject('services').redisUrl, { failFast: true, commandTimeoutMs: 1_800 }),
  )
  await vi.waitUntil(() => connections.every(({ status }) => status === 'ready'))
  processes = connections.map((redis) =>
    projectRateLimits(
      sharedBuckets(redis, names),
      { RATE_LIMIT_ENTRIES_PER_SECOND: 0, RATE_LIMIT_BYTES_PER_SECOND: 0 },
      createLogger('test', 'silent'),
    ),
  )
})

afterEach(async () => {
  await clock.del(names.rateLimitKey(project.id))
  for (const redis of [clock, ...connections]) redis.disconnect()
})

/** Seconds, on the clock of the bucket. */
async function redisSeconds(): Promise<number> {
  const [seconds, microseconds] = (await clock.call('TIME')) as [string, string]
  return Number(seconds) + Number(microseconds) / 1e6
}

interface Offer {
  /** The index of the process that gets the request. */
  readonly process: (request: number, elapsedMs: number) => number
  /** The number of entries of the request. */
  readonly entries: (request: number) => number
  readonly perSecond: number
  readonly forMs: number
}

/** Offers entries at the given rate and catches up after each stall. The requests do not wait for each other. */
async function offer({ process, entries, perSecond, forMs }: Offer) {
  let admitted = 0
  let rejected = 0
  let offered = 0
  let request = 0
  const pending: Promise<void>[] = []
  const startS = await redisSeconds()
  const startMs = performance.now()
  let elapsedMs = 0
  while (elapsedMs < forMs) {
    elapsedMs = performance.now() - startMs
    while (offered < (perSecond * elapsedMs) / 1_000) {
      const cost = entries(request)
      offered += cost
      const allowance = processes[process(request, elapsedMs)]?.(project)
      request += 1
      const decided = async (): Promise<void> => {
        try {
          await allowance?.take({ entries: cost, bytes: cost })
          admitted += cost
        } catch (error) {
          if (!(error instanceof Problem)) throw error
          rejected += cost
        }
      }
      pending.push(decided())
    }
    await sleep(2)
  }
  await Promise.all(pending)
  const allowed = BURST + PER_SECOND * ((await redisSeconds()) - startS)
  return { admitted, rejected, offered, allowed }
}

const single = (): number => 1
const ofAllSizes = (request: number): number => [1, 1, 3, 17, 100][request % 5] ?? 1
const evenly = (request: number): number => request % 3
const unevenly = (request: number): number => [0, 0, 0, 0, 0, 0, 0, 0, 1, 2][request % 10] ?? 0
const switching = (_request: number, elapsedMs: number): number => Math.floor(elapsedMs / 300) % 3

describe('three processes', () => {
  it.each([
    ['single entries, spread evenly', single, evenly, 8_000],
    ['single entries, spread unevenly', single, unevenly, 8_000],
    ['requests of all sizes, spread unevenly', ofAllSizes, unevenly, 8_000],
    ['requests of all sizes, each 300 ms to another process', ofAllSizes, switching, 8_000],
    ['requests slightly above the limit', ofAllSizes, evenly, 4_500],
    // A retry for leases that time out on a stalled machine or disk: the process then counts on its own.
  ])('accept as much as the limit allows: %s', { retry: 2 }, async (_what, entries, process, perSecond) => {
    const { admitted, allowed, offered } = await offer({ process, entries, perSecond, forMs: 2_000 })
    expect(offered).toBeGreaterThan(allowed)
    expect(admitted / allowed).toBeGreaterThan(1 - TOLERANCE)
    expect(admitted / allowed).toBeLessThan(1 + TOLERANCE)
  })

  it.each([evenly, unevenly, switching])('reject no request of a load within the limit', async (process) => {
    const { rejected } = await offer({ process, entries: () => 5, perSecond: PER_SECOND / 2, forMs: 1_000 })
    expect(rejected).toBe(0)
  })
})
