import { beforeEach, describe, expect, it, vi } from 'vitest'
import { Problem } from '../../src/problems.ts'
import { Allowance } from '../../src/rate-limits/allowance.ts'
import { leaseLimits } from '../../src/rate-limits/lease-limits.ts'
import { FakeBuckets } from '../support/fake-buckets.ts'

/** A slice is 50 ms of the rate: 50 entries. */
const limit = { perSecond: { entries: 1_000, bytes: 0 }, burst: { entries: 2_000, bytes: 0 } }

let nowMs: number
let buckets: FakeBuckets
let failures: unknown[]
let allowance: Allowance

beforeEach(() => {
  nowMs = 1_000_000
  buckets = new FakeBuckets()
  buckets.level = { entries: 1_000, bytes: 0 }
  failures = []
  allowance = new Allowance(
    limit,
    (current, request) => buckets.lease('demo', current, request),
    () => nowMs,
    (error) => failures.push(error),
  )
})

/** What became of a request: `let through`, or how many seconds it is to wait. */
async function send(entries: number): Promise<string> {
  try {
    await allowance.take({ entries, bytes: 100 })
    return 'let through'
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'rate_limited') throw error
    return `${error.headers['retry-after']} s`
  }
}

function sendEarly(headers = {}): string {
  try {
    allowance.refuseEarly(headers)
    return 'read on'
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'rate_limited') throw error
    return `${error.headers['retry-after']} s`
  }
}

