import { LRUCache } from 'lru-cache'
import assert from 'node:assert/strict'
import { isIP } from 'node:net'

/** How many keys that nobody has one process looks up. */
export const attemptLimits = {
  /** From one address at once: enough for a misconfigured fleet behind one router to see its 401s. */
  addressBurst: 20,
  /** From one address in the long run. */
  addressPerSecond: 1,
  /**
   * From all addresses together: a look-up costs Redis some 10 µs, so this is 5 % of it. A process refuses no more than
   * some 15,000 requests a second, so a good key that is new here is looked up at about the third try, at the worst.
   */
  totalPerSecond: 5_000,
  totalBurst: 5_000,
  /** The longest that an address waits. Look-ups under way when its tries run out may cost it more than it had. */
  waitMaxMs: 60_000,
  /** 10,000 of some 200 bytes: 2 MB. An address that is forgotten has its tries again; the total has not. */
  addressesMax: 10_000,
} as const
assert.ok(attemptLimits.waitMaxMs >= 1_000 / attemptLimits.addressPerSecond)

/** For what is no IP address: a socket without one, or a proxy that says something else. */
const NO_ADDRESS = 'none'

/**
 * Counts the failed tries of each address and of all, as token buckets.
 *
 * A bucket is kept as one number, the time at which it is full again: a token taken puts that off by the time a token
 * takes to come back, and the bucket is empty when it is further away than all its tokens take. It may fall below empty.
 */
export class FailedAttempts {
  readonly #fullAtMs = new LRUCache<string, number>({ max: attemptLimits.addressesMax })
  #totalFullAtMs = 0

  /** How many addresses are remembered. */
  get size(): number {
    return this.#fullAtMs.size
  }

  /** How long an address must wait until its keys are looked up again, ms; 0 when they are. */
  waitMs(address: string, nowMs: number): number {
    const { addressBurst, addressPerSecond } = attemptLimits
    const fullAtMs = this.#fullAtMs.get(addressGroup(address)) ?? 0
    return Math.max(0, emptyForMs(fullAtMs, nowMs, addressBurst, addressPerSecond))
  }

  /** Whether all addresses together have used up their tries. */
  isExhausted(nowMs: number): boolean {
    const { totalBurst, totalPerSecond } = attemptLimits
    return emptyForMs(this.#totalFullAtMs, nowMs, totalBurst, totalPerSecond) > 0
  }

  note(address: string, nowMs: number): void {
    const { addressBurst, addressPerSecond, totalPerSecond, waitMaxMs } = attemptLimits
    const group = addressGroup(address)
    const fullAtMs = Math.max(this.#fullAtMs.get(group) ?? 0, nowMs) + 1_000 / addressPerSecond
    const fullAtMaxMs = nowMs + ((addressBurst - 1) * 1_000) / addressPerSecond + waitMaxMs
    this.#fullAtMs.set(group, Math.min(fullAtMs, fullAtMaxMs))
    this.#totalFullAtMs = Math.max(this.#totalFullAtMs, nowMs) + 1_000 / totalPerSecond
  }
}

/** How long until there is a token, ms; 0 or less when there is one. */
function emptyForMs(fullAtMs: number, nowMs: number, burst: number, perSecond: number): number {
  return fullAtMs - nowMs - ((burst - 1) * 1_000) / perSecond
}

/**
 * What counts as one client: an IPv4 address, or the /64 of an IPv6 address, which is the least that anybody is given.
 * An IPv4 address that a dual-stack socket shows as IPv6 is an IPv4 address.
 */
export function addressGroup(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  const version = isIP(address)
  if (version === 4) return address
  if (version === 0) return NO_ADDRESS
  const [head = '', tail] = address.split('%', 1).join('').split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => '0')
  const groups = [...before, ...zeros, ...after].slice(0, 4)
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')
}
