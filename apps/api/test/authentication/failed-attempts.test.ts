import { beforeEach, describe, expect, it } from 'vitest'
import { addressGroup, attemptLimits, FailedAttempts } from '../../src/authentication/failed-attempts.ts'

const { addressBurst, addressesMax, totalBurst, totalPerSecond, waitMaxMs } = attemptLimits
const A = '192.0.2.1'
const B = '192.0.2.2'

let attempts: FailedAttempts

beforeEach(() => {
  attempts = new FailedAttempts()
})

const note = (count: number, address: string, nowMs: number): void => {
  for (let i = 0; i < count; i += 1) attempts.note(address, nowMs)
}

describe('an address', () => {
  it('has its tries at once, then one a second', () => {
    note(addressBurst - 1, A, 0)
    expect(attempts.waitMs(A, 0)).toBe(0)
    note(1, A, 0)
    expect(attempts.waitMs(A, 0)).toBe(1_000)
    expect(attempts.waitMs(A, 999)).toBe(1)
    expect(attempts.waitMs(A, 1_000)).toBe(0)
    note(1, A, 1_000)
    expect(attempts.waitMs(A, 1_000)).toBe(1_000)
  })

  it('has all its tries again when it was quiet, and no more than those', () => {
    note(addressBurst, A, 0)
    const laterMs = 3_600_000
    note(addressBurst - 1, A, laterMs)
    expect(attempts.waitMs(A, laterMs)).toBe(0)
    note(1, A, laterMs)
    expect(attempts.waitMs(A, laterMs)).toBe(1_000)
  })

  it('costs no other address anything', () => {
    note(addressBurst, A, 0)
    expect(attempts.waitMs(B, 0)).toBe(0)
  })

  it('waits for a minute at most, and needs to wait no longer than it was told', () => {
    note(1_000, A, 0)
    expect(attempts.waitMs(A, 0)).toBe(waitMaxMs)
    expect(attempts.waitMs(A, waitMaxMs)).toBe(0)
  })
})

describe('all addresses together', () => {
  it('have their tries at once, then so many a second', () => {
    const addresses = Array.from({ length: totalBurst + 1 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
    for (const address of addresses.slice(0, -3)) attempts.note(address, 0)
    expect(attempts.isExhausted(0)).toBe(false)
    for (const address of addresses.slice(-3)) attempts.note(address, 0)
    expect(attempts.isExhausted(0)).toBe(true)
    expect(attempts.isExhausted(1_000 / totalPerSecond)).toBe(true)
    expect(attempts.isExhausted(3_000 / totalPerSecond)).toBe(false)
  })

  it('are remembered up to a number', () => {
    for (let i = 0; i < addressesMax + 1_000; i += 1)
      attempts.note(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, i)
    expect(attempts.size).toBe(addressesMax)
  })
})

describe('one client', () => {
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
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['', 'none'],
    ['unknown', 'none'],
    ['a'.repeat(10_000), 'none'],
  ])('of %s is %s', (address, group) => {
    expect(addressGroup(address)).toBe(group)
  })
})
