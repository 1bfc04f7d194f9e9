import { startRedis, Supervisor } from '@sluice/local'
import { Redis } from 'ioredis'
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createLogger } from '../../src/logger.ts'
import { closeRedis, connectRedis } from '../../src/redis/connection.ts'
import { DurabilityCheck } from '../../src/redis/durability.ts'
import { plainRedis } from '../../src/redis/durable-redis.ts'

let supervisor: Supervisor
let admin: Redis
let url: string
let address: string

beforeAll(async () => {
  supervisor = await Supervisor.open()
  const redis = await startRedis(supervisor)
  url = redis.url
  address = new URL(redis.url).host
})

afterAll(() => supervisor.stop({ force: true }))

beforeEach(() => {
  admin = new Redis(url)
})

afterEach(async () => {
  await admin.config('SET', 'appendonly', 'yes')
  await admin.config('SET', 'appendfsync', 'always')
  await admin.config('SET', 'maxmemory-policy', 'noeviction')
  await closeRedis(admin)
})

function startCheck({ allowUnsafe = false, user = '' } = {}): {
  readonly check: DurabilityCheck
  readonly errors: ReturnType<typeof vi.spyOn>
  readonly warnings: ReturnType<typeof vi.spyOn>
  readonly redis: ReturnType<typeof connectRedis>
} {
  const userUrl = user === '' ? url : `redis://${user}:secret@${address}`
  const redis = connectRedis(userUrl, { failFast: true, commandTimeoutMs: 2_000 })
  redis.on('error', () => undefined)
  const logger = createLogger('test', 'silent')
  const errors = vi.spyOn(logger, 'error')
  const warnings = vi.spyOn(logger, 'warn')
  const check = new DurabilityCheck({ redis, allowUnsafe, durable: plainRedis(redis), logger })
  check.start()
  onTestFinished(async () => {
    check.stop()
    await closeRedis(redis)
  })
  return { check, errors, warnings, redis }
}

const CHECKED = { timeout: 5_000 }
const RECHECKED = { timeout: 10_000 }

describe('a Redis that keeps what it acknowledges', () => {
  it('is ready after the first check', async () => {
    const { check, errors, warnings } = startCheck()
    expect(check.readiness).toEqual({ ready: false, reasons: ['the settings of Redis are not checked yet'] })
    await vi.waitFor(() => expect(check.readiness).toEqual({ ready: true, reasons: [] }), CHECKED)
    expect(errors).not.toHaveBeenCalled()
    expect(warnings).not.toHaveBeenCalled()
  })
})

describe('a Redis', () => {
  it.each([
    ['appendonly', 'no', 'appendonly is no instead of yes'],
    ['appendfsync', 'everysec', 'appendfsync is everysec instead of always'],
    ['appendfsync', 'no', 'appendfsync is no instead of always'],
    ['maxmemory-policy', 'allkeys-lru', 'maxmemory-policy is allkeys-lru instead of noeviction'],
    ['maxmemory-policy', 'volatile-ttl', 'maxmemory-policy is volatile-ttl instead of noeviction'],
  ])('with %s %s is not ready', async (name, value, problem) => {
    await admin.config('SET', name, value)
    const { check, errors } = startCheck()
    const reason = `Redis ${address} may lose acknowledged entries: ${problem}. REDIS_ALLOW_UNSAFE=true permits this`
    await vi.waitFor(() => expect(check.readiness).toEqual({ ready: false, reasons: [reason] }), CHECKED)
    expect(errors.mock.calls).toEqual([[reason]])
  })

  it('is checked again after a reconnect and while it runs, and reported once', async () => {
    const { check, errors, redis } = startCheck()
    await vi.waitFor(() => expect(check.readiness.ready).toBe(true), CHECKED)
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lfu')
    redis.disconnect(true)
    await once(redis, 'ready')
    await vi.waitFor(() => expect(check.readiness.ready).toBe(false), { timeout: 1_000 })
    await admin.config('SET', 'maxmemory-policy', 'noeviction')
    await vi.waitFor(() => expect(check.readiness.ready).toBe(true), RECHECKED)
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lfu')
    await vi.waitFor(() => expect(check.readiness.ready).toBe(false), RECHECKED)
    expect(errors).toHaveBeenCalledOnce()
  }, 30_000)

  it('that is not safe is ready if this is allowed, with a warning', async () => {
    await admin.config('SET', 'appendfsync', 'everysec')
    const { check, errors, warnings } = startCheck({ allowUnsafe: true })
    await vi.waitFor(() => expect(warnings).toHaveBeenCalledOnce(), CHECKED)
    expect(check.readiness).toEqual({ ready: true, reasons: [] })
    expect(errors).not.toHaveBeenCalled()
  })
})

describe('a user without CONFIG', () => {
  beforeEach(async () => {
    await admin.call(
      'ACL',
      'SETUSER',
      'without-config',
      'reset',
      'on',
      '>secret',
      '~*',
      '+@all',
      '-@dangerous',
      '+info',
    )
  })

  it('is ready, with a warning about appendfsync', async () => {
    const { check, warnings } = startCheck({ user: 'without-config' })
    await vi.waitFor(() => expect(check.readiness.ready).toBe(true), CHECKED)
    expect(warnings.mock.calls).toEqual([
      [expect.anything(), 'Redis does not permit reading appendfsync; not checked'],
    ])
  })

  it.each([
    ['appendonly', 'no', 'appendonly is no instead of yes'],
    ['maxmemory-policy', 'allkeys-lru', 'maxmemory-policy is allkeys-lru instead of noeviction'],
  ])('is not ready with %s %s', async (name, value, problem) => {
    await admin.config('SET', name, value)
    const { check } = startCheck({ user: 'without-config' })
    await vi.waitFor(() => expect(check.readiness.reasons.join('')).toContain(problem), CHECKED)
  })
})

it('a user without CONFIG and INFO is ready, with a warning', async () => {
  await admin.call('ACL', 'SETUSER', 'without-info', 'reset', 'on', '>secret', '~*', '+@all', '-@dangerous')
  vi.spyOn(console, 'warn').mockReturnValue()
  await admin.config('SET', 'appendonly', 'no')
  const { check, errors, warnings } = startCheck({ user: 'without-info' })
  await vi.waitFor(() => expect(check.readiness.ready).toBe(true), CHECKED)
  expect(errors).not.toHaveBeenCalled()
  expect(warnings.mock.calls).toEqual([
    [
      expect.anything(),
      'Redis does not permit reading appendonly, appendfsync, maxmemory-policy; not checked',
    ],
  ])
})
