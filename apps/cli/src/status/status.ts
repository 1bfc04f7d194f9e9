import { type ClickHouseAccess, DeadLetterStore } from '@sluice/clickhouse'
import {
  type MemoryTrend,
  type ProcessReport,
  QueueGauge,
  readProcesses,
  type RecentLag,
  type ServerMemory,
  type ShardReading,
  withoutSecrets,
} from '@sluice/ops'
import { Registry, type RegistryState } from '@sluice/projects'
import { queuedRows, readRowTotals, type RowTotals, ShardCount } from '@sluice/queue'
import { installationNames, processClock, readRedisTimeMs, redisServers } from '@sluice/runtime'
import { withClickHouse } from '../clickhouse-session.ts'
import { CliError } from '../errors.ts'
import { withRedis } from '../redis-session.ts'
import type { RedisAccess } from '../service-access.ts'

/** ClickHouse counts dead letters in milliseconds. As long as a silent Redis is awaited. */
const COUNT_TIMEOUT_MS = 5_000

export interface ShardRows extends ShardReading {
  readonly totals: RowTotals
}

export interface RedisReading {
  readonly shards: readonly ShardRows[]
  readonly servers: readonly ServerMemory[]
  readonly processes: readonly ProcessReport[] | undefined
  readonly registry: RegistryState | undefined
  /** When the totals were read, on the monotonic clock. */
  readonly atMs: number
}

/** What Redis and ClickHouse know at one moment. What could not be read is undefined, and `errors` says why. */
export interface Reading {
  readonly redis: RedisReading | undefined
  /** `today`: since midnight, UTC. */
  readonly deadLetters: { readonly total: number; readonly today: number } | undefined
  readonly errors: readonly string[]
}

/**
 * Reads both services at the same time, each over a new connection: after an outage or a failover, the next reading is right again.
 * Failures are part of the result.
 *
 * @throws programming errors. What ioredis and the readers throw for an operating error without a class of its own is an `Error`.
 */
export async function readStatus(
  access: RedisAccess,
  clickhouse: () => Promise<ClickHouseAccess>,
): Promise<Reading> {
  const errors: string[] = []
  const report = (error: unknown): undefined => {
    if (!(error instanceof CliError) && Object(error).constructor !== Error) throw error
    errors.push(messageOf(error))
  }
  const countDeadLetters = async () =>
    withClickHouse(await clickhouse(), (client) => new DeadLetterStore(client).count(), COUNT_TIMEOUT_MS)
  const [redis, deadLetters] = await Promise.all([
    readRedis(access, errors).catch(report),
    countDeadLetters().catch(report),
  ])
  return { redis, deadLetters, errors }
}

const monotonicMs = (): number => processClock.nowMs()

/** @param errors gets what could not be read */
export async function readRedis(access: RedisAccess, errors: string[]): Promise<RedisReading> {
  /** In a cluster, a node may be unavailable while others are not. */
  const report = (what: string) => (error: unknown) =>
    void errors.push(`${what} were not read: ${messageOf(error)}`)
  // Nothing is changed, so no replica has to confirm anything.
  return withRedis({ ...access, replicas: 0 }, async (redis) => {
    // A single shard is not recorded: this reads the number only.
    const shards = new ShardCount(redis, access.prefix, 1)
    const redisMs = await readRedisTimeMs(redis, installationNames(access.prefix).registryPrefix)
    const offsetMs = redisMs - monotonicMs()
    const clocks = { monotonicMs, wallMs: () => monotonicMs() + offsetMs }
    const { memoryBytes } = access
    const gauge = new QueueGauge({
      redis,
      servers: () => redisServers(redis),
      shards,
      memoryBytes,
      ...clocks,
    })
    const read = await gauge.read()
    const rows = await Promise.all(
      read.shards.map(async (reading): Promise<ShardRows[]> => {
        const totalsKey = shards.names.find(({ shard }) => shard === reading.shard)?.totalsKey ?? ''
        const hash = await redis.hgetall(totalsKey).catch(report(`the rows of shard ${reading.shard}`))
        return hash === undefined ? [] : [{ ...reading, totals: readRowTotals(hash) }]
      }),
    )
    const atMs = monotonicMs()
    const processes = await readProcesses(redis, access.prefix).catch(report('the processes'))
    const { identity } = new Registry(redis, installationNames(access.prefix).registryPrefix)
    const registry = await identity.read().catch(report('the projects'))
    for (const names of shards.names) {
      const failure = gauge.failureOf(names)
      if (failure !== undefined) errors.push(`shard ${names.shard} was not read: ${failure}`)
    }
    return { shards: rows.flat(), servers: read.servers, processes, registry, atMs }
  })
}

const messageOf = (error: unknown): string =>
  error instanceof CliError
    ? error.message
    : withoutSecrets(error instanceof Error ? error.message : 'unknown')

