import { type ClickHouseAccess, DeadLetterStore } from '@sluice/clickhouse'
import {
  type ProcessReport,
  QueueGauge,
  readProcesses,
  type ServerMemory,
  type ShardReading,
  withoutSecrets,
} from '@sluice/ops'
import { type QueueNames, readRowTotals, type RowTotals, ShardCount } from '@sluice/queue'
import { installationNames, readRedisTimeMs, type RedisConnection, redisServers } from '@sluice/runtime'
import { withClickHouse } from '../clickhouse-session.ts'
import { CliError } from '../errors.ts'
import { withRedis } from '../redis-session.ts'
import type { RedisAccess } from '../service-access.ts'

/** ClickHouse counts dead letters in milliseconds, unless it is unavailable. As long as a silent Redis is awaited. */
const COUNT_TIMEOUT_MS = 5_000

/** The state of one shard, and what became of its rows. */
export interface ShardRows extends ShardReading {
  readonly totals: RowTotals
}

/** What Redis knows at one moment. */
export interface RedisReading {
  readonly shards: readonly ShardRows[]
  readonly servers: readonly ServerMemory[]
  /** Undefined if they could not be read. */
  readonly processes: readonly ProcessReport[] | undefined
  /** When the totals were read, on the monotonic clock. */
  readonly atMs: number
}

export interface DeadLetterCount {
  readonly total: number
  /** Since midnight, UTC. */
  readonly today: number
}

/** What Redis and ClickHouse know at one moment. What could not be read is undefined, and `errors` says why. */
export interface Reading {
  readonly redis: RedisReading | undefined
  readonly deadLetters: DeadLetterCount | undefined
  readonly errors: readonly string[]
}

export interface ReadingSources {
  readonly redis: RedisAccess
  /** The error to report if the address of ClickHouse is not configured. */
  readonly clickhouse: ClickHouseAccess | CliError
  readonly monotonicMs: () => number
}

/**
 * Reads both services at the same time, each over a new connection: after an outage or a failover, the next reading is right again.
 * Failures are part of the result.
 */
export async function readStatus(sources: ReadingSources): Promise<Reading> {
  const errors: string[] = []
  const [redis, deadLetters] = await Promise.all([
    readRedis(sources, errors).catch((error: unknown) => report(error, errors)),
    countDeadLetters(sources.clickhouse).catch((error: unknown) => report(error, errors)),
  ])
  return { redis, deadLetters, errors }
}

/** Reads Redis only: the beginning of the time over which rates are measured. */
export async function readStart(sources: ReadingSources): Promise<Reading> {
  const errors: string[] = []
  const redis = await readRedis(sources, errors).catch((error: unknown) => report(error, errors))
  return { redis, deadLetters: undefined, errors }
}

/** @throws programming errors. What ioredis and the readers throw for an operating error without a class of its own is an `Error`. */
function report(error: unknown, errors: string[]): undefined {
  if (!(error instanceof CliError) && Object(error).constructor !== Error) throw error
  errors.push(messageOf(error))
}

async function countDeadLetters(access: ClickHouseAccess | CliError): Promise<DeadLetterCount> {
  if (access instanceof CliError) throw access
  return withClickHouse(access, (client) => new DeadLetterStore(client).count(), COUNT_TIMEOUT_MS)
}

async function readRedis(
  { redis: access, monotonicMs }: ReadingSources,
  errors: string[],
): Promise<RedisReading> {
  // Nothing is changed, so no replica has to confirm anything.
  return withRedis({ ...access, replicas: 0 }, async (redis) => {
    // A single shard is not recorded: this reads the number only.
    const shards = new ShardCount(redis, access.prefix, 1)
    const offsetMs =
      (await readRedisTimeMs(redis, installationNames(access.prefix).registryPrefix)) - monotonicMs()
    const gauge = new QueueGauge({
      redis,
      servers: () => redisServers(redis),
      shards,
      memoryBytes: access.memoryBytes,
      wallMs: () => monotonicMs() + offsetMs,
      monotonicMs,
    })
    const { shards: readings, servers } = await gauge.read()
    const totals = await readTotals(redis, shards.names, errors)
    const atMs = monotonicMs()
    const processes = await readProcesses(redis, access.prefix).catch((error: unknown) => {
      errors.push(`the processes were not read: ${messageOf(error)}`)
      return undefined
    })
    for (const names of shards.names) {
      const failure = gauge.failureOf(names)
      if (failure !== undefined) errors.push(`shard ${names.shard} was not read: ${failure}`)
    }
    return {
      shards: readings.flatMap((reading) => {
        const itsTotals = totals.get(reading.shard)
        return itsTotals === undefined ? [] : [{ ...reading, totals: itsTotals }]
      }),
      servers,
      processes,
      atMs,
    }
  })
}

/** The totals of the shards that can be read. In a cluster, a node may be unavailable while others are not. */
async function readTotals(
  redis: RedisConnection,
  shards: readonly QueueNames[],
  errors: string[],
): Promise<ReadonlyMap<number, RowTotals>> {
  const totals = new Map<number, RowTotals>()
  await Promise.all(
    shards.map(async ({ shard, totalsKey }) => {
      try {
        totals.set(shard, readRowTotals(await redis.hgetall(totalsKey)))
      } catch (error) {
        errors.push(`the rows of shard ${shard} were not read: ${messageOf(error)}`)
      }
    }),
  )
  return totals
}

const messageOf = (error: unknown): string =>
  error instanceof CliError
    ? error.message
    : withoutSecrets(error instanceof Error ? error.message : 'unknown')
