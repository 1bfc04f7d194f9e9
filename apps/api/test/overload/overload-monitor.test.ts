import type { Logger } from '@sluice/runtime'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { type OverloadReason, overloadReasons } from '../../src/overload/overloaded-error.ts'
import type { Problem } from '../../src/problems.ts'
import { FakeSignals } from '../support/fake-signals.ts'

let signals: FakeSignals
let logged: [level: string, fields: Record<string, unknown>, message: string][]

beforeEach(() => {
  logged = []
  const log = (level: string) => (fields: Record<string, unknown>, message: string) =>
    logged.push([level, fields, message])
  signals = new FakeSignals({ warn: log('warn'), info: log('info') } as unknown as Logger)
})

/** The problem that a request is refused with; undefined for one that passes. */
function check(): Problem | undefined {
  try {
    signals.monitor.check()
    return undefined
  } catch (error) {
    return error as Problem
  }
}

describe.each(overloadReasons)('the signal %s', (reason) => {
  it('over its high mark refuses requests, until it is low again', async () => {
    await signals.set(reason, 79)
    expect(check()).toBeUndefined()
    await signals.set(reason, 80)
    expect(check()).toMatchObject({ code: 'overloaded' })
    await signals.set(reason, 71)
    expect(check()).toMatchObject({ code: 'overloaded' })
    await signals.set(reason, 70)
    expect(check()).toBeUndefined()
  })

  it('is told with its marks, and what was refused for it', async () => {
    await signals.set(reason, 90)
    for (let i = 0; i < 3; i += 1) check()
    const { overloaded, signals: told, refused } = signals.monitor.status
    expect(overloaded).toBe(true)
    expect(told[reason]).toEqual({ value: 90, isOver: true, high: 80, low: 70 })
    expect(refused).toEqual({ ...noneRefused(), [reason]: 3 })
  })

  it('is logged when it starts and when it ends, not for each request or reading', async () => {
    for (const value of [90, 95, 75]) {
      await signals.set(reason, value)
      check()
    }
    for (const value of [60, 0]) await signals.set(reason, value)
    expect(logged).toEqual([
      ['warn', { reason, value: 90, high: 80, low: 70 }, 'overloaded, refusing requests'],
      ['info', { reason, value: 60, high: 80, low: 70 }, 'no longer overloaded'],
    ])
  })
})

function noneRefused(): Record<OverloadReason, number> {
  return { redis_memory: 0, queue_depth: 0, queue_age: 0, bytes_in_flight: 0, event_loop_delay: 0 }
}

it('before its first reading lets requests pass, and knows no value', () => {
  expect(check()).toBeUndefined()
  expect(signals.monitor.status.signals.queue_depth).toEqual({
    value: null,
    isOver: false,
    high: 80,
    low: 70,
  })
})

it('with several reasons counts the first, and refuses until the last is over', async () => {
  signals.values.redis_memory = 90
  await signals.set('queue_depth', 90)
  check()
  await signals.set('redis_memory', 0)
  check()
  expect(signals.monitor.status.refused).toEqual({ ...noneRefused(), redis_memory: 1, queue_depth: 1 })
  await signals.set('queue_depth', 0)
  expect(check()).toBeUndefined()
})

/** The times that a client is told to wait for the least, a middling and the greatest random number. */
async function times(reason: OverloadReason): Promise<(string | undefined)[]> {
  await signals.set(reason, 90)
  return [0, 0.5, 0.999_999].map((random) => {
    signals.random = random
    return check()?.headers['retry-after']
  })
}

describe('the time to wait', () => {
  it.each(['redis_memory', 'queue_depth', 'queue_age'] as const)('for %s is 5 to 15 s', async (reason) => {
    expect(await times(reason)).toEqual(['5', '10', '15'])
  })

  it.each(['bytes_in_flight', 'event_loop_delay'] as const)('for %s is 1 to 3 s', async (reason) => {
    expect(await times(reason)).toEqual(['1', '2', '3'])
  })
})

describe('a request for which there was no room', () => {
  it('has those after it refused, until a reading says that there is some', async () => {
    expect(signals.monitor.refuse('redis_memory')).toMatchObject({ code: 'overloaded' })
    expect(check()).toMatchObject({ code: 'overloaded' })
    expect(signals.monitor.status.refused.redis_memory).toBe(2)
    expect(logged).toHaveLength(1)
    await signals.set('redis_memory', 75)
    expect(check()).toMatchObject({ code: 'overloaded' })
    await signals.set('redis_memory', 70)
    expect(check()).toBeUndefined()
  })
})

const fail = (): Promise<never> => Promise.reject(new Error('down'))

describe('a Redis that cannot be read', () => {
  it('leaves its signals as they were last known', async () => {
    await signals.set('redis_memory', 90)
    signals.beforeAnswer = fail
    await signals.set('redis_memory', 0)
    expect(check()).toMatchObject({ code: 'overloaded' })
    expect(signals.monitor.status.redisReadable).toBe(false)
    signals.beforeAnswer = () => Promise.resolve()
    await signals.monitor.poll()
    expect(check()).toBeUndefined()
    expect(signals.monitor.status.redisReadable).toBe(true)
  })

  it('is logged once, and once more when it happens again', async () => {
    signals.beforeAnswer = fail
    for (let i = 0; i < 3; i += 1) await signals.monitor.poll()
    expect(logged.map(([level, , message]) => [level, message])).toEqual([
      ['warn', 'overload signals of redis cannot be read'],
    ])
    signals.beforeAnswer = () => Promise.resolve()
    await signals.monitor.poll()
    signals.beforeAnswer = fail
    await signals.monitor.poll()
    expect(logged).toHaveLength(2)
  })

  it('does not keep the signals of the process from being read, nor pile readings up', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    signals.beforeAnswer = () => promise
    const hanging = signals.monitor.poll()
    for (let i = 0; i < 10; i += 1) await signals.monitor.poll()
    expect(signals.readings).toBe(1)
    await signals.set('bytes_in_flight', 90)
    expect(check()).toMatchObject({ code: 'overloaded' })
    resolve()
    await hanging
    await signals.monitor.poll()
    expect(signals.readings).toBe(2)
  })
})

it('reads once a second from its start to its stop', async () => {
  vi.useFakeTimers()
  try {
    signals.monitor.start()
    await vi.advanceTimersByTimeAsync(3_500)
    expect(signals.readings).toBe(3)
    signals.monitor.stop()
    await vi.advanceTimersByTimeAsync(3_000)
    expect(signals.readings).toBe(3)
  } finally {
    vi.useRealTimers()
  }
})