/** Waits for a lease in the background to be answered. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('a slice in hand', () => {
  beforeEach(async () => {
    await send(1)
  })

  it('lets requests through at once, without Redis', () => {
    for (let i = 0; i < 25; i += 1) expect(allowance.take({ entries: 1, bytes: 100 })).toBeUndefined()
    expect(buckets.requests).toHaveLength(1)
  })

  it('is filled up in the background when half of it is gone', async () => {
    for (let i = 0; i < 26; i += 1) expect(allowance.take({ entries: 1, bytes: 100 })).toBeUndefined()
    expect(buckets.requests[1]).toEqual({
      back: { entries: 0, bytes: 0 },
      costs: [],
      ahead: { entries: 26, bytes: 0 },
    })
    await settled()
    for (let i = 0; i < 26; i += 1) expect(allowance.take({ entries: 1, bytes: 100 })).toBeUndefined()
  })

  it('is put back when a request needs more, which is paid for whole', async () => {
    expect(await send(100)).toBe('let through')
    expect(buckets.requests[1]).toMatchObject({ back: { entries: 50 }, costs: [{ entries: 100 }] })
    expect(buckets.level.entries).toBe(1_000 - 1 - 100 - 50)
  })

  it('is put back before it is used when it is old', async () => {
    nowMs += leaseLimits.sliceKeptMs
    expect(await send(1)).toBe('let through')
    expect(buckets.requests[1]).toMatchObject({ back: { entries: 50 }, costs: [{ entries: 1 }] })
  })
})

describe('requests that come while a lease is under way', () => {
  it('share the next one', async () => {
    const all = await Promise.all(Array.from({ length: 10 }, () => send(60)))
    expect(new Set(all)).toEqual(new Set(['let through']))
    expect(buckets.requests.map(({ costs }) => costs.length)).toEqual([1, 9])
  })

  it('are let through or refused each for itself, whole', async () => {
    buckets.level = { entries: 100, bytes: 0 }
    expect(await Promise.all([send(60), send(60), send(30)])).toEqual(['let through', '1 s', 'let through'])
  })
})

describe('a bucket that lacks', () => {
  beforeEach(async () => {
    buckets.level = { entries: 40, bytes: 0 }
    await send(100)
  })

  it('keeps what is there for smaller requests', async () => {
    expect(await send(40)).toBe('let through')
  })

  it('is not asked again at once for what is surely not there', async () => {
    expect(await send(100)).toBe('1 s')
    expect(buckets.requests).toHaveLength(1)
    nowMs += leaseLimits.askIntervalMs
    buckets.level = { entries: 100, bytes: 0 }
    expect(await send(100)).toBe('let through')
  })

  it('tells how long the request must wait', async () => {
    buckets.level = { entries: -1_500, bytes: 0 }
    nowMs += leaseLimits.askIntervalMs
    expect(await send(100)).toBe('2 s')
    expect(await send(600)).toBe('3 s')
  })

  it('lets a body be read that it may cover', () => {
    expect(sendEarly({ 'content-length': '1000' })).toBe('read on')
  })
})

describe('an empty bucket', () => {
  beforeEach(async () => {
    buckets.level = { entries: -3_000, bytes: 0 }
    await send(1)
  })

  it('refuses before the body is read, for as long as the body may need', () => {
    expect(sendEarly({ 'content-length': '29' })).toBe('4 s')
    expect(sendEarly()).toBe('4 s')
  })

  it('is asked again after a second at most', async () => {
    nowMs += leaseLimits.dryMsMax - 1
    expect(await send(1)).toBe('4 s')
    expect(buckets.requests).toHaveLength(1)
    nowMs += 1
    buckets.level = { entries: 1, bytes: 0 }
    expect(sendEarly()).toBe('read on')
    expect(await send(1)).toBe('let through')
  })

  it('is asked at once under another limit', async () => {
    buckets.level = { entries: 1, bytes: 0 }
    allowance.setLimit({ ...limit, perSecond: { entries: 2_000, bytes: 0 } })
    expect(await send(1)).toBe('let through')
  })

  it('stays known as empty under the same limit', async () => {
    allowance.setLimit({ perSecond: { ...limit.perSecond }, burst: { ...limit.burst } })
    expect(await send(1)).toBe('4 s')
    expect(buckets.requests).toHaveLength(1)
  })
})

it('tells what is left, with what flowed in since', async () => {
  await send(100)
  expect(allowance.state).toBe('"entries";r=900;t=1')
  nowMs += 100
  await send(10)
  expect(allowance.state).toBe('"entries";r=990;t=1')
})

it('lets a request above the burst through when the bucket is full, and owes the rest', async () => {
  allowance.setLimit({ perSecond: { entries: 10, bytes: 0 }, burst: { entries: 10, bytes: 0 } })
  buckets.level = { entries: 10, bytes: 0 }
  expect(await send(100)).toBe('let through')
  expect(await send(1)).toBe('10 s')
})

describe('a Redis that fails', () => {
  beforeEach(async () => {
    buckets.processes = 2
    buckets.level = { entries: 500, bytes: 0 }
    await send(50)
    buckets.beforeAnswer = () => Promise.reject(new Error('Redis is down'))
  })

  it('leaves the process its part of what the bucket held, and of the rate', async () => {
    // In the bucket were 400, and 50 were in hand; half of the 400 is this process' part.
    expect(await send(100)).toBe('let through')
    expect(await send(100)).toBe('let through')
    expect(await send(100)).toBe('1 s')
    nowMs += 200
    expect(await send(100)).toBe('let through')
    expect(await send(1)).toBe('1 s')
    expect(failures).not.toEqual([])
  })

  it('is never unlimited, however long it lasts', async () => {
    await send(100)
    nowMs += 3_600_000
    expect(await send(1_000)).toBe('let through')
    expect(await send(1)).toBe('1 s')
    expect(sendEarly({ 'content-length': '29' })).toBe('1 s')
  })

  it('is asked again now and then, never for each request', async () => {
    await send(100)
    const { length } = buckets.requests
    for (let i = 0; i < 20; i += 1) await send(1)
    expect(buckets.requests).toHaveLength(length)
    nowMs += leaseLimits.retryMs
    for (let i = 0; i < 20; i += 1) await send(1)
    expect(buckets.requests).toHaveLength(length + 1)
  })

  it('is told what was let through without it when it is back', async () => {
    await send(100)
    buckets.beforeAnswer = () => Promise.resolve()
    nowMs += leaseLimits.retryMs
    await send(1)
    await settled()
    // 200 of what the bucket held, and half of the rate for 250 ms.
    expect(buckets.requests.at(-1)?.back.entries).toBe(-(200 + 125))
    nowMs += leaseLimits.askIntervalMs
    buckets.level = { entries: 1_000, bytes: 0 }
    expect(await send(1_000)).toBe('let through')
  })
})

describe('a Redis that is silent', () => {
  it('is not waited for longer than the limit, and its late answer counts', async () => {
    vi.useFakeTimers()
    try {
      const { promise, resolve } = Promise.withResolvers<void>()
      buckets.beforeAnswer = () => promise
      const sent = send(100)
      await vi.advanceTimersByTimeAsync(leaseLimits.timeoutMs)
      expect(await sent).toBe('let through')
      expect(failures).toHaveLength(1)
      resolve()
      await vi.advanceTimersByTimeAsync(0)
      expect(buckets.level.entries).toBe(1_000 - 100 - 50)
      expect(allowance.take({ entries: 100, bytes: 1 })).toBeUndefined()
    } finally {
      vi.useRealTimers()
    }
  })
})
