import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import { isIP } from 'node:net'

/** How many unknown keys one process looks up. */
export const attemptLimits = {
  /** From one address at once: enough for a misconfigured fleet behind one router to see its 401s. */
  addressBurst: 20,
  addressPerSecond: 1,
  /**
   * From all addresses together. It is more than twice what a process handled on two busy cores (8,500), so that valid keys are
   * looked up whatever the number of guesses. Redis needs about 3 µs for a lookup in a batch, so this is 6 % of its time.
   */
  totalPerSecond: 20_000,
  totalBurst: 20_000,
  /**
   * The share of the total burst, and of the lookups in flight, that addresses without attempts left may use. The rest stays for the
   * others: a client that guesses as fast as it can does not take the lookups of valid keys from other addresses.
   */
  spareShare: 0.5,
  /** 10,000 of about 200 bytes: 2 MB. An evicted address has all its attempts again; the total is not affected. */
  addressesMax: 10_000,
} as const

/** The group of everything that is not an IP address: a socket without one, or an invalid value from a proxy. */
const NO_ADDRESS = 'none'

/**
 * Counts the failed attempts of each address and of all addresses, as token buckets.
 *
 * A bucket is stored as one number: the time at which it is full again. Taking a token delays that time by the time that one
 * token takes to refill. The bucket is empty when that time is further away than all its tokens take to refill. The level of the
 * total may fall below zero, by the lookups that are in flight.
 */
export class FailedAttempts {
  readonly #fullAtMs = new LRUCache<string, number>({ max: attemptLimits.addressesMax })
  #totalFullAtMs = 0

  /** Whether the address has attempts left. Without, it may use only the spare share of all lookups. */
  hasAttempts(address: string, monotonicMs: number): boolean {
    return this.#waitMs(addressGroup(address), monotonicMs) === 0
  }

  /** Whether less than this share of the total of all addresses is used. */
  hasTotal(share: number, monotonicMs: number): boolean {
    const { totalBurst, totalPerSecond } = attemptLimits
    return emptyForMs(this.#totalFullAtMs, monotonicMs, totalBurst * share, totalPerSecond) <= 0
  }

  /** @returns 0 if the address had an attempt left; otherwise how long it must wait until it has one, in ms */
  record(address: string, monotonicMs: number): number {
    const { addressPerSecond, totalPerSecond } = attemptLimits
    this.#totalFullAtMs = Math.max(this.#totalFullAtMs, monotonicMs) + 1_000 / totalPerSecond
    const group = addressGroup(address)
    const waitMs = this.#waitMs(group, monotonicMs)
    if (waitMs === 0) {
      const fullAtMs = Math.max(this.#fullAtMs.get(group) ?? 0, monotonicMs) + 1_000 / addressPerSecond
      this.#fullAtMs.set(group, fullAtMs)
    }
    return waitMs
  }

  #waitMs(group: string, monotonicMs: number): number {
    const { addressBurst, addressPerSecond } = attemptLimits
    const fullAtMs = this.#fullAtMs.get(group) ?? 0
    return Math.max(0, emptyForMs(fullAtMs, monotonicMs, addressBurst, addressPerSecond))
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
