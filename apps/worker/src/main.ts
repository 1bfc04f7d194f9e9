import {
  clickhouseAccessFrom,
  ClickHouseMonitor,
  connectClickHouse,
  DeadLetters,
  FrameInserter,
  QueryWatch,
  RowInserter,
  RunningQueries,
  StoredRows,
  watchLimits,
} from '@sluice/clickhouse'
import { FetchMonitor, shardNames } from '@sluice/queue'
import { IdSource } from '@sluice/rows'
import { connectRedis, createLogger, DurabilityCheck, runProcess, startOpsServer } from '@sluice/runtime'
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
    const fetchMonitor = new FetchMonitor(monotonicMs)
    const access = clickhouseAccessFrom(config)
    const connectionsMax = workerLimits.insertsInFlightMax * 2
    const clickhouse = connectClickHouse(access, {
      requestTimeoutMs: workerLimits.insertTimeoutMs,
      connectionsMax,
    })
    const questions = connectClickHouse(access, {
      requestTimeoutMs: watchLimits.questionTimeoutMs,
      // Each query in flight has one question at a time.
      connectionsMax,
      reusesConnections: false,
    })
    const clickhouseMonitor = new ClickHouseMonitor(monotonicMs)
    const watch = new QueryWatch({
      runningQueries: new RunningQueries(questions, { isCluster: access.cluster !== undefined }),
      monitor: clickhouseMonitor,
      monotonicMs,
    })
    const ids = new IdSource(Date.now)
    const makeId = (): string => ids.next()
    const stopping = new AbortController()
    const retrier = new Retrier(logger, stopping.signal)
    const insertOnce = {
      areTokensAtomic: config.CLICKHOUSE_CLUSTER !== undefined,
      sleep,
      onTokenWithoutRows: (token: string) =>
        logger.warn({ token }, 'ClickHouse has a token without its rows'),
    }
    const dependencies = {
      config,
      redis,
      fetchMonitor,
      rowInserter: new RowInserter({
        ...insertOnce,
        frameInserter: new FrameInserter(clickhouse, watch),
        storedRows: new StoredRows(clickhouse, watch),
        lingerMaxMs: workerLimits.insertLingerMaxMs,
        monotonicMs,
      }),
      insertPermits: new Semaphore(workerLimits.insertsInFlightMax, stopping.signal),
      splitPermits: new Semaphore(workerLimits.insertsInFlightMax, stopping.signal),
      deadLetters: new DeadLetters(clickhouse, makeId, Date.now, insertOnce, watch),
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
        ...clickhouseMonitor.readiness.reasons,
        ...durability.readiness.reasons,
        ...retrier.failures,
      ]
      return { ready: reasons.length === 0, reasons }
    }
    durability.start()
    const ops = await startOpsServer({
      host: config.OPS_HOST,
      port: config.OPS_PORT,
      readiness,
      isAlive: () => fetchMonitor.isAlive && clickhouseMonitor.isAlive,
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
        await clickhouse.close()
        await questions.close()
        durability.stop()
        await ops.close()
        redis.disconnect()
      },
    }
  },
})
