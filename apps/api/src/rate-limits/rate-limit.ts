import type { ProjectLimits } from '@sluice/projects'
import { limits } from '@sluice/schema'

/** Entries, and bytes of decoded bodies: what requests cost and buckets hold. Below zero it is a debt. */
export interface Amount {
  readonly entries: number
  readonly bytes: number
}

export const nothing: Amount = { entries: 0, bytes: 0 }

export const plus = (a: Amount, b: Amount): Amount => ({
  entries: a.entries + b.entries,
  bytes: a.bytes + b.bytes,
})
export const minus = (a: Amount, b: Amount): Amount => ({
  entries: a.entries - b.entries,
  bytes: a.bytes - b.bytes,
})
export const lesser = (a: Amount, b: Amount): Amount => ({
  entries: Math.min(a.entries, b.entries),
  bytes: Math.min(a.bytes, b.bytes),
})
export const positive = (a: Amount): Amount => ({
  entries: Math.max(0, a.entries),
  bytes: Math.max(0, a.bytes),
})
export const scaled = (a: Amount, factor: number): Amount => ({
  entries: a.entries * factor,
  bytes: a.bytes * factor,
})
export const covers = (a: Amount, b: Amount): boolean => a.entries >= b.entries && a.bytes >= b.bytes

/** A project's limit: what comes in each second, and what there is at most. A unit without a limit is 0 in both. */
export interface RateLimit {
  readonly perSecond: Amount
  readonly burst: Amount
}

/** What holds where a project has no limits of its own. */
export interface RateLimitDefaults {
  readonly entriesPerSecond: number
  readonly bytesPerSecond: number
  readonly burstEntries?: number | undefined
  readonly burstBytes?: number | undefined
}

/** A burst that is not given, in seconds of the rate: clients that send once a second are never refused for their rhythm. */
const BURST_SECONDS = 2

/**
 * The limit that holds for a project; undefined when there is none.
 *
 * A burst is at least a second's worth, as the processes share it in slices. One that is not given holds the largest
 * request there may be.
 */
export function resolveRateLimit(own: ProjectLimits, defaults: RateLimitDefaults): RateLimit | undefined {
  const perSecond = {
    entries: own.entriesPerSecond ?? defaults.entriesPerSecond,
    bytes: own.bytesPerSecond ?? defaults.bytesPerSecond,
  }
  if (perSecond.entries === 0 && perSecond.bytes === 0) return undefined
  const burstEntries =
    own.burstEntries ?? (own.entriesPerSecond === undefined ? defaults.burstEntries : undefined)
  const burstBytes = own.burstBytes ?? (own.bytesPerSecond === undefined ? defaults.burstBytes : undefined)
  return {
    perSecond,
    burst: {
      entries: resolveBurst(perSecond.entries, burstEntries, limits.entriesPerBatchMax),
      bytes: resolveBurst(perSecond.bytes, burstBytes, limits.bodyBytesMax),
    },
  }
}

function resolveBurst(perSecond: number, given: number | undefined, largestRequest: number): number {
  if (perSecond === 0) return 0
  return Math.max(perSecond, given ?? Math.max(BURST_SECONDS * perSecond, largestRequest))
}

export function isSameLimit(one: RateLimit, other: RateLimit): boolean {
  return (
    covers(one.perSecond, other.perSecond) &&
    covers(other.perSecond, one.perSecond) &&
    covers(one.burst, other.burst) &&
    covers(other.burst, one.burst)
  )
}

/**
 * How long until what is there covers a cost, ms. A cost above the burst waits for a full bucket: it leaves a debt.
 *
 * @param level what is there now
 */
export function waitMs({ perSecond, burst }: RateLimit, level: Amount, cost: Amount): number {
  const lacking = minus(lesser(cost, burst), level)
  return Math.max(unitWaitMs(lacking.entries, perSecond.entries), unitWaitMs(lacking.bytes, perSecond.bytes))
}

function unitWaitMs(lacking: number, perSecond: number): number {
  return perSecond === 0 || lacking <= 0 ? 0 : (lacking / perSecond) * 1_000
}

/**
 * The values of the headers RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11). A policy is the
 * rate: `q` units in each second. The burst is told as a parameter of our own, as the draft has none.
 */
export function policyHeader({ perSecond, burst }: RateLimit): string {
  const items: string[] = []
  if (perSecond.entries > 0) items.push(`"entries";q=${perSecond.entries};w=1;sluice-burst=${burst.entries}`)
  if (perSecond.bytes > 0) {
    items.push(`"bytes";q=${perSecond.bytes};qu="content-bytes";w=1;sluice-burst=${burst.bytes}`)
  }
  return items.join(', ')
}

/** @param available what may be sent now, as far as this process knows */
export function stateHeader({ perSecond, burst }: RateLimit, available: Amount): string {
  const bytes = `"bytes";r=${whole(available.bytes, burst.bytes)};t=1`
  if (perSecond.entries === 0) return bytes
  const entries = `"entries";r=${whole(available.entries, burst.entries)};t=1`
  return perSecond.bytes === 0 ? entries : `${entries}, ${bytes}`
}

function whole(available: number, burst: number): number {
  return Math.floor(Math.min(burst, Math.max(0, available)))
}
