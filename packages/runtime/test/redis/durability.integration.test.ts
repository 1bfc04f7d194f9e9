import { Redis } from 'ioredis'
import { once } from 'node:events'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { useTestRedis } from '../../../queue/test/support/consumer-fixture.ts'
import { createLogger } from '../../src/logger.ts'
import { closeRedis, connectRedis } from '../../src/redis/connection.ts'
import { DurabilityCheck } from '../../src/redis/durability.ts'
import { plainRedis } from '../../src/redis/durable-redis.ts'

const server = useTestRedis()
let admin: Redis
let address: string

beforeEach(() => {
  admin = new Redis(server.url)
  address = new URL(server.url).host
  onTestFinished(async () => {
    await admin.config('SET', 'appendonly', 'yes')
    await admin.config('SET', 'appendfsync', 'always')
    await admin.config('SET', 'maxmemory-policy', 'noeviction')
    await closeRedis(admin)
  })
})

function startCheck({ allowUnsafe = false, user = '' } = {}): {
  readonly check: DurabilityCheck
  readonly errors: ReturnType<typeof vi.spyOn>
  readonly warnings: ReturnType<typeof vi.spyOn>
  readonly redis: ReturnType<typeof connectRedis>
} {
  const userUrl = user === '' ? server.url : `redis://${user}:secret@${address}`
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

describe('a Redis', () => {
  it('that keeps what it acknowledges is ready after the first check', async () => {
    const { check, errors, warnings } = startCheck()
    expect(check.readiness).toEqual({ ready: false, reasons: ['the settings of Redis are not checked yet'] })
    await expect.poll(() => check.readiness).toEqual({ ready: true, reasons: [] })
    expect(errors).not.toHaveBeenCalled()
    expect(warnings).not.toHaveBeenCalled()
  })

  it.each([
    ['appendonly', 'no', 'appendonly is no instead of yes'],
    ['appendfsync', 'everysec', 'appendfsync is everysec instead of always'],
    ['maxmemory-policy', 'allkeys-lru', 'maxmemory-policy is allkeys-lru instead of noeviction'],
  ])('with %s %s is not ready', async (name, value, problem) => {
    await admin.config('SET', name, value)
    const { check, errors } = startCheck()
    const reason = `Redis ${address} may lose acknowledged entries: ${problem}. REDIS_ALLOW_UNSAFE=true permits this`
    await expect.poll(() => check.readiness).toEqual({ ready: false, reasons: [reason] })
    expect(errors).toHaveBeenCalledExactlyOnceWith({}, reason)
  })

  it('is checked again after a reconnect and while it runs, and reported once', async () => {
    const { check, errors, redis } = startCheck()
    await expect.poll(() => check.readiness.ready).toBe(true)
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lfu')
    redis.disconnect(true)
    await once(redis, 'ready')
    // Earlier than the next check at the interval of five seconds.
    await expect.poll(() => check.readiness.ready, { timeout: 4_500 }).toBe(false)
    await admin.config('SET', 'maxmemory-policy', 'noeviction')
    await expect.poll(() => check.readiness.ready).toBe(true)
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lfu')
    await expect.poll(() => check.readiness.ready).toBe(false)
    expect(errors).toHaveBeenCalledOnce()
  })

  it('that is not safe is ready if this is allowed, with a warning', async () => {
    await admin.config('SET', 'appendfsync', 'everysec')
    const { check, errors, warnings } = startCheck({ allowUnsafe: true })
    await expect.poll(() => warnings).toHaveBeenCalledOnce()
    expect(check.readiness).toEqual({ ready: true, reasons: [] })
    expect(errors).not.toHaveBeenCalled()
  })
})

describe('a user without CONFIG', () => {
  const rights = ['reset', 'on', '>secret', '~*', '+@all', '-@dangerous']

  it('is ready, with a warning about appendfsync', async () => {
    await admin.call('ACL', 'SETUSER', 'without-config', ...rights, '+info')
    const { check, warnings } = startCheck({ user: 'without-config' })
    await expect.poll(() => check.readiness.ready).toBe(true)
    expect(warnings).toHaveBeenCalledExactlyOnceWith(
      expect.anything(),
      'Redis does not permit reading appendfsync; not checked',
    )
  })

  it.each([
    ['appendonly', 'no', 'appendonly is no instead of yes'],
    ['maxmemory-policy', 'allkeys-lru', 'maxmemory-policy is allkeys-lru instead of noeviction'],
  ])('is not ready with %s %s', async (name, value, problem) => {
    await admin.call('ACL', 'SETUSER', 'without-config', ...rights, '+info')
    await admin.config('SET', name, value)
    const { check } = startCheck({ user: 'without-config' })
    await expect.poll(() => check.readiness.reasons.join('')).toContain(problem)
  })

  it('and without INFO is ready, with a warning', async () => {
    await admin.call('ACL', 'SETUSER', 'without-info', ...rights)
    vi.spyOn(console, 'warn').mockReturnValue()
    await admin.config('SET', 'appendonly', 'no')
    const { check, errors, warnings } = startCheck({ user: 'without-info' })
    await expect.poll(() => check.readiness.ready).toBe(true)
    expect(errors).not.toHaveBeenCalled()
    expect(warnings).toHaveBeenCalledExactlyOnceWith(
      expect.anything(),
      'Redis does not permit reading appendonly, appendfsync, maxmemory-policy; not checked',
    )
  })
})
