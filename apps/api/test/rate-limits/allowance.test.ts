import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Problem } from '../../src/problems.ts'
import { Allowance } from '../../src/rate-limits/allowance.ts'
import { leaseLimits } from '../../src/rate-limits/shared-buckets.ts'
import { FakeBuckets } from '../support/fake-buckets.ts'

/** A slice is the rate of 50 ms: 50 entries. */
const limit = { perSecond: { entries: 1_000, bytes: 0 }, burst: { entries: 2_000, bytes: 0 } }

let monotonicMs: number
let buckets: FakeBuckets
let failures: unknown[]
let allowance: Allowance

beforeEach(() => {
  monotonicMs = 1_000_000
  buckets = new FakeBuckets()
  buckets.level = { entries: 1_000, bytes: 0 }
  failures = []
  allowance = new Allowance(
    limit,
    (current, request) => buckets.lease('demo', current, request),
    () => monotonicMs,
    (error) => failures.push(error),
  )
})

/** The result of a request: `passed`, or the seconds of `Retry-After`. */
async function resultOf(request: () => unknown): Promise<string> {
  try {
    await request()
    return 'passed'
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'rate_limited') throw error
    return `${error.headers['retry-after']} s`
  }
}
const send = (entries: number): Promise<string> => resultOf(() => allowance.take({ entries, bytes: 100 }))
const sendEarly = (headers = {}): Promise<string> => resultOf(() => allowance.rejectEarly(headers))

/** Waits until a lease in the background has its reply. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const passAtOnce = (): void => {
  for (let i = 0; i < 26; i += 1) expect(allowance.take({ entries: 1, bytes: 100 })).toBeUndefined()
}

describe('a slice', () => {
  beforeEach(async () => {
    await send(1)
  })

  it('lets requests pass at once, and is refilled in the background when half of it is used', async () => {
    passAtOnce()
    expect(buckets.requests[1]).toMatchObject({ back: { entries: 0 }, costs: [], ahead: { entries: 26 } })
    await settled()
    passAtOnce()
  })

  it('is returned when a request exceeds it, and the request is paid in full', async () => {
    expect(await send(100)).toBe('passed')
    expect(buckets.requests[1]).toMatchObject({ back: { entries: 50 }, costs: [{ entries: 100 }] })
    expect(buckets.level.entries).toBe(1_000 - 1 - 100 - 50)
  })

  it('is returned before it is used if it is old', async () => {
    monotonicMs += leaseLimits.sliceKeptMs
    expect(await send(1)).toBe('passed')
    expect(buckets.requests[1]).toMatchObject({ back: { entries: 50 }, costs: [{ entries: 1 }] })
  })
})

describe('requests that arrive while a lease is in flight', () => {
  it('share the next one', async () => {
    const all = await Promise.all(Array.from({ length: 10 }, () => send(60)))
    expect(new Set(all)).toEqual(new Set(['passed']))
    expect(buckets.requests.map(({ costs }) => costs.length)).toEqual([1, 9])
  })

  it('pass or are rejected individually, each as a whole', async () => {
    buckets.level = { entries: 100, bytes: 0 }
    expect(await Promise.all([send(60), send(60), send(30)])).toEqual(['passed', '1 s', 'passed'])
  })
})

describe('a lacking bucket', () => {
  beforeEach(async () => {
    buckets.level = { entries: 40, bytes: 0 }
    await send(100)
  })

  it('causes no lease for a request that it certainly does not cover', async () => {
    expect(await send(100)).toBe('1 s')
    expect(buckets.requests).toHaveLength(1)
    monotonicMs += leaseLimits.leaseIntervalMs
    buckets.level = { entries: 100, bytes: 0 }
    expect(await send(100)).toBe('passed')
  })
})

describe('an empty bucket', () => {
  beforeEach(async () => {
    buckets.level = { entries: -3_000, bytes: 0 }
    await send(1)
  })

  it('causes rejections before the body is read, with a wait for the largest possible body', async () => {
    expect(await sendEarly({ 'content-length': '29' })).toBe('4 s')
    expect(await sendEarly()).toBe('4 s')
  })

  it('is leased from again after at most one second', async () => {
    monotonicMs += leaseLimits.dryMsMax - 1
    expect(await send(1)).toBe('4 s')
    expect(buckets.requests).toHaveLength(1)
    monotonicMs += 1
    buckets.level = { entries: 1, bytes: 0 }
    expect(await sendEarly()).toBe('passed')
    expect(await send(1)).toBe('passed')
  })
})

it('reports the remainder, including the refill since the last lease', async () => {
  await send(100)
  expect(allowance.state).toBe('"entries";r=900;t=1')
  monotonicMs += 100
  await send(10)
  expect(allowance.state).toBe('"entries";r=990;t=1')
})

describe('a Redis that fails', () => {
  beforeEach(() => {
    buckets.beforeAnswer = () => Promise.reject(new Error('Redis is down'))
  })

  it('leaves each process the rate and the burst of the project', async () => {
    expect(await send(1_500)).toBe('passed')
    expect(await send(1_500)).toBe('2 s')
    monotonicMs += 1_000
    expect(await send(1_500)).toBe('passed')
    expect(await send(1)).toBe('1 s')
    expect(failures).toHaveLength(2)
  })
})

/** The result of a request that waits for the timeout of a lease. */
async function passSilently(entries: number): Promise<string> {
  const sent = send(entries)
  await vi.advanceTimersByTimeAsync(leaseLimits.timeoutMs)
  return sent
}

