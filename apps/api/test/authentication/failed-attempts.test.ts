import { beforeEach, describe, expect, it } from 'vitest'
import { addressGroup, attemptLimits, FailedAttempts } from '../../src/authentication/failed-attempts.ts'

const { addressBurst, addressesMax, totalBurst, totalPerSecond, waitMaxMs } = attemptLimits
const A = '192.0.2.1'
const B = '192.0.2.2'

let attempts: FailedAttempts

beforeEach(() => {
  attempts = new FailedAttempts()
})

const record = (count: number, address: string, monotonicMs: number): void => {
  for (let i = 0; i < count; i += 1) attempts.record(address, monotonicMs)
}

describe('an address', () => {
  it('has its burst of attempts at once, then one attempt per second', () => {
    record(addressBurst - 1, A, 0)
    expect(attempts.waitMs(A, 0)).toBe(0)
    record(1, A, 0)
    expect(attempts.waitMs(A, 0)).toBe(1_000)
    expect(attempts.waitMs(A, 999)).toBe(1)
    expect(attempts.waitMs(A, 1_000)).toBe(0)
    record(1, A, 1_000)
    expect(attempts.waitMs(A, 1_000)).toBe(1_000)
  })

  it('has its full burst again after a pause, but not more', () => {
    record(addressBurst, A, 0)
    const laterMs = 3_600_000
    record(addressBurst - 1, A, laterMs)
    expect(attempts.waitMs(A, laterMs)).toBe(0)
    record(1, A, laterMs)
    expect(attempts.waitMs(A, laterMs)).toBe(1_000)
  })

  it('does not affect other addresses', () => {
    record(addressBurst, A, 0)
    expect(attempts.waitMs(B, 0)).toBe(0)
  })

  it('waits at most one minute, and not longer than reported', () => {
    record(1_000, A, 0)
    expect(attempts.waitMs(A, 0)).toBe(waitMaxMs)
    expect(attempts.waitMs(A, waitMaxMs)).toBe(0)
  })
})

describe('all addresses together', () => {
  it('have their burst of attempts at once, then a limited number per second', () => {
    const addresses = Array.from({ length: totalBurst + 1 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
    for (const address of addresses.slice(0, -3)) attempts.record(address, 0)
    expect(attempts.isExhausted(0)).toBe(false)
    for (const address of addresses.slice(-3)) attempts.record(address, 0)
    expect(attempts.isExhausted(0)).toBe(true)
    expect(attempts.isExhausted(1_000 / totalPerSecond)).toBe(true)
    expect(attempts.isExhausted(3_000 / totalPerSecond)).toBe(false)
  })

  it('are remembered up to a limit', () => {
    for (let i = 0; i < addressesMax + 1_000; i += 1)
      attempts.record(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, i)
    expect(attempts.size).toBe(addressesMax)
  })
})

describe('the group of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:0DB8:0001:0002::', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['2001:db8:1::5:6:7:8', '2001:db8:1:0'],
    ['::1', '0:0:0:0'],
    ['::', '0:0:0:0'],
    ['1::', '1:0:0:0'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['fe80::1%br-0', 'fe80:0:0:0'],
    ['1', 'none'],
    ['192.0.2', 'none'],
    ['', 'none'],
    ['unknown', 'none'],
    ['a'.repeat(10_000), 'none'],
  ])('%s is %s', (address, group) => {
    expect(addressGroup(address)).toBe(group)
  })
})
