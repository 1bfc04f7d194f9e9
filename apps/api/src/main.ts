import { openRedisAccess } from '@sluice/access'
import {
  Dependencies,
  exportProcess,
  isCopy,
  Metrics,
  redisDependency,
  Reporting,
  runCopies,
  startOpsServer,
} from '@sluice/ops'
import { ChunkQueue, ShardCount, shardNames } from '@sluice/queue'
import { IdSource } from '@sluice/rows'
import { claimPort, createLogger, installationNames, readSettingsOrExit, runProcess } from '@sluice/runtime'
import { startTraces } from '@sluice/traces'
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import packageJson from '../package.json' with { type: 'json' }
import { buildApp } from './app.ts'
import { followChunks } from './chunks/chunk-follower.ts'
import { chunkLimits, ChunkWriter } from './chunks/chunk-writer.ts'
import { readApiConfig } from './config.ts'
import { connectionLimits } from './connections/connection-limits.ts'
import { listen } from './connections/listen.ts'
import { idempotentWriter } from './idempotency/idempotency.ts'
import { Intake } from './intake/intake.ts'
import { countApi, exportApi, workCounts } from './metrics/api-metrics.ts'
import { BodyBudget } from './overload/body-budget.ts'
import { measureEventLoopDelay, OverloadMonitor } from './overload/overload-monitor.ts'
import { projectRateLimits } from './rate-limits/project-rate-limits.ts'
import { sharedBuckets } from './rate-limits/shared-buckets.ts'
import { RequestTraces } from './traces/request-traces.ts'

/** An add waits this long for replicas. The rest of its deadline is for one more attempt. */
const REPLICATION_WAIT_MS = 1_000

const config = readSettingsOrExit('api', () => readApiConfig(process.env))
const logger = createLogger('api', config.LOG_LEVEL, config.LOG_FORMAT)
const monotonicMs = (): number => performance.now()

