import type { RedisConnection } from '@sluice/runtime'
import type { RedisNames } from '@sluice/schema'
import type { Amount, RateLimit } from './rate-limit.ts'

/** What a process asks a project's bucket for. */
export interface LeaseRequest {
  /** What it puts back of earlier leases; below zero where it let more through than it had. */
  readonly back: Amount
  /** What requests that wait cost: each is paid for whole, or not at all. */
  readonly costs: readonly Amount[]
  /** What it would like to have in hand for those to come. It gets what is there, or nothing if a cost was refused. */
  readonly ahead: Amount
}

export interface Lease {
  /** For each cost, whether it is paid for. */
  readonly paid: readonly boolean[]
  readonly ahead: Amount
  /** What is left, rounded down. */
  readonly level: Amount
  /** How many processes asked this bucket lately, this one included. */
  readonly processes: number
}

/** How long a process counts as there since it asked last, ms: longer than the pauses of a project with little traffic. */
const PROCESS_REMEMBERED_MS = 10_000

/**
 * A token bucket in entries and bytes, on Redis' own clock. What is put back or owed counts before the bucket is full.
 * The numbers of a unit without limit are zero throughout. The key expires when the bucket is full and nobody asked for
 * it lately: a bucket that is not there is full. What is owed to one that is not there is older than it, and empties it
 * at most.
 *
 * KEYS: the bucket. ARGV: the process, how long it is remembered in ms; per second, burst, back and ahead, each in
 * entries and bytes; the costs, each in entries and bytes. Returns '1' or '0' for each cost in one text, ahead and level
 * in entries and bytes, and the number of processes.
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
local paid, refused = {}, false
for i = 11, #ARGV, 2 do
  local entries, bytes = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local fitsE = rateE == 0 or levelE + rounding >= math.min(entries, burstE)
  local fitsB = rateB == 0 or levelB + rounding >= math.min(bytes, burstB)
  if fitsE and fitsB then
    levelE, levelB = levelE - entries, levelB - bytes
    paid[#paid + 1] = '1'
  else
    refused = true
    paid[#paid + 1] = '0'
  end
end

local aheadE, aheadB = 0, 0
if not refused then
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

/** The buckets in Redis that the API processes lease from. */
export class SharedBuckets {
  readonly #redis: RedisConnection
  readonly #names: Pick<RedisNames, 'rateLimitKey'>
  readonly #processId: string

  /**
   * @param redis a connection that fails fast and has a command timeout
   * @param processId tells this process from the others
   */
  constructor(redis: RedisConnection, names: Pick<RedisNames, 'rateLimitKey'>, processId: string) {
    this.#redis = redis
    this.#names = names
    this.#processId = processId
  }

  /** Rejects with Redis' error; whether the bucket has changed is not known then. */
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
      paid: Array.from(paid, (mark) => mark === '1'),
      ahead: { entries: aheadEntries, bytes: aheadBytes },
      level: { entries, bytes },
      processes,
    }
  }
}

type LeaseNumbers = [number, number, number, number, number]
