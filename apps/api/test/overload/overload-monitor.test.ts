import type { Logger } from '@sluice/runtime'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { measureEventLoopDelay, overloadReasons } from '../../src/overload/overload-monitor.ts'
import type { Problem } from '../../src/problems.ts'
import { FakeSignals, forEachReason } from '../support/fake-signals.ts'

let signals: FakeSignals
let logged: [level: string, fields: Record<string, unknown>, message: string][]

beforeEach(() => {
  logged = []
  const log = (level: string) => (fields: Record<string, unknown>, message: string) =>
    logged.push([level, fields, message])
  signals = new FakeSignals({ warn: log('warn'), info: log('info') } as unknown as Logger)
})

/** The problem of a rejected request; undefined if it passes. */
function check(): Problem | undefined {
  try {
    signals.monitor.check()
    return undefined
  } catch (error) {
    return error as Problem
  }
}

const noRejections = forEachReason(0)

describe.each(overloadReasons)('the signal %s', (reason) => {
  it('causes rejections from its high-water mark until its low-water mark, and is logged twice', async () => {
    const { monitor } = signals
    expect(check()).toBeUndefined()
    expect(monitor.status.signals[reason]).toEqual({ value: null, isOver: false, high: 80, low: 70 })
    for (const value of [79, 80, 90, 71, 70, 0]) {
      const isOver = value > 70 && value !== 79
      await signals.set(reason, value)
      expect(check()?.code).toBe(isOver ? 'overloaded' : undefined)
      expect(monitor.status.overloaded).toBe(isOver)
      expect(monitor.status.signals[reason]).toEqual({ value, isOver, high: 80, low: 70 })
    }
    expect(monitor.status.refused).toEqual({ ...noRejections, [reason]: 3 })
    expect(logged).toEqual([
      ['warn', { reason, value: 80, high: 80, low: 70 }, 'overloaded, rejecting requests'],
      ['info', { reason, value: 70, high: 80, low: 70 }, 'no longer overloaded'],
    ])
  })

  it('asks for a random wait, which is longer if Redis is the cause', async () => {
    await signals.set(reason, 90)
    const waits = [0, 0.5, 0.999_999].map((random) => {
      signals.random = random
      return check()?.headers['retry-after']
    })
    expect(waits).toEqual(reason === 'event_loop_delay' ? ['1', '2', '3'] : ['5', '10', '15'])
  })
})

it('counts the first of several reasons, and rejects until the last reason ends', async () => {
  signals.values.redis_memory = 90
  await signals.set('queue_depth', 90)
  check()
  await signals.set('redis_memory', 0)
  check()
  expect(signals.monitor.status.refused).toEqual({ ...noRejections, redis_memory: 1, queue_depth: 1 })
  await signals.set('queue_depth', 0)
  expect(check()).toBeUndefined()
})

it('a request for which there was no room causes rejections until a read reports that there is room', async () => {
  expect(signals.monitor.reject('redis_memory')).toMatchObject({ code: 'overloaded' })
  expect(check()).toMatchObject({ code: 'overloaded' })
  expect(signals.monitor.status.refused.redis_memory).toBe(2)
  expect(logged).toHaveLength(1)
  await signals.set('redis_memory', 75)
  expect(check()).toMatchObject({ code: 'overloaded' })
  await signals.set('redis_memory', 70)
  expect(check()).toBeUndefined()
})

describe('a Redis that cannot be read', () => {
  it('keeps the last state of its signals, and is logged once', async () => {
    await signals.set('redis_memory', 90)
    signals.beforeAnswer = () => Promise.reject(new Error('down'))
    for (let i = 0; i < 3; i += 1) await signals.set('redis_memory', 0)
    expect(logged.map(([level]) => level)).toEqual(['warn', 'warn'])
    expect(check()).toMatchObject({ code: 'overloaded' })
    expect(signals.monitor.status.redisReadable).toBe(false)
    signals.beforeAnswer = () => Promise.resolve()
    await signals.monitor.poll()
    expect(check()).toBeUndefined()
    expect(signals.monitor.status.redisReadable).toBe(true)
  })

  it('does not block the signals of the process, and has one read in flight at a time', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    signals.beforeAnswer = () => promise
    const stalled = signals.monitor.poll()
    for (let i = 0; i < 10; i += 1) await signals.monitor.poll()
    expect(signals.reads).toBe(1)
    await signals.set('event_loop_delay', 90)
    expect(check()).toMatchObject({ code: 'overloaded' })
    resolve()
    await stalled
    await signals.monitor.poll()
    expect(signals.reads).toBe(2)
  })
})

const TURN_MS = 300

/** Blocks the event loop for `TURN_MS` in each iteration. */
async function blockFor(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) {
    for (const endMs = performance.now() + TURN_MS; performance.now() < endMs;);
    await sleep(0)
  }
}

it('the delay of the event loop is the median delay since the last call', async () => {
  const takeMs = measureEventLoopDelay()
  await blockFor(6)
  expect(takeMs()).toBeGreaterThan(TURN_MS / 2)
  // Short enough that the late iterations would still be the majority if they were counted again.
  await sleep(60)
  expect(takeMs()).toBeLessThan(TURN_MS / 2)
})
