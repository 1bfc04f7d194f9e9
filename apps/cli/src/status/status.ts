import type { MemoryTrend, ProcessReport, RecentLag, ServerMemory } from '@sluice/ops'
import { queuedRows } from '@sluice/queue'
import type { DeadLetterCount, Reading, RedisReading, ShardRows } from './reading.ts'

/** Entries per second between two readings. */
interface Rates {
  readonly intervalS: number
  /** Added to the queue. */
  readonly added: number
  /** Stored in the table of logs. */
  readonly inserted: number
  readonly deadLettered: number
}

/** The state of one shard or of all. */
export interface QueueStatus {
  /** Rows in the queue, those of failed chunks included. */
  readonly rows: number
  /** Chunks, by state. */
  readonly waiting: number
  readonly delayed: number
  readonly inHand: number
  readonly failed: number
  readonly oldestAgeS: number
  /** Undefined before the second reading. */
  readonly rates: Rates | undefined
}

export interface ServerStatus extends ServerMemory {
  /** Time until the limit at the rate of the readings so far, five minutes at most. Undefined if the memory does not grow. */
  readonly headroomS: number | undefined
}

interface ShardStatus extends QueueStatus {
  readonly shard: number
}

/** Everything that `sluice status` shows. What could not be read is undefined, and `errors` says why. */
export interface Status {
  /** By the clock of this machine, ms since 1970. */
  readonly atMs: number
  readonly queue: QueueStatus | undefined
  readonly shards: readonly ShardStatus[]
  /** Of all workers. Undefined if none has stored a chunk in the last minute. */
  readonly lag: RecentLag | undefined
  readonly deadLetters: DeadLetterCount | undefined
  readonly servers: readonly ServerStatus[]
  readonly processes: readonly ProcessReport[] | undefined
  readonly errors: readonly string[]
}

/** @param before an earlier reading, for the rates */
export function statusOf(
  { redis, deadLetters, errors }: Reading,
  before: Reading | undefined,
  trend: Pick<MemoryTrend, 'headroomS'>,
  atMs: number,
): Status {
  const shards = (redis?.shards ?? []).map((shard) => shardStatus(shard, rateOf(shard, redis, before?.redis)))
  return {
    atMs,
    queue: redis && sumOf(shards),
    shards,
    lag: lagOf(redis?.processes ?? []),
    deadLetters,
    servers: (redis?.servers ?? []).map((memory) => serverStatus(memory, trend.headroomS(memory))),
    processes: redis?.processes,
    errors,
  }
}

function shardStatus({ totals, ...reading }: ShardRows, rates: Rates | undefined): ShardStatus {
  // A worker may confirm a batch between the two readings of a shard.
  return { ...reading, rows: Math.max(0, queuedRows(totals)), rates }
}

function serverStatus({ server, usedBytes, limitBytes }: ServerMemory, headroomS: number): ServerStatus {
  return { server, usedBytes, limitBytes, headroomS: Number.isFinite(headroomS) ? headroomS : undefined }
}

/** Undefined without an earlier reading of the shard, and if its totals have gone back: Redis was restored or replaced. */
function rateOf(
  { shard, totals }: ShardRows,
  now: RedisReading | undefined,
  before: RedisReading | undefined,
): Rates | undefined {
  const earlier = before?.shards.find((each) => each.shard === shard)?.totals
  const intervalS = ((now?.atMs ?? 0) - (before?.atMs ?? 0)) / 1_000
  if (earlier === undefined || intervalS <= 0) return undefined
  const grown = [
    totals.added - earlier.added,
    totals.inserted - earlier.inserted,
    totals.deadLettered - earlier.deadLettered,
  ] as const
  if (grown.some((count) => count < 0)) return undefined
  const [added, inserted, deadLettered] = grown
  return {
    intervalS,
    added: added / intervalS,
    inserted: inserted / intervalS,
    deadLettered: deadLettered / intervalS,
  }
}

function sumOf(shards: readonly QueueStatus[]): QueueStatus {
  const sum = (of: (shard: QueueStatus) => number): number =>
    shards.reduce((total, shard) => total + of(shard), 0)
  const [first] = shards
  const hasRates = shards.every(({ rates }) => rates !== undefined)
  return {
    rows: sum(({ rows }) => rows),
    waiting: sum(({ waiting }) => waiting),
    delayed: sum(({ delayed }) => delayed),
    inHand: sum(({ inHand }) => inHand),
    failed: sum(({ failed }) => failed),
    oldestAgeS: Math.max(0, ...shards.map(({ oldestAgeS }) => oldestAgeS)),
    rates:
      first?.rates === undefined || !hasRates
        ? undefined
        : {
            intervalS: first.rates.intervalS,
            added: sum(({ rates }) => rates?.added ?? 0),
            inserted: sum(({ rates }) => rates?.inserted ?? 0),
            deadLettered: sum(({ rates }) => rates?.deadLettered ?? 0),
          },
  }
}

function lagOf(processes: readonly ProcessReport[]): RecentLag | undefined {
  const lags = processes.flatMap(({ lag }) => (lag === undefined ? [] : [lag]))
  const chunks = lags.reduce((sum, lag) => sum + lag.chunks, 0)
  if (chunks === 0) return undefined
  return {
    chunks,
    meanS: lags.reduce((sum, lag) => sum + lag.meanS * lag.chunks, 0) / chunks,
    maxS: Math.max(...lags.map(({ maxS }) => maxS)),
  }
}

/** The status as one line of JSON. What is unknown is null. */
export function statusJson({ atMs, ...status }: Status): string {
  return JSON.stringify({ at: new Date(atMs).toISOString(), ...status }, (_key, value: unknown) => {
    if (value === undefined) return null
    return typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value
  })
}
