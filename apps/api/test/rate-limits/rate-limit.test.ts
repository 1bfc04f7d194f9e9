import { describe, expect, it } from 'vitest'
import { policyHeader, resolveRateLimit, stateHeader, waitMs } from '../../src/rate-limits/rate-limit.ts'
import { estimateCost } from '../../src/rate-limits/request-cost.ts'

const unlimited = { entriesPerSecond: 0, bytesPerSecond: 0 }
const defaults = { entriesPerSecond: 1_000, bytesPerSecond: 10_000_000 }

describe('the limit of a project', () => {
  it('is none where neither it nor the defaults have one', () => {
    expect(resolveRateLimit({}, unlimited)).toBeUndefined()
    expect(resolveRateLimit({ burstEntries: 5 }, unlimited)).toBeUndefined()
    expect(resolveRateLimit({ entriesPerSecond: 0, bytesPerSecond: 0 }, defaults)).toBeUndefined()
  })

  it('is the default, with two seconds of it as the burst', () => {
    expect(resolveRateLimit({}, defaults)).toEqual({
      perSecond: { entries: 1_000, bytes: 10_000_000 },
      burst: { entries: 2_000, bytes: 20_000_000 },
    })
  })

  it('is its own before the default, unit by unit', () => {
    expect(resolveRateLimit({ entriesPerSecond: 0, burstBytes: 30_000_000 }, defaults)).toEqual({
      perSecond: { entries: 0, bytes: 10_000_000 },
      burst: { entries: 0, bytes: 30_000_000 },
    })
  })

  it('takes the burst of the default only with the rate of the default', () => {
    const withBurst = { ...defaults, burstEntries: 7_000 }
    expect(resolveRateLimit({}, withBurst)?.burst.entries).toBe(7_000)
    expect(resolveRateLimit({ entriesPerSecond: 50 }, withBurst)?.burst.entries).toBe(100)
  })

  it('holds the largest request there may be, unless the burst says otherwise', () => {
    const small = { entriesPerSecond: 1, bytesPerSecond: 1_024 }
    expect(resolveRateLimit(small, unlimited)?.burst).toEqual({ entries: 100, bytes: 5 * 1024 * 1024 })
    expect(resolveRateLimit({ ...small, burstEntries: 5 }, unlimited)?.burst.entries).toBe(5)
  })

  it('has a burst of at least a second', () => {
    expect(resolveRateLimit({ entriesPerSecond: 50, burstEntries: 5 }, unlimited)?.burst.entries).toBe(50)
  })
})

const both = { perSecond: { entries: 10, bytes: 1_000 }, burst: { entries: 50, bytes: 5_000 } }
const entriesOnly = { perSecond: { entries: 10, bytes: 0 }, burst: { entries: 50, bytes: 0 } }

describe('the wait', () => {
  it.each([
    ['nothing when there is enough', { entries: 20, bytes: 100 }, { entries: 20, bytes: 100 }, 0],
    ['for entries', { entries: 5, bytes: 5_000 }, { entries: 20, bytes: 100 }, 1_500],
    ['for the unit that takes longer', { entries: 5, bytes: 0 }, { entries: 20, bytes: 2_000 }, 2_000],
    ['for a debt', { entries: -10, bytes: 0 }, { entries: 10, bytes: 0 }, 2_000],
    [
      'for a full bucket where the cost is above the burst',
      { entries: 0, bytes: 0 },
      { entries: 100, bytes: 0 },
      5_000,
    ],
  ])('is %s', (_what, level, cost, expected) => {
    expect(waitMs(both, level, cost)).toBe(expected)
  })

  it('is not for a unit without limit', () => {
    expect(waitMs(entriesOnly, { entries: 1, bytes: 0 }, { entries: 1, bytes: 9_999 })).toBe(0)
  })
})

describe('the headers', () => {
  it('tell both units', () => {
    expect(policyHeader(both)).toBe(
      '"entries";q=10;w=1;sluice-burst=50, "bytes";q=1000;qu="content-bytes";w=1;sluice-burst=5000',
    )
    expect(stateHeader(both, { entries: 7.9, bytes: 4_000 })).toBe('"entries";r=7;t=1, "bytes";r=4000;t=1')
  })

  it('tell only the unit that is limited', () => {
    expect(policyHeader(entriesOnly)).toBe('"entries";q=10;w=1;sluice-burst=50')
    expect(stateHeader(entriesOnly, { entries: 7, bytes: 0 })).toBe('"entries";r=7;t=1')
    const bytesOnly = { perSecond: { entries: 0, bytes: 1_000 }, burst: { entries: 0, bytes: 5_000 } }
    expect(policyHeader(bytesOnly)).toBe('"bytes";q=1000;qu="content-bytes";w=1;sluice-burst=5000')
    expect(stateHeader(bytesOnly, { entries: 0, bytes: 7 })).toBe('"bytes";r=7;t=1')
  })

  it('tell neither less than nothing nor more than the burst', () => {
    expect(stateHeader(both, { entries: -5, bytes: 9_999 })).toBe('"entries";r=0;t=1, "bytes";r=5000;t=1')
  })
})

describe('what a request costs, by its headers', () => {
  const any = { least: { entries: 1, bytes: 1 }, most: { entries: 100, bytes: 5 * 1024 * 1024 } }
  it.each([
    [
      'a small body',
      { 'content-length': '58' },
      { least: { entries: 1, bytes: 58 }, most: { entries: 2, bytes: 58 } },
    ],
    [
      'a large body',
      { 'content-length': '50000' },
      { least: { entries: 1, bytes: 50_000 }, most: { entries: 100, bytes: 50_000 } },
    ],
    [
      'an empty body',
      { 'content-length': '0' },
      { least: { entries: 1, bytes: 0 }, most: { entries: 1, bytes: 0 } },
    ],
    ['a body without a length', {}, any],
    ['a compressed body', { 'content-length': '58', 'content-encoding': 'gzip' }, any],
  ])('is known as far as it can be: %s', (_what, headers, expected) => {
    expect(estimateCost(headers)).toEqual(expected)
  })

  it('covers the smallest entries that are valid', () => {
    const body = JSON.stringify({ logs: Array.from({ length: 100 }, () => ({ level: 'log', message: '' })) })
    const { most } = estimateCost({ 'content-length': String(body.length) })
    expect(most.entries).toBe(100)
  })
})
