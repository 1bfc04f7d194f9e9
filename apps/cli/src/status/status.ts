import { type ClickHouseAccess, DeadLetterStore } from '@sluice/clickhouse'
import { type memoryTrend, QueueGauge, readProcesses, type ShardReading, withoutSecrets } from '@sluice/ops'
import { Registry } from '@sluice/projects'
import { queuedRows, ShardCount } from '@sluice/queue'
import { installationNames, processClock, readRedisTimeMs, redisServers } from '@sluice/runtime'
import { withClickHouse } from '../clickhouse-session.ts'
import { isForUser } from '../errors.ts'
import { withRedis } from '../redis-session.ts'
import type { RedisAccess } from '../service-access.ts'
import { escapeJsonControls } from '../terminal.ts'

/** ClickHouse counts dead letters in milliseconds. As long as a silent Redis is awaited. */
const COUNT_TIMEOUT_MS = 5_000

/** What Redis and ClickHouse know at one moment. What could not be read is undefined, and `errors` says why. */
export type Reading = Awaited<ReturnType<typeof readStatus>>
export type RedisReading = Awaited<ReturnType<typeof readRedis>>

/**
 * Reads both services at the same time, each over a new connection: after an outage or a failover, the next reading is right again.
 * Failures are part of the result.
 *
 * @throws programming errors. What ioredis and the readers throw for an operating error without a class of its own is an `Error`.
 */
export async function readStatus(access: RedisAccess, clickhouse: () => Promise<ClickHouseAccess>) {
  const errors: string[] = []
  const report = (error: unknown): undefined => {
    if (!isForUser(error) && Object(error).constructor !== Error) throw error
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
export async function readRedis(access: RedisAccess, errors: string[]) {
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
    /** When the totals were read, on the monotonic clock. */
    const atMs = monotonicMs()
    const processes = await readProcesses(redis, access.prefix).catch(report('the processes'))
    const { identity } = new Registry(redis, installationNames(access.prefix).registryPrefix)
    const registry = await identity.read().catch(report('the projects'))
    for (const names of shards.names) {
      const failure = gauge.failureOf(names)
      if (failure !== undefined) errors.push(`shard ${names.shard} was not read: ${failure}`)
    }
    return { shards: read.shards, servers: read.servers, processes, registry, atMs }
  })
}

const messageOf = (error: unknown): string =>
  isForUser(error) ? error.message : withoutSecrets(error instanceof Error ? error.message : 'unknown')

/** Everything that `sluice status` shows. What could not be read is undefined, and `errors` says why. */
export type Status = ReturnType<typeof statusOf>
export type QueueStatus = ReturnType<typeof queueOf>

/** @param atMs by the clock of this machine, since 1970 */
export function statusOf(
  { redis, deadLetters, errors }: Reading,
  before: Reading | undefined,
  headroomS: ReturnType<typeof memoryTrend>,
  atMs: number,
) {
  const queue = (shards: readonly ShardReading[]) => queueOf(shards, redis?.atMs ?? 0, before?.redis)
  return {
    atMs,
    queue: redis && queue(redis.shards),
    shards: redis?.shards.map((each) => ({ shard: each.shard, ...queue([each]) })) ?? [],
    lag: lagOf(redis?.processes),
    deadLetters,
    // Until the limit at the rate of the readings so far. Infinity if the memory does not grow.
    servers: redis?.servers.map((memory) => ({ ...memory, headroomS: headroomS(memory) })) ?? [],
    processes: redis?.processes,
    registry: redis?.registry,
    errors,
  }
}

/** The state of one shard or of all. Chunks are counted by state. */
function queueOf(shards: readonly ShardReading[], atMs: number, before: RedisReading | undefined) {
  const sum = (valueOf: (shard: ShardReading) => number): number =>
    shards.reduce((total, shard) => total + valueOf(shard), 0)
  return {
    // With the rows of failed chunks. A worker may confirm a batch between the two readings of a shard.
    rows: sum(({ totals }) => Math.max(0, queuedRows(totals))),
    waiting: sum(({ waiting }) => waiting),
    delayed: sum(({ delayed }) => delayed),
    inHand: sum(({ inHand }) => inHand),
    failed: sum(({ failed }) => failed),
    oldestAgeS: Math.max(0, ...shards.map(({ oldestAgeS }) => oldestAgeS)),
    rates: ratesOf(shards, atMs, before),
  }
}

/**
 * Entries per second: added to the queue, stored in the table of logs, and stored as dead letters. Undefined without an earlier reading of
 * each shard, and if totals have gone back: Redis was restored or replaced.
 */
function ratesOf(shards: readonly ShardReading[], atMs: number, before: RedisReading | undefined) {
  if (before === undefined || shards.length === 0) return undefined
  const intervalS = (atMs - before.atMs) / 1_000
  const rates = { intervalS, added: 0, inserted: 0, deadLettered: 0 }
  for (const { shard, totals } of shards) {
    const earlier = before.shards.find((each) => each.shard === shard)?.totals
    for (const name of ['added', 'inserted', 'deadLettered'] as const) {
      if (earlier === undefined || totals[name] < earlier[name]) return undefined
      rates[name] += (totals[name] - earlier[name]) / intervalS
    }
  }
  return rates
}

/** Of all workers. Undefined if none has stored a chunk in the last minute. */
function lagOf(processes: RedisReading['processes'] = []) {
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
  const object = { at: new Date(atMs).toISOString(), ...status }
  const json = JSON.stringify(object, (_key, value: unknown) =>
    typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : (value ?? null),
  )
  return escapeJsonControls(json)
}