/** Entries per second between two readings: added to the queue, stored in the table of logs, and stored as dead letters. */
type Rates = Readonly<Record<'intervalS' | 'added' | 'inserted' | 'deadLettered', number>>

/** The state of one shard or of all. Chunks are counted by state. */
export interface QueueStatus extends Omit<ShardReading, 'shard'> {
  /** Rows in the queue, including the rows of failed chunks. */
  readonly rows: number
  readonly rates: Rates | undefined
}

/** Everything that `sluice status` shows. What could not be read is undefined, and `errors` says why. */
export interface Status extends Pick<Reading, 'deadLetters' | 'errors'> {
  /** By the clock of this machine, ms since 1970. */
  readonly atMs: number
  readonly queue: QueueStatus | undefined
  readonly shards: readonly (QueueStatus & { readonly shard: number })[]
  /** Of all workers. Undefined if none has stored a chunk in the last minute. */
  readonly lag: RecentLag | undefined
  /** `headroomS`: time until the limit at the rate of the readings so far. Infinity if the memory does not grow. */
  readonly servers: readonly (ServerMemory & { readonly headroomS: number })[]
  readonly processes: readonly ProcessReport[] | undefined
  /** Whether the projects in Redis are those of the installation. */
  readonly registry: RegistryState | undefined
}

export function statusOf(
  { redis, deadLetters, errors }: Reading,
  before: Reading | undefined,
  trend: Pick<MemoryTrend, 'headroomS'>,
  atMs: number,
): Status {
  const shards = (redis?.shards ?? []).map(({ totals, ...reading }) =>
    Object.assign(reading, {
      // A worker may confirm a batch between the two readings of a shard.
      rows: Math.max(0, queuedRows(totals)),
      rates: ratesOf(reading.shard, redis, before?.redis),
    }),
  )
  return {
    atMs,
    queue: redis && sumOf(shards),
    shards,
    lag: lagOf(redis?.processes ?? []),
    deadLetters,
    servers: redis?.servers.map((memory) => ({ ...memory, headroomS: trend.headroomS(memory) })) ?? [],
    processes: redis?.processes,
    registry: redis?.registry,
    errors,
  }
}

/** Undefined without an earlier reading of the shard, and if its totals have gone back: Redis was restored or replaced. */
function ratesOf(shard: number, now: RedisReading | undefined, before: RedisReading | undefined) {
  const [totals, earlier] = [now, before].map((at) => at?.shards.find((each) => each.shard === shard)?.totals)
  if (totals === undefined || earlier === undefined) return undefined
  const intervalS = ((now?.atMs ?? 0) - (before?.atMs ?? 0)) / 1_000
  const rate = (name: keyof RowTotals): number => (totals[name] - earlier[name]) / intervalS
  const rates = {
    intervalS,
    added: rate('added'),
    inserted: rate('inserted'),
    deadLettered: rate('deadLettered'),
  }
  return Object.values(rates).every((value) => value >= 0) ? rates : undefined
}

/** The sums of some members. */
function totalsOf<Name extends string>(items: readonly Readonly<Record<Name, number>>[], ...names: Name[]) {
  const sums = names.map((name) => [name, items.reduce((sum, item) => sum + item[name], 0)])
  return Object.fromEntries(sums) as Record<Name, number>
}

function sumOf(shards: readonly QueueStatus[]): QueueStatus {
  const rates = shards.flatMap((shard) => shard.rates ?? [])
  const { intervalS } = rates[0] ?? {}
  const areKnown = intervalS !== undefined && rates.length === shards.length
  return {
    ...totalsOf(shards, 'rows', 'waiting', 'delayed', 'inHand', 'failed'),
    oldestAgeS: Math.max(0, ...shards.map(({ oldestAgeS }) => oldestAgeS)),
    rates: areKnown ? { intervalS, ...totalsOf(rates, 'added', 'inserted', 'deadLettered') } : undefined,
  }
}

function lagOf(processes: readonly ProcessReport[]): RecentLag | undefined {
  const lags = processes.flatMap(({ lag, isSilent }) => (isSilent ? [] : (lag ?? [])))
  const chunks = lags.reduce((sum, lag) => sum + lag.chunks, 0)
  if (chunks === 0) return undefined
  return {
    chunks,
    meanS: lags.reduce((sum, lag) => sum + lag.meanS * lag.chunks, 0) / chunks,
    maxS: Math.max(...lags.map(({ maxS }) => maxS)),
  }
}

export function statusJson({ atMs, ...status }: Status): string {
  return JSON.stringify({ at: new Date(atMs).toISOString(), ...status }, (_key, value: unknown) => {
    if (value === undefined) return null
    return typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value
  })
}
