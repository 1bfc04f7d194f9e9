import { openRedisAccess } from '@sluice/access'
import { isCopy, Reporting, runCopies } from '@sluice/ops'
import { ChunkQueue, ShardCount, shardNames } from '@sluice/queue'
import { IdSource } from '@sluice/rows'
import { claimPort, createLogger, installationNames, readSettingsOrExit, runProcess } from '@sluice/runtime'
import { startTraces } from '@sluice/traces'
import { randomUUID } from 'node:crypto'
import packageJson from '../package.json' with { type: 'json' }
import { buildApp } from './app.ts'
import { chunkLimits, ChunkWriter } from './chunks/chunk-writer.ts'
import { readApiConfig } from './config.ts'
import { connectionLimits } from './connections/connection-limits.ts'
import { listen } from './connections/listen.ts'
import { idempotentWriter } from './idempotency/idempotency.ts'
import { Intake } from './intake/intake.ts'
import { countApi, exportApi, workCounts } from './metrics/api-metrics.ts'
import { BodyBudget } from './overload/body-budget.ts'
import {
  bodyLimits,
  measureEventLoopDelay,
  OverloadMonitor,
  overloadThresholds,
} from './overload/overload-monitor.ts'
import { projectRateLimits } from './rate-limits/allowance.ts'
import { sharedBuckets } from './rate-limits/shared-buckets.ts'
import { requestTraces } from './traces/request-traces.ts'

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
  start: async (resources) => {
    const names = installationNames(config.SLUICE_PREFIX)
    const shards = shardNames(config.SLUICE_PREFIX, config.QUEUE_SHARDS)
    const traces = await startTraces(config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, {
      app: 'api',
      version: packageJson.version,
      instanceId: randomUUID(),
      logger,
    })
    // Last, and never in the second half of the time: a silent endpoint must not make a shutdown fail.
    resources.defer(() => traces?.close(resources.halfTimeMs))

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

    const intake = new Intake(clock.nowMs)
    const shardCount = new ShardCount(redis, config.SLUICE_PREFIX, config.QUEUE_SHARDS)
    const reporting: Reporting = resources.stopAtEnd(
      new Reporting({
        role: 'api',
        version: packageJson.version,
        processId: randomUUID(),
        config,
        redis,
        shards: shardCount,
        registry: registryCheck,
        checks: [durability, clock],
        dependencies: () =>
          Object.fromEntries(
            shardCount.names.map((each) => [`shard ${each.shard}`, reporting.gauge.failureOf(each)]),
          ),
        work: () => ({ counts: workCounts(counts, intake) }),
        wallMs: clock.nowMs,
        monotonicMs,
        logger,
      }),
    )
    const { metrics, readiness } = reporting
    const { requests: counts, onAdd } = countApi(metrics, config.METRICS_PROJECTS_MAX)
    const queues = shards.map((shard) =>
      resources.closeAtEnd(new ChunkQueue(redis, shard, { durable, onAdd })),
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
      traces,
    })
    const overload = resources.stopAtEnd(
      new OverloadMonitor({
        thresholds: overloadThresholds(config),
        queue: reporting.gauge,
        eventLoopDelayMs: measureEventLoopDelay(),
        logger,
        random: Math.random,
      }),
    )
    const bodies = new BodyBudget({ limits: bodyLimits(config), logger, random: Math.random })
    exportApi(metrics, counts, authenticator, intake, overload, bodies)
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
        requestTraces({
          traces,
          sampleRatio: Number(config.OTEL_TRACES_SAMPLER_ARG),
          random: Math.random,
          monotonicMs,
        }),
    })

    clock.start()
    // Closed first: requests in flight need all of the above.
    const api = resources.closeAtEnd(await listen(app, config.HOST, config.PORT, isCopy()))
    for (const part of [usage, durability, registryCheck, overload]) part.start()
    const pages = new Map([['/overload', () => ({ ...overload.status, bodies: bodies.status })]])
    const opsUrl = await reporting.start({ pages })
    logger.info({ url: api.url, opsUrl }, 'listening')
    return opsUrl
  },
})
