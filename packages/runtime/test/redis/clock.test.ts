import { EventEmitter } from 'node:events'
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { ClockError, RedisClock } from '../../src/redis/clock.ts'

const DAY_MS = 86_400_000
/** Redis' clock when the monotonic clock is 0. */
const START_MS = Date.UTC(2026, 10, 22)

/** A Redis with a clock. Each reply takes `toRedisMs` and `fromRedisMs`. */
class FakeRedis extends EventEmitter {
  status = 'ready'
  isDown = false
  offsetMs = START_MS
  toRedisMs = 1
  fromRedisMs = 1
  /** The key of each reading of the clock. */
  readonly reads: string[] = []

  eval = async (_script: string, _keys: number, key: string): Promise<[string, string]> => {
    this.reads.push(key)
    if (this.isDown) throw new Error('Connection is closed')
    monotonicMs += this.toRedisMs
    const nowMs = monotonicMs + this.offsetMs
    monotonicMs += this.fromRedisMs
    return [String(Math.floor(nowMs / 1_000)), String((nowMs % 1_000) * 1_000)]
  }
}

let monotonicMs: number
let processSkewMs: number
let redis: FakeRedis
let clock: RedisClock

beforeEach(() => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  monotonicMs = 0
  processSkewMs = 0
  redis = new FakeRedis()
  clock = new RedisClock({
    redis: redis as unknown as RedisConnection,
    key: '{test}:key',
    wallMs: () => START_MS + monotonicMs + processSkewMs,
    monotonicMs: () => monotonicMs,
  })
  onTestFinished(() => clock.stop())
})

/** Lets a second pass, in which one measurement is made. */
async function nextSecond(passingMs = 1_000): Promise<void> {
  monotonicMs += passingMs
  await vi.advanceTimersByTimeAsync(1_000)
}

async function start(): Promise<void> {
  clock.start()
  await vi.advanceTimersByTimeAsync(0)
}

const errorMs = (): number => clock.nowMs() - (monotonicMs + redis.offsetMs)

it('is unknown, and not ready, until the connection is ready and a reply took no longer than two seconds', async () => {
  redis.status = 'connecting'
  await start()
  expect(redis.reads).toEqual([])
  redis.status = 'ready'
  redis.fromRedisMs = 2_001
  redis.emit('ready')
  await vi.advanceTimersByTimeAsync(0)
  expect(redis.reads).toEqual(['{test}:key'])
  expect(clock.nowMs).toThrow(ClockError)
  expect(clock.readiness).toEqual({ ready: false, reasons: ['the time of Redis is not known yet'] })
  redis.fromRedisMs = 1
  await nextSecond()
  expect(errorMs()).toBe(0)
  expect(clock.readiness).toEqual({ ready: true, reasons: [] })
})

it('comes from the measurement with the shortest round trip', async () => {
  redis.fromRedisMs = 401
  await start()
  expect(errorMs()).toBe(-200)
  redis.fromRedisMs = 1
  await nextSecond()
  expect(errorMs()).toBe(0)
  redis.fromRedisMs = 401
  for (let i = 0; i < 5; i += 1) await nextSecond()
  expect(errorMs()).toBe(0)
})

it('follows the drift of the clocks, although later measurements have longer round trips', async () => {
  await start()
  redis.fromRedisMs = 1.5
  for (let i = 0; i < 3_600; i += 1) {
    redis.offsetMs += 0.5
    await nextSecond()
  }
  expect(Math.abs(errorMs())).toBeLessThan(10)
})

it.each([-40 * DAY_MS, 40 * DAY_MS, 600])(
  'changes at the next measurement, however long it takes, if Redis was set by %i ms',
  async (ms) => {
    await start()
    redis.offsetMs += ms
    redis.fromRedisMs = 101
    await nextSecond()
    expect(Math.abs(errorMs())).toBeLessThanOrEqual(50)
  },
)

it('is measured once at a time, and no longer after the stop', async () => {
  const { promise, resolve } = Promise.withResolvers<[string, string]>()
  const answer = vi.spyOn(redis, 'eval').mockReturnValue(promise)
  await start()
  for (let i = 0; i < 3; i += 1) await nextSecond()
  expect(answer).toHaveBeenCalledOnce()
  resolve(['1', '0'])
  await nextSecond()
  expect(answer).toHaveBeenCalledTimes(2)
  clock.stop()
  await nextSecond()
  redis.emit('ready')
  expect(answer).toHaveBeenCalledTimes(2)
})

it.each([
  [-40 * DAY_MS, '40 days behind'],
  [61_000, '1 minute ahead of'],
  [60_000, undefined],
  [-60_000, undefined],
])(
  'comes from Redis if the wall clock is off by %i ms, and the process is not ready if it is %s',
  async (skew, off) => {
    processSkewMs = skew
    await start()
    expect(errorMs()).toBe(0)
    const reasons = off === undefined ? [] : [`the clock of this process is ${off} that of Redis`]
    expect(clock.readiness).toEqual({ ready: off === undefined, reasons })
  },
)

it('goes on while Redis is unavailable, and a clock of the process that is set is noticed at once', async () => {
  await start()
  redis.isDown = true
  for (const skew of [DAY_MS, DAY_MS, 0, 0]) {
    processSkewMs = skew
    expect(clock.readiness.ready).toBe(skew === 0)
    await nextSecond()
    expect(errorMs()).toBe(0)
  }
})
