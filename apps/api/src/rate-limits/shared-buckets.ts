import { defineScript, type InstallationNames, type RedisConnection } from '@sluice/runtime'
import { chunkLimits } from '../chunks/chunk-writer.ts'
import { type Amount, lesser, type RateLimit, scaled } from './rate-limit.ts'

export const leaseLimits = {
  /** The size of a slice, the most that a process holds, in ms of the rate. At full load it causes about 40 leases a second. */
  sliceMs: 50,
  /** The maximum size of a slice as a share of the burst: three idle processes hold at most 10 % of the burst. */
  sliceOfBurst: 1 / 30,
  /** An older slice is returned before more is leased, because its bucket may be full again by then. */
  sliceKeptMs: 5_000,
  /**
   * After a lease, a process considers the level of the bucket unchanged for this long. More frequent requests would lease
   * only a few tokens each.
   */
  leaseIntervalMs: 20,
  /**
   * While the bucket has less than one entry or byte, that time is longer, up to this maximum. It has a maximum because
   * another process may return its slice, and the limit may be raised.
   */
  dryMsMax: 1_000,
  /** Redis replies within a few ms. After this time, the process goes on without a lease. */
  timeoutMs: 75,
  /** One script must not block Redis for long. Further requests wait for the next lease. */
  costsMax: 1_000,
} as const

/** The API responds within two seconds when Redis is unavailable. A request may wait for two leases and then for its add. */
if (2 * leaseLimits.timeoutMs + chunkLimits.addDeadlineMs >= 2_000) {
  throw new Error('two lease timeouts and addDeadlineMs must be less than two seconds')
}

/** The most that a process holds of a limit, in whole entries and bytes. */
export function sliceOf({ perSecond, burst }: RateLimit): Amount {
  const slice = lesser(
    scaled(perSecond, leaseLimits.sliceMs / 1_000),
    scaled(burst, leaseLimits.sliceOfBurst),
  )
  return { entries: Math.floor(slice.entries), bytes: Math.floor(slice.bytes) }
}

export interface LeaseRequest {
  /** What it returns of earlier leases. Below zero it is a debt. */
  readonly back: Amount
  /** The costs of waiting requests. Each is paid in full or not at all. */
  readonly costs: readonly Amount[]
  /** What it requests in advance for later requests. It gets what is available, or nothing if a cost was rejected. */
  readonly ahead: Amount
}

export interface Lease {
  readonly paid: readonly boolean[]
  readonly ahead: Amount
  /** The level of the bucket after the lease, rounded down. */
  readonly level: Amount
}

/**
 * A token bucket in entries and bytes, on the clock of Redis. Returned tokens and debts are applied before the level is
 * limited to the burst. The numbers of a unit without a limit are always zero. The key expires when the bucket is full,
 * because a missing bucket counts as full. A missing bucket has refilled since a debt to it was made, so the debt lowers its
 * level to zero at most.
 *
 * KEYS: the bucket. ARGV: per second, burst, back and ahead, each in entries and bytes; the costs, each in entries and bytes.
 * Returns '1' or '0' for each cost as one string; ahead and level in entries, and in bytes.
 */
const LEASE = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stored = redis.call('HMGET', KEYS[1], 'at', 'entries', 'bytes')
local elapsed = math.max(0, now - (tonumber(stored[1]) or now)) / 1000000
local units = {}
for i, name in ipairs({ 'entries', 'bytes' }) do
  local rate, burst = tonumber(ARGV[i]), tonumber(ARGV[i + 2])
  local back, ahead = tonumber(ARGV[i + 4]), tonumber(ARGV[i + 6])
  local level = tonumber(stored[i + 1])
  if rate == 0 then level = 0
  elseif level then level = math.min(burst, level + elapsed * rate + back)
  else level = math.max(0, math.min(burst, burst + back)) end
  units[i] = { name = name, rate = rate, burst = burst, ahead = ahead, level = level }
end

local rounding = 0.001
local paid, rejected = {}, false
for i = 9, #ARGV, 2 do
  local fits = true
  for j, unit in ipairs(units) do
    local needed = math.min(tonumber(ARGV[i + j - 1]), unit.burst)
    fits = fits and (unit.rate == 0 or unit.level + rounding >= needed)
  end
  if fits then
    for j, unit in ipairs(units) do unit.level = unit.level - tonumber(ARGV[i + j - 1]) end
  end
  rejected = rejected or not fits
  paid[#paid + 1] = fits and '1' or '0'
end

local reply, fullAfter = { table.concat(paid) }, 0
for _, unit in ipairs(units) do
  local ahead = rejected and 0 or math.max(0, math.min(unit.ahead, math.floor(unit.level)))
  local level = unit.level - ahead
  reply[#reply + 1] = ahead
  reply[#reply + 1] = math.floor(level)
  if unit.rate == 0 then
    redis.call('HDEL', KEYS[1], unit.name)
  else
    redis.call('HSET', KEYS[1], unit.name, string.format('%.6f', level))
    fullAfter = math.max(fullAfter, (unit.burst - level) / unit.rate * 1000)
  end
end
redis.call('HSET', KEYS[1], 'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(fullAfter))
return reply`

/** Rejects with the error of Redis. Then it is unknown whether the bucket has changed. */
export type LeaseShared = (projectId: string, limit: RateLimit, request: LeaseRequest) => Promise<Lease>

export function sharedBuckets(redis: RedisConnection, names: InstallationNames): LeaseShared {
  const run = defineScript<readonly [string, number, number, number, number]>(redis, LEASE)
  return async (projectId, { perSecond, burst }, { back, ahead, costs }) => {
    const amounts = [perSecond, burst, back, ahead, ...costs]
    const args = amounts.flatMap(({ entries, bytes }) => [entries, bytes])
    const [paid, aheadEntries, entries, aheadBytes, bytes] = await run([names.rateLimitKey(projectId)], args)
    return {
      paid: Array.from(paid, (digit) => digit === '1'),
      ahead: { entries: aheadEntries, bytes: aheadBytes },
      level: { entries, bytes },
    }
  }
}
