import { ClockError, type Logger } from '@sluice/runtime'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { ClickHouseError, type ClickHouseClient } from '../src/index.ts'
import { ClickHouseClock, clickhouseClockLimits, ClockSkewError } from '../src/clickhouse-clock.ts'
import { classifyInsertError } from '../src/insert-errors.ts'
import { unwatched } from './test-database.ts'

const DAY_MS = 86_400_000
const { skewMaxMs, measureIntervalMs, measurementAgeMaxMs } = clickhouseClockLimits
/** Redis' clock when the monotonic clock is 0. */
const START_MS = Date.UTC(2026, 10, 22)

let monotonicMs: number
let redisSkewMs: number
let clickhouseSkewMs: number
let roundTripMs: number
let failure: Error | undefined
let logged: [level: string, ...arguments_: unknown[]][]
let clock: ClickHouseClock
const query = vi.fn<() => Promise<unknown>>()

beforeEach(() => {
  monotonicMs = 0
  redisSkewMs = 0
  clickhouseSkewMs = 0
  roundTripMs = 2
  failure = undefined
  logged = []
  query.mockReset().mockImplementation(async () => {
    monotonicMs += roundTripMs
    if (failure !== undefined) throw failure
    const nowMs = START_MS + monotonicMs - roundTripMs / 2 + clickhouseSkewMs
    return { json: async () => [{ nowMs: String(nowMs) }] }
  })
  const log =
    (level: string) =>
    (...arguments_: unknown[]) =>
      logged.push([level, ...arguments_])
  clock = new ClickHouseClock({
    client: { query } as unknown as ClickHouseClient,
    wallMs: () => START_MS + monotonicMs + redisSkewMs,
    monotonicMs: () => monotonicMs,
    logger: { error: log('error'), info: log('info') } as unknown as Logger,
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

describe('a check', () => {
  it.each([-skewMaxMs + 2, 0, skewMaxMs - 2])('passes with a skew of %i ms', async (skew) => {
    clickhouseSkewMs = skew
    expect(await problem()).toBeUndefined()
    expect(clock.readiness).toEqual({ ready: true, reasons: [] })
  })

  it.each([
    [-40 * DAY_MS, '40 days behind'],
    [-skewMaxMs - 1, '10 minutes behind'],
    [skewMaxMs + 1, '10 minutes ahead of'],
    [40 * DAY_MS, '40 days ahead of'],
  ])('fails with a skew of %i ms, and the process is not ready', async (skew, difference) => {
    clickhouseSkewMs = skew
    const reason = `the clock of ClickHouse is ${difference} that of Redis`
    expect(await problem()).toBe(reason)
    expect(clock.readiness).toEqual({ ready: false, reasons: [reason] })
  })

  it('allows for the time that the response took', async () => {
    roundTripMs = 60_000
    clickhouseSkewMs = skewMaxMs - 29_000
    expect(await problem()).toContain('ahead of')
    monotonicMs += measurementAgeMaxMs
    clickhouseSkewMs = skewMaxMs - 31_000
    expect(await problem()).toBeUndefined()
  })

  it('fails while the time of Redis is not known', async () => {
    const error = vi.fn<() => void>()
    const unknown = new ClickHouseClock({
      client: { query } as unknown as ClickHouseClient,
      wallMs: () => {
        throw new ClockError('the time of Redis is not known yet')
      },
      monotonicMs: () => monotonicMs,
      logger: { error } as unknown as Logger,
      watch: unwatched,
    })
    await expect(unknown.check()).rejects.toThrow(new ClockSkewError('the time of Redis is not known yet'))
    // No clock is known to be wrong.
    expect(error).not.toHaveBeenCalled()
  })

  it('fails while ClickHouse does not report its clock, as a transient failure', async () => {
    failure = new ClickHouseError({ message: 'memory', code: '241', type: 'MEMORY_LIMIT_EXCEEDED' })
    const error = await clock.check().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ClockSkewError)
    expect(classifyInsertError(error)).toMatchObject({ failure: 'transient' })
    expect(await problem()).toBe(
      'the clock of ClickHouse cannot be read: ClickHouse 241 MEMORY_LIMIT_EXCEEDED',
    )
    expect(clock.readiness).toEqual({ ready: true, reasons: [] })
    query.mockResolvedValueOnce({ json: async () => [] })
    expect(await problem()).toBe('the clock of ClickHouse cannot be read: Error: no answer')
  })

  it('uses a recent measurement, but no old one', async () => {
    expect(await problem()).toBeUndefined()
    failure = new Error('down')
    monotonicMs += measurementAgeMaxMs - roundTripMs
    expect(await problem()).toBeUndefined()
    expect(query).toHaveBeenCalledOnce()
    monotonicMs += 1
    expect(await problem()).toContain('down')
  })

  it('shares a measurement that is in flight', async () => {
    expect(await Promise.all([problem(), problem(), problem()])).toEqual([undefined, undefined, undefined])
    expect(query).toHaveBeenCalledOnce()
  })

  it('fails at once if the clock of Redis is set', async () => {
    expect(await problem()).toBeUndefined()
    redisSkewMs = -2 * DAY_MS
    expect(await problem()).toBe('the clock of ClickHouse is 2 days ahead of that of Redis')
    expect(query).toHaveBeenCalledOnce()
  })
})

it('measures every five seconds between start and stop, and logs each change once', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  clock.start()
  for (const skew of [0, DAY_MS, DAY_MS, 0, 0]) {
    clickhouseSkewMs = skew
    monotonicMs += measureIntervalMs
    await vi.advanceTimersByTimeAsync(measureIntervalMs)
  }
  expect(query).toHaveBeenCalledTimes(6)
  expect(logged).toEqual([
    [
      'error',
      { reason: 'the clock of ClickHouse is 1 day ahead of that of Redis' },
      'inserts pause until the clocks agree',
    ],
    ['info', 'the clocks agree, inserts continue'],
  ])
  clock.stop()
  await vi.advanceTimersByTimeAsync(2 * measureIntervalMs)
  expect(query).toHaveBeenCalledTimes(6)
})