if (config.API_PROCESSES > 1 && !isCopy())
  await runCopies({
    logger,
    config,
    count: config.API_PROCESSES,
    // Claimed until this process ends.
    prepare: async () => ({ PORT: String((await claimPort(config.HOST, config.PORT)).port) }),
  })

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    // A resource is released before those that it was made of: in the reverse order.
    const resources = new AsyncDisposableStack()
    const stoppedAtEnd = <Part extends { stop: () => unknown }>(part: Part): Part =>
      resources.adopt(part, async (started) => void (await started.stop()))
    const names = installationNames(config.SLUICE_PREFIX)
    const shards = shardNames(config.SLUICE_PREFIX, config.QUEUE_SHARDS)
    const traces = await startTraces({
      endpoint: config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
      app: 'api',
      version: packageJson.version,
      instanceId: randomUUID(),
      logger,
    })
    // Last, and never in the second half of the time: a silent endpoint must not make a shutdown fail.
    let stoppingMs = 0
    resources.defer(() => traces?.close(stoppingMs + config.SHUTDOWN_DEADLINE_MS / 2))

    const { redis, durable, clock, durability, registryCheck, usage, authenticator } = openRedisAccess({
      resources,
      config,
      scope: 'ingest',
      commandTimeoutMs: chunkLimits.addDeadlineMs,
      replicationWaitMs: REPLICATION_WAIT_MS,
      monotonicMs,
      logger,
    })
    const rateLimits = projectRateLimits(sharedBuckets(redis, names), config, logger)

    const metrics = new Metrics({ app: 'api', version: packageJson.version })
    const { requests: counts, onAdd } = countApi(metrics, config.METRICS_PROJECTS_MAX)
    const queues = shards.map((shard) =>
      resources.adopt(new ChunkQueue(redis, shard, { durable, onAdd }), (queue) => queue.close()),
    )
    const ids = new IdSource(clock.nowMs)
    const makeId = (): string => ids.next()
    const writer = new ChunkWriter({
      queues,
      makeId,
      records: {
        windowMs: config.IDEMPOTENCY_WINDOW_SECONDS * 1_000,
        perProjectMax: config.IDEMPOTENCY_KEYS_PER_PROJECT_MAX,
      },
      monotonicMs,
      follow: followChunks(logger, traces),
    })
    const bytesInFlight = (): number => writer.bytesWaiting

    const shardCount = new ShardCount(redis, config.SLUICE_PREFIX, config.QUEUE_SHARDS)
    const readiness = (): { ready: boolean; reasons: string[] } => {
      const connection = redis.status === 'ready' ? [] : [`the connection to Redis is ${redis.status}`]
      const checks = [durability, registryCheck, clock]
      const reasons = [...connection, ...checks.flatMap((check) => check.readiness.reasons)]
      return { ready: reasons.length === 0, reasons }
    }
    const reporting = stoppedAtEnd(
      new Reporting({
        redis,
        prefix: config.SLUICE_PREFIX,
        shards: shardCount,
        memoryBytes: config.REDIS_MEMORY_BYTES,
        processId: randomUUID(),
        role: 'api',
        host: hostname(),
        pid: process.pid,
        version: packageJson.version,
        readiness,
        work: () => ({ counts: workCounts(counts, intake) }),
        metrics,
        wallMs: clock.nowMs,
        monotonicMs,
        logger,
      }),
    )
    const overload = stoppedAtEnd(
      new OverloadMonitor({
        thresholds: config.overloadThresholds,
        queue: reporting.gauge,
        bytesInFlight,
        eventLoopDelayMs: measureEventLoopDelay(),
        logger,
        random: Math.random,
      }),
    )
    const bodies = new BodyBudget({
      limits: { bytesMax: config.BODIES_BYTES_MAX, projectBytesMax: config.PROJECT_BODIES_BYTES_MAX },
      logger,
      random: Math.random,
    })
    const intake = new Intake(clock.nowMs)
    exportApi(metrics, { requests: counts, authenticator, intake, overload, bodies, bytesInFlight })
    const redisCheck = redisDependency(redis)
    const dependencies = stoppedAtEnd(
      new Dependencies({
        checks: () => [
          redisCheck,
          ...shardCount.names.map((shard) => ({
            name: `shard ${shard.shard}`,
            failure: () => reporting.gauge.failureOf(shard),
          })),
        ],
        monotonicMs,
      }),
    )
    exportProcess(metrics, { readiness, dependencies, registry: registryCheck, logger })
    const app = buildApp({
      authenticator,
      rateLimits,
      intake,
      writer,
      writeOnce: idempotentWriter(writer, shards, makeId),
      overload,
      bodies,
      counts,
      wallMs: clock.nowMs,
      logger,
      readiness,
      connectionLimits,
      trustedProxies: config.trustedProxies,
      docsEnabled: config.DOCS_ENABLED,
      traces:
        traces &&
        new RequestTraces({
          traces,
          sampleRatio: Number(config.OTEL_TRACES_SAMPLER_ARG),
          random: Math.random,
          monotonicMs,
        }),
    })

    clock.start()
    const api = await listen(app, { host: config.HOST, port: config.PORT, isShared: isCopy() })
    for (const part of [usage, durability, registryCheck, dependencies]) part.start()
    const ops = await startOpsServer({
      host: config.OPS_HOST,
      port: config.OPS_PORT,
      readiness,
      dependencies: () => dependencies.status,
      pages: new Map([['/overload', () => ({ ...overload.status, bodies: bodies.status })]]),
      metrics: metrics.page,
    })
    resources.defer(() => ops.close())
    // Released first: requests in flight need all of the above.
    resources.defer(() => api.close())
    for (const part of [reporting, overload]) part.start()
    logger.info({ url: api.url, opsUrl: ops.url }, 'listening')

    return {
      opsUrl: ops.url,
      stop: async () => {
        stoppingMs = monotonicMs()
        await resources.disposeAsync()
      },
    }
  },
})
