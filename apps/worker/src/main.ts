import {
  clickhouseAccessFrom,
  connectClickHouse,
  connectRedis,
  createLogger,
  runProcess,
  startOpsServer,
} from '@sluice/runtime'
import { IdSource, shardNames } from '@sluice/schema'
import { setTimeout as sleep } from 'node:timers/promises'
import { readWorkerConfig } from './config.ts'
import { DeadLetters } from './dead-letters.ts'
import { Inserter } from './inserter.ts'
import { workerLimits } from './limits.ts'
import { Persistence } from './persistence.ts'
import { Sender } from './sender.ts'
import { startShard } from './shard.ts'
import { Slots } from './slots.ts'
import { StoredRows } from './stored-rows.ts'

const config = readWorkerConfig(process.env)
const logger = createLogger('worker', config.LOG_LEVEL)

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
    const clickhouse = connectClickHouse(clickhouseAccessFrom(config), {
      requestTimeoutMs: workerLimits.insertTimeoutMs,
      connectionsMax: workerLimits.insertsInFlightMax * 2,
    })
    const ids = new IdSource(Date.now)
    const makeId = (): string => ids.next()
    const stopping = new AbortController()
    const persistence = new Persistence(logger, stopping.signal)
    const resending = { areTokensAtomic: config.CLICKHOUSE_CLUSTER !== undefined, sleep, logger }
    const dependencies = {
      config,
      redis,
      sender: new Sender({
        inserter: new Inserter(clickhouse),
        storedRows: new StoredRows(clickhouse),
        now: () => performance.now(),
        ...resending,
      }),
      slots: new Slots(workerLimits.insertsInFlightMax, stopping.signal),
      unpacking: new Slots(workerLimits.insertsInFlightMax, stopping.signal),
      deadLetters: new DeadLetters(clickhouse, makeId, Date.now, resending),
      signal: stopping.signal,
      persistence,
      makeId,
      logger,
    }
    const shards = shardNames(config.SLUICE_PREFIX, config.QUEUE_SHARDS).map((names) =>
      startShard(names, dependencies),
    )
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
        for (const shard of shards) shard.flush()
        await Promise.all(shards.map((shard) => shard.close()))
        clearTimeout(handBack)
        await clickhouse.close()
        await ops.close()
        redis.disconnect()
      },
    }
  },
})
