import { openRedisAccess } from '@sluice/access'
import { clickhouseAccessFrom, connectClickHouse, LogReader } from '@sluice/clickhouse'
import {
  Dependencies,
  exportProcess,
  Heartbeat,
  Metrics,
  QueueGauge,
  redisDependency,
  RetryRequests,
  startOpsServer,
} from '@sluice/ops'
import { Sessions } from '@sluice/projects'
import { Completeness, ShardCount } from '@sluice/queue'
import {
  createLogger,
  installationNames,
  processClock as clock,
  readSettingsOrExit,
  redisServers,
  runProcess,
  Semaphore,
} from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import packageJson from '../package.json' with { type: 'json' }
import { ReadAccess } from './access.ts'
import { buildApp } from './app.ts'
import { readQueryConfig } from './config.ts'
import { readExplorer } from './explorer.ts'
import { Pipeline } from './pipeline.ts'
import { exportQueries } from './query-metrics.ts'
import { QuerySlots } from './query-slots.ts'
import { Tails, tailsLimits } from './tail/tails.ts'

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
  start: async () => {
    // A resource is released before those that it was made of: in the reverse order.
    const resources = new AsyncDisposableStack()
    const stoppedAtEnd = <Part extends { stop: () => unknown }>(part: Part): Part =>
      resources.adopt(part, async (started) => void (await started.stop()))
    const { registryPrefix } = installationNames(config.SLUICE_PREFIX)
    const { clock: redisClock, ...access } = openRedisAccess({
      resources,
      config,
      scope: 'read',
      commandTimeoutMs: REDIS_TIMEOUT_MS,
      replicationWaitMs: REPLICATION_WAIT_MS,
      monotonicMs,
      logger,
    })
    const { redis, durable, durability, registryCheck, usage, authenticator } = access
    const wallMs = redisClock.nowMs

    const clickhouse = resources.adopt(
      connectClickHouse(clickhouseAccessFrom(config), {
        requestTimeoutMs: config.QUERY_TIME_MAX_MS + ANSWER_MARGIN_MS,
        connectionsMax: config.QUERIES_MAX + UNCOUNTED_QUERIES_MAX,
      }),
      (opened) => opened.close(),
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

    const metrics = new Metrics({ app: 'query', version: packageJson.version })
    const slots = new QuerySlots(config.QUERIES_MAX, config.PROJECT_QUERIES_MAX)
    const stopping = new AbortController()
    resources.defer(() => stopping.abort())
    const permits = new Semaphore(tailsLimits.behindMax, stopping.signal)
    // A single shard is not recorded: this reads the number only.
    const shards = new ShardCount(redis, config.SLUICE_PREFIX, 1)
    const watched = {
      redis,
      shards,
      wallMs,
      monotonicMs,
      logger,
      prefix: config.SLUICE_PREFIX,
      completePoint,
    }
    const servers = (): ReturnType<typeof redisServers> => redisServers(redis)
    const gauge = new QueueGauge({ ...watched, servers, memoryBytes: config.REDIS_MEMORY_BYTES })
    const pipeline = stoppedAtEnd(new Pipeline({ ...watched, gauge }))
    const tails = new Tails({ reader, completePoint, permits, logger })
    const readiness = (): { ready: boolean; reasons: string[] } => {
      const connection = redis.status === 'ready' ? [] : [`the connection to Redis is ${redis.status}`]
      const reasons = [...connection, ...redisClock.readiness.reasons, ...registryCheck.readiness.reasons]
      return { ready: reasons.length === 0, reasons }
    }
    const redisCheck = redisDependency(redis)
    const dependencies = stoppedAtEnd(new Dependencies({ checks: () => [redisCheck], monotonicMs }))
    exportProcess(metrics, { readiness, dependencies, registry: registryCheck, logger })
    const heartbeat = new Heartbeat({
      redis,
      prefix: config.SLUICE_PREFIX,
      processId: randomUUID(),
      role: 'query',
      host: hostname(),
      pid: process.pid,
      version: packageJson.version,
      readiness,
      monotonicMs,
      logger,
    })
    resources.defer(() => heartbeat.leave())
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
    for (const part of [usage, durability, registryCheck, dependencies, heartbeat]) part.start()
    const ops = await startOpsServer({
      host: config.OPS_HOST,
      port: config.OPS_PORT,
      readiness,
      dependencies: () => dependencies.status,
      metrics: metrics.page,
    })
    resources.defer(() => ops.close())
    // Released first: requests in flight need all of the above.
    resources.defer(() => app.close())
    logger.info({ url, opsUrl: ops.url }, 'listening')
    return { opsUrl: ops.url, stop: () => resources.disposeAsync() }
  },
})
