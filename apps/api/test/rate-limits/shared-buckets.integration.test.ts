import { Registry, type Project } from '@sluice/projects'
import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { Authenticator } from '../../src/authentication/authenticator.ts'
import { Problem } from '../../src/problems.ts'
import type { RateLimit } from '../../src/rate-limits/rate-limit.ts'
import { RateLimits } from '../../src/rate-limits/rate-limits.ts'
import { SharedBuckets } from '../../src/rate-limits/shared-buckets.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

const none = { entries: 0, bytes: 0 }
const unlimited = { entriesPerSecond: 0, bytesPerSecond: 0 }
/** So slow that nothing flows in during a test. */
const limit: RateLimit = {
  perSecond: { entries: 0.001, bytes: 0.001 },
  burst: { entries: 100, bytes: 5_000 },
}

let names: ReturnType<typeof redisNames>
let redis: RedisConnection
let proxy: TcpProxy
let connections: RedisConnection[]
let buckets: SharedBuckets

async function connect(url: string): Promise<RedisConnection> {
  const connection = connectRedis(url, { failFast: true, commandTimeoutMs: 1_800 })
  connection.on('error', () => undefined)
  connections.push(connection)
  await vi.waitUntil(() => connection.status === 'ready')
  return connection
}

beforeEach(async () => {
  const { redisUrl } = inject('services')
  names = redisNames(`test-shared-buckets-${randomUUID()}`)
  connections = []
  proxy = await TcpProxy.to(redisUrl)
  redis = await connect(redisUrl)
  buckets = new SharedBuckets(redis, names, 'one')
})

afterEach(async () => {
  const left = await redis.keys(`${names.queuePrefix.replaceAll(/[{}]/g, '?')}:*`)
  if (left.length > 0) await redis.del(left)
  for (const connection of connections) connection.disconnect()
  proxy.thaw()
  await proxy.down()
})

const pay = (...costs: [entries: number, bytes: number][]) =>
  buckets.lease('demo', limit, {
    back: none,
    costs: costs.map(([entries, bytes]) => ({ entries, bytes })),
    ahead: none,
  })

describe('a bucket', () => {
  it('is full at first, and pays for each cost whole or not at all', async () => {
    const { paid, level } = await pay([60, 10], [60, 10], [40, 10], [1, 10])
    expect(paid).toEqual([true, false, true, false])
    expect(level).toEqual({ entries: 0, bytes: 4_980 })
  })

  it('pays only for what both of its units cover', async () => {
    const { paid, level } = await pay([1, 4_000], [1, 4_000])
    expect(paid).toEqual([true, false])
    expect(level).toEqual({ entries: 99, bytes: 1_000 })
  })

  it('pays for a cost above the burst when it is full, and is in debt then', async () => {
    expect(await pay([150, 20_000])).toMatchObject({ paid: [true], level: { entries: -50, bytes: -15_000 } })
    expect(await pay([1, 1])).toMatchObject({ paid: [false] })
  })

  it('gives ahead what is there, and nothing beside a refusal', async () => {
    const ahead = { entries: 70, bytes: 10 }
    const first = await buckets.lease('demo', limit, { back: none, costs: [], ahead })
    expect(first).toMatchObject({ ahead, level: { entries: 30, bytes: 4_990 } })
    const costs = [{ entries: 31, bytes: 1 }]
    const refused = await buckets.lease('demo', limit, { back: none, costs, ahead })
    expect(refused).toMatchObject({ ahead: none, level: { entries: 30 } })
    const rest = await buckets.lease('demo', limit, { back: none, costs: [], ahead })
    expect(rest).toMatchObject({ ahead: { entries: 30 }, level: { entries: 0 } })
  })

  it('takes back what was not used, to the brim and no further', async () => {
    await pay([60, 0])
    const back = { entries: 40, bytes: 40 }
    expect(await buckets.lease('demo', limit, { back, costs: [], ahead: none })).toMatchObject({
      level: { entries: 80, bytes: 5_000 },
    })
    expect(await buckets.lease('demo', limit, { back, costs: [], ahead: none })).toMatchObject({
      level: { entries: 100, bytes: 5_000 },
    })
  })

  it('is one for each project', async () => {
    await pay([100, 0])
    const other = await buckets.lease('other', limit, { back: none, costs: [], ahead: none })
    expect(other.level.entries).toBe(100)
  })

  it('does not limit a unit without limit, and finds it full when it gets one', async () => {
    const entriesOnly = { perSecond: { entries: 0.001, bytes: 0 }, burst: { entries: 100, bytes: 0 } }
    await pay([0, 9_000])
    const costs = [{ entries: 1, bytes: 0 }]
    expect(await buckets.lease('demo', entriesOnly, { back: none, costs, ahead: none })).toMatchObject({
      paid: [true],
      level: { entries: 99, bytes: 0 },
    })
    expect((await pay([1, 5_000])).paid).toEqual([true])
  })

  it('fills at its rate, and expires when it is full', async () => {
    const fast = { perSecond: { entries: 1_000, bytes: 0 }, burst: { entries: 1_000, bytes: 0 } }
    const costs = [{ entries: 1_000, bytes: 0 }]
    await buckets.lease('demo', fast, { back: none, costs, ahead: none })
    const ttlMs = await redis.pttl(names.rateLimitKey('demo'))
    expect(ttlMs).toBeGreaterThan(5_000)
    expect(ttlMs).toBeLessThan(15_000)
    await sleep(100)
    const { level } = await buckets.lease('demo', fast, { back: none, costs: [], ahead: none })
    expect(level.entries).toBeGreaterThanOrEqual(90)
  })

  it('knows how many processes ask it', async () => {
    expect((await pay()).processes).toBe(1)
    const other = new SharedBuckets(redis, names, 'two')
    expect(await other.lease('demo', limit, { back: none, costs: [], ahead: none })).toMatchObject({
      processes: 2,
    })
    expect((await pay()).processes).toBe(2)
    await redis.hset(names.rateLimitKey('demo'), 'process:two', '1')
    expect((await pay()).processes).toBe(1)
    expect(await redis.hexists(names.rateLimitKey('demo'), 'process:two')).toBe(0)
  })
})

