import { chunkLimits } from '../chunks/chunk-writer.ts'
import { type Amount, lesser, type RateLimit, scaled } from './rate-limit.ts'

/** The bounds of leasing. Times are in ms. */
export const leaseLimits = {
  /** A slice is what a process has in hand, at most: so much of the rate makes some 40 leases a second under full load… */
  sliceMs: 50,
  /** …and so much of the burst keeps three processes, with all their slices unused, within ten percent of it. */
  sliceOfBurst: 1 / 30,
  /** A slice that is older is put back before more is taken: its bucket may be full again. */
  sliceKeptMs: 5_000,
  /** How long what was left at the last lease is taken for all there is. More often asking brings a few tokens a time. */
  askIntervalMs: 20,
  /** The same while there is less than one entry or byte: others may put back a slice, or the limit may be raised. */
  dryMsMax: 1_000,
  /** Redis answers within a few ms; what waits longer than this for a lease is decided without it. */
  timeoutMs: 75,
  /** While Redis does not answer, it is asked again this often. */
  retryMs: 250,
  /** One script must not keep Redis for long; what waits beyond this takes part in the next one. */
  costsMax: 1_000,
} as const

/** The contract: a Redis that is away is told within two seconds. A request may wait for two leases and then for its add. */
if (2 * leaseLimits.timeoutMs + chunkLimits.addDeadlineMs >= 2_000) throw new Error('leases take too long')

/** What a process has in hand of a limit, at most, in whole entries and bytes. */
export function sliceOf({ perSecond, burst }: RateLimit): Amount {
  const slice = lesser(
    scaled(perSecond, leaseLimits.sliceMs / 1_000),
    scaled(burst, leaseLimits.sliceOfBurst),
  )
  return { entries: Math.floor(slice.entries), bytes: Math.floor(slice.bytes) }
}
