import { beforeEach, describe, expect, it } from 'vitest'
import { addressGroup, attemptLimits, FailedAttempts } from '../../src/authentication/failed-attempts.ts'

const { addressBurst, addressesMax, totalBurst, totalPerSecond } = attemptLimits
const A = '192.0.2.1'

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
    expect(attempts.hasAttempts(A, 0)).toBe(true)
    expect(attempts.record(A, 0)).toBe(0)
    expect(attempts.hasAttempts(A, 0)).toBe(false)
    expect(attempts.record(A, 0)).toBe(1_000)
    expect(attempts.hasAttempts(A, 999)).toBe(false)
    expect(attempts.record(A, 999)).toBe(1)
    expect(attempts.hasAttempts(A, 1_000)).toBe(true)
    expect(attempts.record(A, 1_000)).toBe(0)
    expect(attempts.record(A, 1_000)).toBe(1_000)
  })
})

describe('all addresses together', () => {
  it('have their burst of attempts at once, then a limited number per second', () => {
    record(totalBurst - 2, A, 0)
    expect(attempts.hasTotal(1, 0)).toBe(true)
    record(3, A, 0)
    expect(attempts.hasTotal(1, 0)).toBe(false)
    expect(attempts.hasTotal(1, 1_000 / totalPerSecond)).toBe(false)
    expect(attempts.hasTotal(1, 4_000 / totalPerSecond)).toBe(true)
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
