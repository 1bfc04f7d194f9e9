import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import assert from 'node:assert/strict'
import { isIP } from 'node:net'

/** How many unknown keys one process looks up. */
export const attemptLimits = {
  /** From one address at once: enough for a misconfigured fleet behind one router to see its 401s. */
  addressBurst: 20,
  /** From one address in the long run. */
  addressPerSecond: 1,
  /**
   * From all addresses together. A lookup costs Redis about 10 µs, so this is 5 % of its time. A process rejects at most
   * about 15,000 requests a second. In the worst case, a valid key that is new to the process is therefore looked up at about
   * its third attempt.
   */
  totalPerSecond: 5_000,
  totalBurst: 5_000,
  /** The longest wait of an address. Lookups in flight when its attempts run out may put it into debt. */
  waitMaxMs: 60_000,
  /** 10,000 of about 200 bytes: 2 MB. An evicted address has all its attempts again; the total is not affected. */
  addressesMax: 10_000,
} as const
assert.ok(attemptLimits.waitMaxMs >= 1_000 / attemptLimits.addressPerSecond)

/** The group of everything that is not an IP address: a socket without one, or an invalid value from a proxy. */
const NO_ADDRESS = 'none'

/**
 * Counts the failed attempts of each address and of all addresses, as token buckets.
 *
 * A bucket is stored as one number: the time at which it is full again. Taking a token delays that time by the time that one
 * token takes to refill. The bucket is empty when that time is further away than all its tokens take to refill. The level
 * may fall below zero.
 */
export class FailedAttempts {
  readonly #fullAtMs = new LRUCache<string, number>({ max: attemptLimits.addressesMax })
  #totalFullAtMs = 0

  /** How many addresses are remembered. */
  get size(): number {
    return this.#fullAtMs.size
  }

  /** How long an address must wait until its keys are looked up again, in ms; 0 if it need not wait. */
  waitMs(address: string, monotonicMs: number): number {
    const { addressBurst, addressPerSecond } = attemptLimits
    const fullAtMs = this.#fullAtMs.get(addressGroup(address)) ?? 0
    return Math.max(0, emptyForMs(fullAtMs, monotonicMs, addressBurst, addressPerSecond))
  }

  /** Whether all addresses together have used up their attempts. */
  isExhausted(monotonicMs: number): boolean {
    const { totalBurst, totalPerSecond } = attemptLimits
    return emptyForMs(this.#totalFullAtMs, monotonicMs, totalBurst, totalPerSecond) > 0
  }

  record(address: string, monotonicMs: number): void {
    const { addressBurst, addressPerSecond, totalPerSecond, waitMaxMs } = attemptLimits
    const group = addressGroup(address)
    const fullAtMs = Math.max(this.#fullAtMs.get(group) ?? 0, monotonicMs) + 1_000 / addressPerSecond
    const fullAtMaxMs = monotonicMs + ((addressBurst - 1) * 1_000) / addressPerSecond + waitMaxMs
    this.#fullAtMs.set(group, Math.min(fullAtMs, fullAtMaxMs))
    this.#totalFullAtMs = Math.max(this.#totalFullAtMs, monotonicMs) + 1_000 / totalPerSecond
  }
}

/** How long until the bucket has a token, in ms; 0 or less if it has one. */
function emptyForMs(fullAtMs: number, monotonicMs: number, burst: number, perSecond: number): number {
  return fullAtMs - monotonicMs - ((burst - 1) * 1_000) / perSecond
}

/**
 * The addresses that count as one client: a single IPv4 address, or a /64 of IPv6, which is the smallest network that a
 * provider assigns. An IPv4 address that a dual-stack socket reports as IPv6 counts as IPv4.
 */
export function addressGroup(address: string): string {
  // Node decides what an address is: ipaddr.js also accepts `1`, and does not accept every zone, such as `%br-0`.
  if (isIP(address) === 0) return NO_ADDRESS
  const parsed = ipaddr.process(address.replace(/%.*/, ''))
  if (parsed instanceof ipaddr.IPv4) return parsed.toString()
  return parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')
}
