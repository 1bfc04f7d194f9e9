import type { InstallationNames, RedisConnection } from '@sluice/runtime'
import { chunkLimits } from '../chunks/chunk-writer.ts'
import { type Amount, lesser, type RateLimit, scaled } from './rate-limit.ts'

/** The limits of leasing. Times are in ms. */
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
  /** Redis answers within a few ms. A request that has waited this long for a lease is decided without it. */
  timeoutMs: 75,
  /** While Redis does not answer, a lease is requested at this interval. */
  retryMs: 250,
  /** One script must not block Redis for long. Further requests wait for the next lease. */
  costsMax: 1_000,
} as const

/** The API answers within two seconds when Redis is unavailable. A request may wait for two leases and then for its add. */
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

/** What a process requests from the bucket of a project. */
export interface LeaseRequest {
  /** What it returns of earlier leases. Below zero if it let more through than it had leased. */
  readonly back: Amount
  /** The costs of waiting requests. Each is paid in full or not at all. */
  readonly costs: readonly Amount[]
  /** What it requests in advance for later requests. It gets what is available, or nothing if a cost was rejected. */
  readonly ahead: Amount
}

export interface Lease {
  /** For each cost, whether it is paid. */
  readonly paid: readonly boolean[]
  readonly ahead: Amount
  /** The level of the bucket after the lease, rounded down. */
  readonly level: Amount
  /** How many processes have used this bucket recently, including this one. */
  readonly processes: number
}

/** How long a process counts after its last lease, in ms. Longer than the pauses of a project with little traffic. */
const PROCESS_REMEMBERED_MS = 10_000

/**
 * A token bucket in entries and bytes, on the clock of Redis. Returned tokens and debts are applied before the level is
 * limited to the burst. The numbers of a unit without a limit are always zero. The key expires when the bucket is full and no
 * process has used it recently, because a missing bucket counts as full. A missing bucket has
 * refilled since a debt to it was made, so the debt lowers its level to zero at most.
 *
 * KEYS: the bucket. ARGV: the id of the process, how long it is remembered in ms; per second, burst, back and ahead, each in
 * entries and bytes; the costs, each in entries and bytes. Returns '1' or '0' for each cost as one string, ahead and level in
 * entries and bytes, and the number of processes.
 */
const LEASE = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local remembered = tonumber(ARGV[2])
local me = 'process:' .. ARGV[1]
local fields = redis.call('HGETALL', KEYS[1])
local bucket, processes = {}, 1
for i = 1, #fields, 2 do
  local name, value = fields[i], tonumber(fields[i + 1])
  if string.sub(name, 1, 8) ~= 'process:' then
    bucket[name] = value
  elseif name ~= me then
    if value > now - remembered * 1000 then processes = processes + 1 else redis.call('HDEL', KEYS[1], name) end
  end
end
local elapsed = math.max(0, now - (bucket.at or now)) / 1000000

local function fill(unit, argument)
  local rate, burst = tonumber(ARGV[argument]), tonumber(ARGV[argument + 2])
  local back = tonumber(ARGV[argument + 4])
  if rate == 0 then return rate, burst, 0 end
  if not bucket[unit] then return rate, burst, math.max(0, math.min(burst, burst + back)) end
  return rate, burst, math.min(burst, bucket[unit] + elapsed * rate + back)
end
local rateE, burstE, levelE = fill('entries', 3)
local rateB, burstB, levelB = fill('bytes', 4)

local rounding = 0.001
local paid, rejected = {}, false
for i = 11, #ARGV, 2 do
  local entries, bytes = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local fitsE = rateE == 0 or levelE + rounding >= math.min(entries, burstE)
  local fitsB = rateB == 0 or levelB + rounding >= math.min(bytes, burstB)
  if fitsE and fitsB then
    levelE, levelB = levelE - entries, levelB - bytes
    paid[#paid + 1] = '1'
  else
    rejected = true
    paid[#paid + 1] = '0'
  end
end

local aheadE, aheadB = 0, 0
if not rejected then
  aheadE = math.max(0, math.min(tonumber(ARGV[9]), math.floor(levelE)))
  aheadB = math.max(0, math.min(tonumber(ARGV[10]), math.floor(levelB)))
  levelE, levelB = levelE - aheadE, levelB - aheadB
end

local fullAfter = 0
local function keep(unit, rate, burst, level)
  if rate == 0 then
    redis.call('HDEL', KEYS[1], unit)
  else
    redis.call('HSET', KEYS[1], unit, string.format('%.6f', level))
    fullAfter = math.max(fullAfter, (burst - level) / rate * 1000)
  end
end
keep('entries', rateE, burstE, levelE)
keep('bytes', rateB, burstB, levelB)
redis.call('HSET', KEYS[1], 'at', string.format('%.0f', now), me, string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(fullAfter + remembered))
return {table.concat(paid), aheadE, aheadB, math.floor(levelE), math.floor(levelB), processes}`

/** The buckets in Redis from which the API processes lease. */
export class SharedBuckets {
  readonly #redis: RedisConnection
  readonly #names: Pick<InstallationNames, 'rateLimitKey'>
  readonly #processId: string

  /**
   * @param redis a connection that fails fast and has a command timeout
   * @param processId unique to this process
   */
  constructor(redis: RedisConnection, names: Pick<InstallationNames, 'rateLimitKey'>, processId: string) {
    this.#redis = redis
    this.#names = names
    this.#processId = processId
  }

  /** Rejects with Redis' error. Then it is unknown whether the bucket has changed. */
  async lease(projectId: string, limit: RateLimit, request: LeaseRequest): Promise<Lease> {
    const amounts = [limit.perSecond, limit.burst, request.back, request.ahead, ...request.costs]
    const reply = await this.#redis.eval(
      LEASE,
      1,
      this.#names.rateLimitKey(projectId),
      this.#processId,
      PROCESS_REMEMBERED_MS,
      ...amounts.flatMap(({ entries, bytes }) => [entries, bytes]),
    )
    const [paid, aheadEntries, aheadBytes, entries, bytes, processes] = reply as [string, ...LeaseNumbers]
    return {
      paid: Array.from(paid, (digit) => digit === '1'),
      ahead: { entries: aheadEntries, bytes: aheadBytes },
      level: { entries, bytes },
      processes,
    }
  }
}

type LeaseNumbers = [number, number, number, number, number]