describe('a Redis that is silent', () => {
  let answer: () => void

  beforeEach(async () => {
    vi.useFakeTimers()
    const { promise, resolve } = Promise.withResolvers<void>()
    answer = resolve
    buckets.beforeAnswer = () => promise
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  it('delays requests by the timeout at most, and leaves each process the rate and the burst', async () => {
    expect(await passSilently(1_500)).toBe('passed')
    expect(failures).toHaveLength(1)
    expect(await send(501)).toBe('1 s')
    monotonicMs += leaseLimits.leaseIntervalMs
    expect(await send(500)).toBe('passed')
    expect(failures).toHaveLength(1)
    expect(buckets.requests).toHaveLength(1)
  })

  it('is charged later for what has passed', async () => {
    expect(await passSilently(100)).toBe('passed')
    expect(await send(300)).toBe('passed')
    answer()
    await vi.advanceTimersByTimeAsync(0)
    expect(await send(100)).toBe('passed')
    expect(buckets.level.entries + 50).toBe(1_000 - 100 - 300 - 100)
  })
})

describe('a request that pays in parts', () => {
  const part = { entries: 1, bytes: 100 }
  const pay = async (entries: number): Promise<string> => {
    await allowance.take(part)
    return resultOf(() => allowance.take({ entries, bytes: 100 }, undefined, part))
  }

  it('pays its whole cost once, from the slice or with a lease', async () => {
    expect(await pay(20)).toBe('passed')
    expect(await pay(300)).toBe('passed')
    await allowance.take({ entries: 600, bytes: 0 })
    expect(allowance.state).toBe(`"entries";r=${1_000 - 20 - 300 - 600};t=1`)
  })

  it('is told a wait that suffices for the whole of it', async () => {
    buckets.level = { entries: 0, bytes: 0 }
    const taken = Promise.resolve(allowance.take(part, { entries: 1_500, bytes: 100 }))
    await expect(taken).rejects.toMatchObject({ headers: { 'retry-after': '2' } })
  })

  it('keeps its first part paid if the rest is rejected, and the wait includes it', async () => {
    buckets.level = { entries: 60, bytes: 0 }
    expect(await pay(2_060)).toBe('2 s')
    expect(allowance.state).toBe('"entries";r=59;t=1')
    monotonicMs += 100
    expect(await send(60)).toBe('1 s')
    expect(await send(59)).toBe('passed')
  })
})

describe('a charge of rejected work', () => {
  it('is counted, also beyond the slice and the bucket', async () => {
    await send(1)
    allowance.charge({ entries: 30, bytes: 100 })
    expect(allowance.state).toBe('"entries";r=969;t=1')
    allowance.charge({ entries: 1_500, bytes: 100 })
    expect(allowance.state).toBe('"entries";r=0;t=1')
    await settled()
    monotonicMs += 100
    expect(await send(1)).not.toBe('passed')
  })

  it('leaves a debt of at most one burst until the next lease', async () => {
    await send(1)
    buckets.level = { entries: 0, bytes: 0 }
    for (let i = 0; i < 10; i += 1) allowance.charge({ entries: 1_000, bytes: 100 })
    await settled()
    expect(buckets.level.entries).toBe(0)
    expect(await send(1)).toBe('3 s')
  })
})
