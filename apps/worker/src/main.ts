import {
  clickhouseAccessFrom,
  ClickHouseClock,
  connectClickHouse,
  DeadLetters,
  FrameInserter,
  RowInserter,
  StoredRows,
} from '@sluice/clickhouse'
import { FetchMonitor, shardNames } from '@sluice/queue'
import { IdSource } from '@sluice/rows'
import {
  connectRedis,
  createLogger,
  DurabilityCheck,
  installationNames,
  RedisClock,
  runProcess,
  startOpsServer,
} from '@sluice/runtime'
import { setTimeout as sleep } from 'node:timers/promises'
import { readWorkerConfig } from './config.ts'
import { workerLimits } from './limits.ts'
import { Retrier } from './retrier.ts'
import { Semaphore } from './semaphore.ts'
import { startShard } from './shard.ts'

const config = readWorkerConfig(process.env)
const logger = createLogger('worker', config.LOG_LEVEL)
const monotonicMs = (): number => performance.now()

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    const redis = connectRedis(config.REDIS_URL, {
      failFast: false,
      tlsCaFile: config.REDIS_TLS_CA_FILE,
      sentinelPassword: config.REDIS_SENTINEL_PASSWORD,
    })
    redis.on('error', (error: Error) => logger.warn({ err: error }, 'redis connection failed'))
    const durability = new DurabilityCheck({ redis, allowUnsafe: config.REDIS_ALLOW_UNSAFE, logger })
    const clock = new RedisClock({
      redis,
      key: installationNames(config.SLUICE_PREFIX).registryPrefix,
      logger,
      wallMs: Date.now,
      monotonicMs,
    })
    const fetchMonitor = new FetchMonitor(monotonicMs)
    const clickhouse = connectClickHouse(clickhouseAccessFrom(config), {
      requestTimeoutMs: workerLimits.insertTimeoutMs,
      connectionsMax: workerLimits.insertsInFlightMax * 2,
    })
    const clickhouseClock = new ClickHouseClock({
      client: clickhouse,
      wallMs: clock.nowMs,
      monotonicMs,
      logger,
    })
    // Ids of batches and dead letters only need to be unique, and nothing reads the time in them.
    const ids = new IdSource(Date.now)
    const makeId = (): string => ids.next()
    const stopping = new AbortController()
    const retrier = new Retrier(logger, stopping.signal)
    const insertOnce = {
      areTokensAtomic: config.CLICKHOUSE_CLUSTER !== undefined,
      sleep,
      beforeAttempt: () => clickhouseClock.check(),
      onTokenWithoutRows: (token: string) =>
        logger.warn({ token }, 'ClickHouse has a token without its rows'),
    }
    const dependencies = {
      config,
      redis,
      fetchMonitor,
      rowInserter: new RowInserter({
        ...insertOnce,
        frameInserter: new FrameInserter(clickhouse),
        storedRows: new StoredRows(clickhouse, clock.nowMs),
        lingerMaxMs: workerLimits.insertLingerMaxMs,
        monotonicMs,
      }),
      insertPermits: new Semaphore(workerLimits.insertsInFlightMax, stopping.signal),
      splitPermits: new Semaphore(workerLimits.insertsInFlightMax, stopping.signal),
      deadLetters: new DeadLetters(clickhouse, makeId, clock.nowMs, insertOnce),
      signal: stopping.signal,
      retrier,
      makeId,
      logger,
    }
    const shards = shardNames(config.SLUICE_PREFIX, config.QUEUE_SHARDS).map((names) =>
      startShard(names, dependencies),
    )
    const readiness = (): { ready: boolean; reasons: string[] } => {
      const reasons = [
        ...(redis.status === 'ready' ? [] : [`the connection to Redis is ${redis.status}`]),
        ...fetchMonitor.readiness.reasons,
        ...durability.readiness.reasons,
        ...clock.readiness.reasons,
        ...clickhouseClock.readiness.reasons,
        ...retrier.failures,
      ]
      return { ready: reasons.length === 0, reasons }
    }
    durability.start()
    clock.start()
    clickhouseClock.start()
    const ops = await startOpsServer({
      host: config.OPS_HOST,
      port: config.OPS_PORT,
      readiness,
      isAlive: () => fetchMonitor.isAlive,
    })
    logger.info({ opsUrl: ops.url }, 'working')

    return {
      stop: async () => {
        const requeue = setTimeout(
          () => stopping.abort(),
          Math.max(0, config.SHUTDOWN_DEADLINE_MS - workerLimits.requeueMs),
        )
        for (const shard of shards) shard.flush()
        await Promise.all(shards.map((shard) => shard.close()))
        clearTimeout(requeue)
        clickhouseClock.stop()
        await clickhouse.close()
        durability.stop()
        clock.stop()
        await ops.close()
        redis.disconnect()
      },
    }
  },
})
