import type { ProjectLimits } from '@sluice/projects'
import { integerSetting, type SettingsOf } from '@sluice/runtime'
import { limits } from '@sluice/schema'
import type { IncomingHttpHeaders } from 'node:http'

/**
 * The default rate limit of a project. It applies even if nothing is configured, because a single faulty project must not
 * fill the queue for all. It is far above the log volume of one application, and about as high as the throughput of one API process.
 * The local installation (`npm start`) switches it off.
 */
export const rateLimitSettings = {
  RATE_LIMIT_ENTRIES_PER_SECOND: integerSetting(
    { minimum: 0, maximum: 1_000_000_000, default: 100_000 },
    'Default rate limit of a project, in entries per second; 0 means unlimited.',
  ),
  RATE_LIMIT_BYTES_PER_SECOND: integerSetting(
    { minimum: 0, maximum: 1_000_000_000_000, default: 100 * 1024 * 1024 },
    'Default rate limit of a project, in bytes of decoded bodies per second; 0 means unlimited.',
  ),
} as const

export type RateLimitSettings = SettingsOf<typeof rateLimitSettings>

/** Entries, and bytes of decoded bodies: the cost of a request or the level of a bucket. Below zero it is a debt. */
export interface Amount {
  readonly entries: number
  readonly bytes: number
}

export const nothing: Amount = { entries: 0, bytes: 0 }

const combine =
  (of: (a: number, b: number) => number) =>
  (a: Amount, b: Amount): Amount => ({ entries: of(a.entries, b.entries), bytes: of(a.bytes, b.bytes) })
export const plus = combine((a, b) => a + b)
export const minus = combine((a, b) => a - b)
export const lesser = combine(Math.min)
const greater = combine(Math.max)
export const positive = (a: Amount): Amount => greater(a, nothing)
export const scaled = (a: Amount, factor: number): Amount => ({
  entries: a.entries * factor,
  bytes: a.bytes * factor,
})
export const covers = (a: Amount, b: Amount): boolean => a.entries >= b.entries && a.bytes >= b.bytes

/** The refill rate and the capacity of a project's bucket. A unit without a limit is 0 in both. */
export interface RateLimit {
  readonly perSecond: Amount
  readonly burst: Amount
}

/** The burst if none is configured, in seconds of the rate. A client that sends once a second stays below it. */
const BURST_SECONDS = 2

/**
 * The limit of a project; undefined if it has none.
 *
 * A burst is at least the rate of one second, because the processes divide it into slices. A burst that is not configured is
 * at least the largest possible request.
 */
export function resolveRateLimit(own: ProjectLimits, defaults: RateLimitSettings): RateLimit | undefined {
  const perSecond = {
    entries: own.entriesPerSecond ?? defaults.RATE_LIMIT_ENTRIES_PER_SECOND,
    bytes: own.bytesPerSecond ?? defaults.RATE_LIMIT_BYTES_PER_SECOND,
  }
  if (perSecond.entries === 0 && perSecond.bytes === 0) return undefined
  return {
    perSecond,
    burst: {
      entries: resolveBurst(perSecond.entries, own.burstEntries, limits.entriesPerRequestMax),
      bytes: resolveBurst(perSecond.bytes, own.burstBytes, limits.bodyBytesMax),
    },
  }
}

function resolveBurst(perSecond: number, configured: number | undefined, largestRequest: number): number {
  if (perSecond === 0) return 0
  return Math.max(perSecond, configured ?? Math.max(BURST_SECONDS * perSecond, largestRequest))
}

/** The shortest valid entry with its separator: `{"level":"log","message":""},`. */
const ENTRY_BYTES_MIN = 29

/** The limits of a request's cost, by its headers. A compressed body, or a body without a length, may be as large as the limits allow. */
export function estimateCost(headers: IncomingHttpHeaders): { min: Amount; max: Amount } {
  const encoding = headers['content-encoding']?.toLowerCase()
  const length = headers['content-length']
  if (length === undefined || (encoding !== undefined && encoding !== 'identity')) {
    return {
      min: { entries: 1, bytes: 1 },
      max: { entries: limits.entriesPerRequestMax, bytes: limits.bodyBytesMax },
    }
  }
  const bytes = Math.min(Number(length), limits.bodyBytesMax)
  return { min: { entries: 1, bytes }, max: largestCost(bytes) }
}

export function largestCost(bytes: number): Amount {
  const entries = Math.min(limits.entriesPerRequestMax, Math.ceil(bytes / ENTRY_BYTES_MIN))
  return { entries: Math.max(1, entries), bytes }
}

/** How long until a bucket with this level covers a cost, in ms. A cost above the burst waits for a full bucket and leaves a debt. */
export function waitMs({ perSecond, burst }: RateLimit, level: Amount, cost: Amount): number {
  const lacking = minus(lesser(cost, burst), level)
  const waits = limitedUnits({ perSecond }).map((unit) => (lacking[unit] / perSecond[unit]) * 1_000)
  return Math.max(0, ...waits)
}

function limitedUnits({ perSecond }: Pick<RateLimit, 'perSecond'>): (keyof Amount)[] {
  return (['entries', 'bytes'] as const).filter((unit) => perSecond[unit] > 0)
}

export function rateLimitedDetail(limit: RateLimit, retryAfterS: number): string {
  const allowed = limitedUnits(limit).map((unit) => `${limit.perSecond[unit]} ${unit}`)
  return `The project may send ${allowed.join(' and ')} per second. Retry in ${retryAfterS} s.`
}

/**
 * The values of the headers RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11). A policy is the rate:
 * `q` units per second. The burst is a parameter with the prefix `sluice-`, because the draft has none for it.
 */
export function policyHeader(limit: RateLimit): string {
  const { perSecond, burst } = limit
  const items = limitedUnits(limit).map((unit) => {
    const named = unit === 'bytes' ? 'qu="content-bytes";' : ''
    return `"${unit}";q=${perSecond[unit]};${named}w=1;sluice-burst=${burst[unit]}`
  })
  return items.join(', ')
}

/** @param available what the project may send now, as far as this process knows */
export function stateHeader(limit: RateLimit, available: Amount): string {
  const left = lesser(limit.burst, positive(available))
  const items = limitedUnits(limit).map((unit) => `"${unit}";r=${Math.floor(left[unit])};t=1`)
  return items.join(', ')
}
