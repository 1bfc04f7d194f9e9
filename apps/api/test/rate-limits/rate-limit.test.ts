import { describe, expect, it } from 'vitest'
import {
  estimateCost,
  policyHeader,
  resolveRateLimit,
  stateHeader,
  waitMs,
} from '../../src/rate-limits/rate-limit.ts'

const unlimited = { RATE_LIMIT_ENTRIES_PER_SECOND: 0, RATE_LIMIT_BYTES_PER_SECOND: 0 }
const defaults = { RATE_LIMIT_ENTRIES_PER_SECOND: 1_000, RATE_LIMIT_BYTES_PER_SECOND: 10_000_000 }

describe('the limit of a project', () => {
  it('is undefined if neither the project nor the defaults have one', () => {
    expect(resolveRateLimit({}, unlimited)).toBeUndefined()
    expect(resolveRateLimit({ burstEntries: 5 }, unlimited)).toBeUndefined()
    expect(resolveRateLimit({ entriesPerSecond: 0, bytesPerSecond: 0 }, defaults)).toBeUndefined()
  })

  it('is the default, with the rate of two seconds as the burst', () => {
    expect(resolveRateLimit({}, defaults)).toEqual({
      perSecond: { entries: 1_000, bytes: 10_000_000 },
      burst: { entries: 2_000, bytes: 20_000_000 },
    })
  })

  it('overrides the default, separately for each unit', () => {
    expect(resolveRateLimit({ entriesPerSecond: 0, burstBytes: 30_000_000 }, defaults)).toEqual({
      perSecond: { entries: 0, bytes: 10_000_000 },
      burst: { entries: 0, bytes: 30_000_000 },
    })
  })

  it('has a burst of at least the largest request, unless the burst is configured', () => {
    const small = { entriesPerSecond: 1, bytesPerSecond: 1_024 }
    expect(resolveRateLimit(small, unlimited)?.burst).toEqual({ entries: 100, bytes: 5 * 1024 * 1024 })
    expect(resolveRateLimit({ ...small, burstEntries: 5 }, unlimited)?.burst.entries).toBe(5)
  })
})

const both = { perSecond: { entries: 10, bytes: 1_000 }, burst: { entries: 50, bytes: 5_000 } }
const entriesOnly = { perSecond: { entries: 10, bytes: 0 }, burst: { entries: 50, bytes: 0 } }

it.each([
  ['zero if the level suffices', { entries: 20, bytes: 100 }, { entries: 20, bytes: 100 }, 0],
  ['the time until there are enough entries', { entries: 5, bytes: 50 }, { entries: 20, bytes: 10 }, 1_500],
  ['the time of the slower unit', { entries: 5, bytes: 0 }, { entries: 20, bytes: 2_000 }, 2_000],
  ['longer for a debt', { entries: -10, bytes: 0 }, { entries: 10, bytes: 0 }, 2_000],
  ['the time until the bucket is full', { entries: 0, bytes: 0 }, { entries: 100, bytes: 0 }, 5_000],
])('the wait is %s', (_what, level, cost, expected) => {
  expect(waitMs(both, level, cost)).toBe(expected)
})

describe('the headers', () => {
  const bytesOnly = { perSecond: { entries: 0, bytes: 1_000 }, burst: { entries: 0, bytes: 5_000 } }
  const bytesPolicy = '"bytes";q=1000;qu="content-bytes";w=1;sluice-burst=5000'
  const entriesPolicy = '"entries";q=10;w=1;sluice-burst=50'

  it.each([
    ['both units', both, `${entriesPolicy}, ${bytesPolicy}`, '"entries";r=7;t=1, "bytes";r=4000;t=1'],
    ['entries', entriesOnly, entriesPolicy, '"entries";r=7;t=1'],
    ['bytes', bytesOnly, bytesPolicy, '"bytes";r=4000;t=1'],
  ])('contain the units with a limit: %s', (_what, limit, policy, state) => {
    expect(policyHeader(limit)).toBe(policy)
    expect(stateHeader(limit, { entries: 7.9, bytes: 4_000 })).toBe(state)
  })
})

it.each([
  [{ 'content-length': '58' }, [1, 58, 2, 58]],
  [{ 'content-length': '50000' }, [1, 50_000, 100, 50_000]],
  [{ 'content-length': '0' }, [1, 0, 1, 0]],
  [{}, [1, 1, 100, 5 * 1024 * 1024]],
  [{ 'content-length': '58', 'content-encoding': 'gzip' }, [1, 1, 100, 5 * 1024 * 1024]],
])('the cost of a request with the headers %j is bounded', (headers, expected) => {
  const { min, max } = estimateCost(headers)
  expect([min.entries, min.bytes, max.entries, max.bytes]).toEqual(expected)
})
