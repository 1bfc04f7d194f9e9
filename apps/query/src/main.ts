import { openRedisAccess } from '@sluice/access'
import { clickhouseAccessFrom, connectClickHouse, LogReader } from '@sluice/clickhouse'
import { Reporting, RetryRequests } from '@sluice/ops'
import { Sessions } from '@sluice/projects'
import { Completeness, ShardCount } from '@sluice/queue'
import { createLogger, processClock as clock, readSettingsOrExit, runProcess } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import packageJson from '../package.json' with { type: 'json' }
import { ReadAccess } from './access.ts'
import { buildApp } from './app.ts'
import { readQueryConfig } from './config.ts'
import { readExplorer } from './explorer.ts'
import { Pipeline } from './pipeline.ts'
import { exportQueries } from './query-metrics.ts'
import { QuerySlots } from './query-slots.ts'
import { Tails } from './tail/tails.ts'

/** Below the time for which a credential is trusted. */
const REDIS_TIMEOUT_MS = 1_000
/** Within the timeout. */
const REPLICATION_WAIT_MS = 800
/** ClickHouse says why a query ends before the client gives it up. */
const ANSWER_MARGIN_MS = 5_000
/** Queries of tails and lookups, which take no slot. */
const UNCOUNTED_QUERIES_MAX = 16

const config = readSettingsOrExit('query', () => readQueryConfig(process.env))
const logger = createLogger('query', config.LOG_LEVEL, config.LOG_FORMAT)
const monotonicMs = (): number => clock.nowMs()

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async (resources) => {
    const { clock: redisClock, ...access } = openRedisAccess({
      resources,
      config,
      scope: 'read',
      commandTimeoutMs: REDIS_TIMEOUT_MS,
      replicationWaitMs: REPLICATION_WAIT_MS,
      monotonicMs,
      logger,
    })
    const { redis, registryPrefix, durable, durability, registryCheck, usage, authenticator } = access
    const wallMs = redisClock.nowMs

    const clickhouse = resources.closeAtEnd(
      connectClickHouse(clickhouseAccessFrom(config), {
        requestTimeoutMs: config.QUERY_TIME_MAX_MS + ANSWER_MARGIN_MS,
        connectionsMax: config.QUERIES_MAX + UNCOUNTED_QUERIES_MAX,
      }),
    )
    const reader = new LogReader(clickhouse, {
      timeMs: config.QUERY_TIME_MAX_MS,
      rowsMax: config.QUERY_ROWS_READ_MAX,
      bytesMax: config.QUERY_BYTES_READ_MAX,
      memoryBytesMax: config.QUERY_MEMORY_BYTES_MAX,
    })
    const completePoint = new Completeness({
      durable,
      prefix: config.SLUICE_PREFIX,
      shards: config.QUEUE_SHARDS,
      redisMs: redisClock.knownMs,
      wallMs: Date.now,
    })

    const shards = new ShardCount(redis, config.SLUICE_PREFIX, config.QUEUE_SHARDS)
    const reporting = resources.stopAtEnd(
      new Reporting({
        role: 'query',
        version: packageJson.version,
        processId: randomUUID(),
        config,
        redis,
        shards,
        registry: registryCheck,
        checks: [redisClock],
        wallMs,
        monotonicMs,
        logger,
      }),
    )
    const { metrics, readiness } = reporting
    const slots = new QuerySlots(config.QUERIES_MAX, config.PROJECT_QUERIES_MAX)
    const pipeline = resources.stopAtEnd(
      new Pipeline({
        redis,
        gauge: reporting.gauge,
        shards,
        wallMs,
        monotonicMs,
        logger,
        prefix: config.SLUICE_PREFIX,
        completePoint,
      }),
    )
    const tails = new Tails({ reader, completePoint, logger })
    const app = buildApp({
      access: new ReadAccess(authenticator, new Sessions(redis, registryPrefix)),
      reader,
      completePoint,
      slots,
      tails,
      pipeline,
      retries: new RetryRequests(redis, config.SLUICE_PREFIX),
      metrics: exportQueries(metrics, { slots, tails, pipeline }),
      timeMaxMs: config.QUERY_TIME_MAX_MS,
      explorer: readExplorer(fileURLToPath(new URL('../../explorer/dist', import.meta.url))),
      wallMs,
      clock,
      logger,
      readiness,
      trustedProxies: config.trustedProxies,
    })

    redisClock.start()
    const url = await app.listen({ host: config.QUERY_HOST, port: config.QUERY_PORT })
    // Released first: requests in flight need all of the above.
    resources.defer(() => app.close())
    for (const part of [usage, durability, registryCheck]) part.start()
    const opsUrl = await reporting.start()
    logger.info({ url, opsUrl }, 'listening')
    return opsUrl
  },
})