const projectWith = (limits: Project['limits']): Project => ({
  id: 'demo',
  createdAt: '',
  enabled: true,
  retentionDays: 30,
  ...(limits === undefined ? {} : { limits }),
})

/** What became of a request: `let through`, or how many seconds it is to wait. */
async function send(
  rateLimits: RateLimits,
  project: Project,
  entries: number,
): Promise<number | 'let through'> {
  try {
    await rateLimits.of(project)?.take({ entries, bytes: entries })
    return 'let through'
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return Number(error.headers['retry-after'])
  }
}

async function apiProcess(url: string, id: string): Promise<RateLimits> {
  return new RateLimits(
    new SharedBuckets(await connect(url), names, id),
    unlimited,
    createLogger('test', 'silent'),
  )
}

describe('waiting as long as a refusal says', () => {
  it.each([
    [{ entriesPerSecond: 100, burstEntries: 100 }, 80],
    [{ entriesPerSecond: 40, burstEntries: 60 }, 100],
    [{ bytesPerSecond: 1_024, burstBytes: 1_024 }, 1_500],
  ])('suffices under %j for %i, in whichever process', async (limits, entries) => {
    const { redisUrl } = inject('services')
    const processes = await Promise.all(['a', 'b', 'c'].map((id) => apiProcess(redisUrl, id)))
    const project = projectWith(limits)
    let refusals = 0
    for (let request = 0; refusals < 2; request += 1) {
      const at = (turn: number): RateLimits => processes[turn % 3] as RateLimits
      const seconds = await send(at(request), project, entries)
      if (seconds === 'let through') continue
      refusals += 1
      expect(seconds).toBeLessThanOrEqual(3)
      await sleep(seconds * 1_000)
      expect(await send(at(request + refusals), project, entries)).toBe('let through')
    }
  })
})

describe('a Redis that goes away', () => {
  const project = projectWith({ entriesPerSecond: 500, burstEntries: 500 })

  it.each(['frozen', 'down'])('%s: is not waited for, limits hold, and it is found again', async (how) => {
    const rateLimits = await apiProcess(proxy.urlFor(inject('services').redisUrl), 'one')
    expect(await send(rateLimits, project, 1)).toBe('let through')
    if (how === 'frozen') proxy.freeze()
    else await proxy.down()
    const startMs = performance.now()
    let admitted = 0
    while (performance.now() - startMs < 1_000) {
      if ((await send(rateLimits, project, 25)) === 'let through') admitted += 25
      await sleep(1)
    }
    const seconds = (performance.now() - startMs) / 1_000
    expect(seconds).toBeLessThan(2)
    expect(admitted).toBeGreaterThanOrEqual(500)
    expect(admitted).toBeLessThanOrEqual(500 * 1.1 + 500 * seconds)
    if (how === 'frozen') proxy.thaw()
    else await proxy.up()
    // What was let through meanwhile is told to the bucket, which had filled up.
    await expect
      .poll(
        async () => {
          await send(rateLimits, project, 1)
          const level = await redis.hget(names.rateLimitKey('demo'), 'entries')
          return Number(level)
        },
        { timeout: 10_000, interval: 5 },
      )
      .toBeLessThan(450)
  })
})

describe('a limit that is changed', () => {
  it('takes effect in a running process within five seconds, and at once where the news arrives', async () => {
    const { redisUrl } = inject('services')
    const registry = new Registry(redis, names.registryPrefix)
    await registry.createProject('demo')
    const { key } = await registry.createKey('demo')
    const authenticator = new Authenticator(registry)
    const rateLimits = await apiProcess(redisUrl, 'one')
    const outcome = async (): Promise<number | 'let through'> =>
      send(rateLimits, await authenticator.authenticate(`Bearer ${key}`, { ip: '192.0.2.1' }), 100)

    expect(await outcome()).toBe('let through')
    await registry.setLimits('demo', { entriesPerSecond: 10, burstEntries: 100 })
    await expect.poll(outcome, { timeout: 5_000, interval: 50 }).toBeTypeOf('number')
    await registry.setLimits('demo', { entriesPerSecond: 0 })
    authenticator.invalidate('demo')
    expect(await outcome()).toBe('let through')
  })
})
