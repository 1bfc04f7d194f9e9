import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { ClickHouseError, type ClickHouseClient } from '../src/index.ts'
import { ClickHouseClock, clickhouseClockLimits, ClockSkewError } from '../src/clickhouse-clock.ts'
import { classifyInsertError } from '../src/insert-errors.ts'
import { unwatched } from './test-database.ts'

const DAY_MS = 86_400_000
const { skewMaxMs, measureIntervalMs, measurementAgeMaxMs } = clickhouseClockLimits
/** Redis' clock when the monotonic clock is 0. */
const START_MS = Date.UTC(2026, 10, 22)

let monotonicMs: number
let isRedisKnown: boolean
let redisSkewMs: number
let clickhouseSkewMs: number
let roundTripMs: number
let failure: Error | undefined
let clock: ClickHouseClock
const query = vi.fn<() => Promise<unknown>>()

beforeEach(() => {
  monotonicMs = 0
  isRedisKnown = true
  redisSkewMs = 0
  clickhouseSkewMs = 0
  roundTripMs = 2
  failure = undefined
  query.mockReset().mockImplementation(async () => {
    monotonicMs += roundTripMs
    if (failure !== undefined) throw failure
    const nowMs = START_MS + monotonicMs - roundTripMs / 2 + clickhouseSkewMs
    return { json: async () => [{ nowMs: String(nowMs) }] }
  })
  clock = new ClickHouseClock({
    client: { query } as unknown as ClickHouseClient,
    redisMs: () => (isRedisKnown ? START_MS + monotonicMs + redisSkewMs : undefined),
    monotonicMs: () => monotonicMs,
    watch: unwatched,
  })
})

/** Why the check fails; undefined if it passes. */
async function problem(): Promise<string | undefined> {
  return clock.check().then(
    () => undefined,
    (error: Error) => error.message,
  )
}

it.each([
  [-40 * DAY_MS, '40 days behind'],
  [-skewMaxMs - 1, '10 minutes behind'],
  [-skewMaxMs + 2, undefined],
  [skewMaxMs - 2, undefined],
  [skewMaxMs + 1, '10 minutes ahead of'],
])('with a skew of %i ms, the clock is %s that of Redis', async (skew, difference) => {
  clickhouseSkewMs = skew
  const reason = difference && `the clock of ClickHouse is ${difference} that of Redis`
  expect(await problem()).toBe(reason)
  expect(clock.readiness).toEqual({ ready: reason === undefined, reasons: reason ? [reason] : [] })
})

it('allows for the time that the response took', async () => {
  roundTripMs = 60_000
  clickhouseSkewMs = skewMaxMs - 29_000
  expect(await problem()).toContain('ahead of')
  monotonicMs += measurementAgeMaxMs
  clickhouseSkewMs = skewMaxMs - 31_000
  expect(await problem()).toBeUndefined()
})

it('fails while the time of Redis is not known, which is no wrong clock', async () => {
  isRedisKnown = false
  await expect(clock.check()).rejects.toThrow(new ClockSkewError('the time of Redis is not known yet'))
})

it('fails while ClickHouse does not report its clock, as a transient failure', async () => {
  failure = new ClickHouseError({ message: 'memory', code: '241', type: 'MEMORY_LIMIT_EXCEEDED' })
  const error = await clock.check().catch((reason: unknown) => reason)
  expect(classifyInsertError(error)).toEqual({ failure: 'transient', code: 'ClockSkewError' })
  expect(clock.readiness).toEqual({ ready: true, reasons: [] })
})

it('uses a recent measurement, but no old one', async () => {
  expect(await Promise.all([problem(), problem()])).toEqual([undefined, undefined])
  failure = new Error('down')
  monotonicMs += measurementAgeMaxMs - roundTripMs
  expect(await problem()).toBeUndefined()
  expect(query).toHaveBeenCalledOnce()
  monotonicMs += 1
  expect(await problem()).toContain('down')
})

it('fails at once if the clock of Redis is set', async () => {
  expect(await problem()).toBeUndefined()
  redisSkewMs = -2 * DAY_MS
  expect(await problem()).toBe('the clock of ClickHouse is 2 days ahead of that of Redis')
  expect(query).toHaveBeenCalledOnce()
})

it('measures every five seconds between start and stop', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  clock.start()
  for (let measurement = 0; measurement < 5; measurement += 1) {
    monotonicMs += measureIntervalMs
    await vi.advanceTimersByTimeAsync(measureIntervalMs)
  }
  expect(query).toHaveBeenCalledTimes(6)
  clock.stop()
  await vi.advanceTimersByTimeAsync(2 * measureIntervalMs)
  expect(query).toHaveBeenCalledTimes(6)
})
