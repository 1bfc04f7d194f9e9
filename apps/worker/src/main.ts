import {
  clickhouseAccessFrom,
  connectClickHouse,
  connectRedis,
  createLogger,
  runProcess,
  startOpsServer,
} from '@sluice/runtime'
import { IdSource, redisNames } from '@sluice/schema'
import { BatchLedger } from './batch-ledger.ts'
import { BatchSplitter } from './batch-splitter.ts'
import { ChunkConsumer } from './chunk-consumer.ts'
import { Collector } from './collector.ts'
import { readWorkerConfig } from './config.ts'
import { DeadLetters } from './dead-letters.ts'
import { Delivery } from './delivery.ts'
import { Inserter } from './inserter.ts'
import { workerLimits } from './limits.ts'
import { Persistence } from './persistence.ts'
import { Pump } from './pump.ts'

const config = readWorkerConfig(process.env)
const logger = createLogger('worker', config.LOG_LEVEL)

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    const names = redisNames(config.SLUICE_PREFIX)
    const redis = connectRedis(config.REDIS_URL, { failFast: false })
    redis.on('error', (error: Error) => logger.warn({ err: error }, 'redis connection failed'))
    const clickhouse = connectClickHouse(clickhouseAccessFrom(config), {
      requestTimeoutMs: workerLimits.insertTimeoutMs,
      connectionsMax: workerLimits.insertsInFlightMax * 2,
    })
    const ids = new IdSource(Date.now)
    const makeId = (): string => ids.next()
    const stopping = new AbortController()
    const ledger = new BatchLedger(redis, names)
    const inserter = new Inserter(clickhouse)
    const persistence = new Persistence(logger, stopping.signal)
    const deadLetters = new DeadLetters(clickhouse, makeId, Date.now)
    const delivery = new Delivery({
      ledger,
      inserter,
      splitter: new BatchSplitter({ ledger, inserter, deadLetters, persistence }),
      persistence,
      loadChunk: (id) => consumer.load(id),
      makeId,
      now: () => performance.now(),
      takeOverMs: config.LOCK_DURATION_MS,
    })
    const collector = new Collector({
      rowsMax: config.BATCH_ROWS_MAX,
      bytesMax: workerLimits.batchBytesMax,
      waitMs: config.BATCH_WAIT_MS,
    })
    const pump = new Pump(collector, delivery)
    const consumer = new ChunkConsumer({
      redis,
      names,
      lockDurationMs: config.LOCK_DURATION_MS,
      logger,
      deliver: (chunk) => pump.deliver(chunk),
      onCompleted: (chunkId) => delivery.completed(chunkId),
    })
    const readiness = (): { ready: boolean; reasons: string[] } => {
      const reasons = redis.status === 'ready' ? [] : [`the connection to Redis is ${redis.status}`]
      if (persistence.lastFailure !== undefined) reasons.push(persistence.lastFailure)
      return { ready: reasons.length === 0, reasons }
    }
    const ops = await startOpsServer({ host: config.OPS_HOST, port: config.OPS_PORT, readiness })
    logger.info({ opsUrl: ops.url }, 'working')

    return {
      stop: async () => {
        const handBack = setTimeout(
          () => stopping.abort(),
          Math.max(0, config.SHUTDOWN_DEADLINE_MS - workerLimits.handBackMs),
        )
        pump.flush()
        await consumer.close()
        clearTimeout(handBack)
        await clickhouse.close()
        await ops.close()
        redis.disconnect()
      },
    }
  },
})
