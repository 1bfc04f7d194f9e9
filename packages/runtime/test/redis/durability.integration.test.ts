import { Redis } from 'ioredis'
import { once } from 'node:events'
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { useTestRedis } from '../../../queue/test/support/consumer-fixture.ts'
import { createLogger } from '../../src/logger.ts'
import { connectRedis } from '../../src/redis/connection.ts'
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
    admin.disconnect()
  })
})

function startCheck({ allowUnsafe = false, user = '' } = {}) {
  const userUrl = user === '' ? server.url : `redis://${user}:secret@${address}`
  const redis = connectRedis(userUrl, { failFast: true, commandTimeoutMs: 2_000 })
  redis.on('error', () => undefined)
  const logger = createLogger('test', 'silent')
  const [errors, warnings] = [vi.spyOn(logger, 'error'), vi.spyOn(logger, 'warn')]
  const check = new DurabilityCheck({ redis, allowUnsafe, durable: plainRedis(redis), logger })
  check.start()
  onTestFinished(async () => {
    check.stop()
    redis.disconnect()
  })
  return { check, errors, warnings, redis }
}

const READY = { ready: true, reasons: [] }

it('is ready after the first check with a Redis that keeps what it acknowledges', async () => {
  const { check, errors, warnings } = startCheck()
  expect(check.readiness).toEqual({ ready: false, reasons: ['the settings of Redis are not checked yet'] })
  await expect.poll(() => check.readiness).toEqual(READY)
  for (const lines of [errors, warnings]) expect(lines).not.toHaveBeenCalled()
})

const rights = ['reset', 'on', '>secret', '~*', '+@all', '-@dangerous', '+info']

it.each([
  ['appendonly', 'no', 'yes', true],
  ['appendfsync', 'everysec', 'always', false],
  ['maxmemory-policy', 'allkeys-lru', 'noeviction', true],
])(
  'is not ready with %s %s, which is read without CONFIG if possible',
  async (name, value, required, isInInfo) => {
    await admin.config('SET', name, value)
    const { check, errors } = startCheck()
    const reason = `Redis ${address} may lose acknowledged entries: ${name} is ${value} instead of ${required}. REDIS_ALLOW_UNSAFE=true permits this`
    await expect.poll(() => check.readiness).toEqual({ ready: false, reasons: [reason] })
    expect(errors).toHaveBeenCalledExactlyOnceWith({}, reason)

    await admin.call('ACL', 'SETUSER', 'without-config', ...rights)
    const { check: limited, warnings } = startCheck({ user: 'without-config' })
    await expect.poll(() => limited.readiness).toEqual(isInInfo ? { ready: false, reasons: [reason] } : READY)
    const warning = 'Redis does not permit reading appendfsync; not checked'
    expect(warnings).toHaveBeenCalledExactlyOnceWith(expect.anything(), warning)
  },
)

it('checks again after a reconnect and while Redis runs, and reports once', async () => {
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

it('is ready, with a warning, if an unsafe Redis is allowed, or its user may read neither CONFIG nor INFO', async () => {
  await admin.config('SET', 'appendfsync', 'everysec')
  await admin.call('ACL', 'SETUSER', 'without-info', ...rights, '-info')
  vi.spyOn(console, 'warn').mockReturnValue()
  for (const options of [{ allowUnsafe: true }, { user: 'without-info' }]) {
    const { check, errors, warnings } = startCheck(options)
    await expect.poll(() => warnings).toHaveBeenCalledOnce()
    await expect.poll(() => check.readiness).toEqual(READY)
    expect(errors).not.toHaveBeenCalled()
  }
})

it.each([false, true])('is not ready while Redis cannot write its file: %s', async (allowUnsafe) => {
  const { check, errors, redis } = startCheck({ allowUnsafe })
  await expect.poll(() => redis.status).toBe('ready')
  await expect.poll(() => check.readiness).toEqual(READY)
  const info = vi.spyOn(redis, 'info').mockResolvedValue('aof_last_write_status:err\r\n')
  const reason = `the disk of Redis ${address} is full, or fails: its append-only file cannot be written (MISCONF)`
  await expect.poll(() => check.readiness, { timeout: 10_000 }).toEqual({ ready: false, reasons: [reason] })
  expect(errors).toHaveBeenCalledExactlyOnceWith({}, reason)
  info.mockRestore()
  await expect.poll(() => check.readiness, { timeout: 10_000 }).toEqual(READY)
})
